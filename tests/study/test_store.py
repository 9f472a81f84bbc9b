"""Runs are read as they were written; damaged ones are not; no file is half written."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from svmp.datasets import netflix_shaped
from svmp.errors import StudyError
from svmp.study.data import some_users
from svmp.study.runs import COLUMNS, Result, Spec
from svmp.study.settings import Settings, whole_numbers
from svmp.study.store import Store

SPEC = Spec("children", 3, "b", rho1=1 / 32, accesses=1e6)


def made(bound: float = -12.5) -> Result:
    trace = {c: np.array([0.5, 1.5]) for c in COLUMNS}
    return Result(SPEC, "budget", bound, 7, 100, 0.25, trace, "")


def test_a_run_is_read_as_it_was_written(tmp_path):
    store = Store(tmp_path)
    store.keep("key", made())
    found = store.find("key", SPEC)
    assert found is not None
    assert (found.spec, found.status, found.bound, found.iterations) == (SPEC, "budget", -12.5, 7)
    for column in COLUMNS:
        assert (found.trace[column] == made().trace[column]).all()


def test_another_run_is_not_found(tmp_path):
    store = Store(tmp_path)
    store.keep("key", made())
    assert store.find("other", SPEC) is None
    assert store.find("key", Spec("children", 4)) is None


@pytest.mark.parametrize("what", ["json", "parquet", "number", "version"])
def test_a_damaged_run_is_made_again(what, tmp_path):
    store = Store(tmp_path)
    store.keep("key", made())
    path = tmp_path / "runs" / f"key.{'parquet' if what == 'parquet' else 'json'}"
    about = json.loads((tmp_path / "runs" / "key.json").read_text())
    about["versions"]["svmp"] = "0.0.1" if what == "version" else about["versions"]["svmp"]
    about["bound"] = float("nan") if what == "number" else about["bound"]
    whole = path.read_bytes()
    text = json.dumps(about).encode() if what in ("number", "version") else whole[: len(whole) // 2]
    path.write_bytes(text)
    assert store.find("key", SPEC) is None


def test_a_file_is_written_completely_or_not_at_all(tmp_path):
    store = Store(tmp_path)
    store.write_text("page.html", "old")

    def fails(draft):
        draft.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(StudyError, match=r"page.html: cannot be written \(No space left.*kept"):
        store.write("page.html", fails)
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert (tmp_path / "page.html").read_text() == "old"
    table = pl.DataFrame({"x": [1, 2]})
    store.write_table("t.parquet", table)
    assert pl.read_parquet(tmp_path / "t.parquet").equals(table)


def test_a_folder_belongs_to_one_study(tmp_path):
    store, settings = Store(tmp_path), Settings()
    store.check_place()
    store.open({"settings": settings.to_dict(), "digest": "d"})
    store.check_place()
    store.check(settings, "d")
    with pytest.raises(StudyError, match=r"kappa 0\.6, not 0\.7"):
        store.check(Settings(kappa=0.7), "d")
    with pytest.raises(StudyError, match="changed since"):
        store.check(settings, "e")
    store.check(settings, "e", force=True)


def test_keys_of_runs_are_unique():
    others = [Spec("children", 3, "a"), Spec("children", 3, "b", rho1=1 / 64), Spec("batch", 3)]
    keys = {s.key(d, k) for s in [SPEC, *others] for d in ("x", "y") for k in (5, 6)}
    assert len(keys) == 16


@pytest.mark.parametrize("text", ["", "1,,2", "-3", "1-", "3-1", "0", "²", "1/0", "1-9999999"])
def test_malformed_number_lists_are_refused(text):
    with pytest.raises(StudyError, match="--children must be"):
        whole_numbers(text, "--children")


def test_users_are_drawn_with_all_their_ratings():
    whole = netflix_shaped(0.01)
    some = some_users(whole, 100, seed=3)
    drawn = np.random.default_rng([3, 2014]).choice(whole.users, 100, replace=False)
    rows = np.isin(whole.user, drawn)
    assert some.rating.tolist() == whole.rating[rows].tolist()
    assert np.unique(whole.user[rows])[some.user].tolist() == whole.user[rows].tolist()
    assert np.unique(whole.item[rows])[some.item].tolist() == whole.item[rows].tolist()
    assert 90 < some.users == len(np.unique(some.user)) <= 100
    assert some.items == len(np.unique(some.item))
    assert some_users(whole, 10_000, seed=3) is whole
