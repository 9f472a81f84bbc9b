"""Files of other origin are never overwritten, and file modes follow the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp import recommend
from svmp.fitting import fit as fitting
from svmp.locking import lock_of
from svmp.recommend.files import ABOUT, ARRAYS, version_at
from svmp.writing import draft_of, drafts_of, written_beside


def coin() -> svmp.Model:
    with svmp.Model() as model:
        p = svmp.Beta("p", alpha=1, beta=1)
        svmp.Bernoulli("x", p=p, observed=[1, 0, 1])
    return model


def run(path: Any, **options: Any) -> svmp.Fit:
    return svmp.fit(coin(), checkpoint=path, every=1, max_sweeps=2, kernels=False, **options)


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every fit fail that reaches its network."""

    def work(model: Any) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr(fitting.Network, "__init__", lambda self, model: work(model))


def a_table(path: Path) -> None:
    path.write_text("user,item,rating\n1,2,3\n")


def a_saved_fit(path: Path) -> None:
    svmp.fit(coin(), max_sweeps=1, kernels=False).save(path)


def a_folder(path: Path) -> None:
    path.mkdir()
    a_table(path / "ratings.csv")


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_link(path: Path) -> None:
    a_table(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def a_dead_link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


OTHERS = [a_table, a_folder, a_pipe, a_link, a_dead_link]


def contents(folder: Path) -> dict[str, Any]:
    """Return everything in a folder: modes, and the bytes of files."""
    return {
        str(p): (p.lstat().st_mode, p.lstat().st_ino, p.is_file() and p.read_bytes())
        for p in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("make", OTHERS)
@pytest.mark.parametrize("name", ["run", "run.before"])
def test_checkpoint_does_not_replace_other_files(
    make: Callable[[Path], None], name: str, tmp_path: Path, no_work: None
) -> None:
    make(tmp_path / name)
    before = contents(tmp_path)
    with pytest.raises(svmp.FileError, match=name):
        run(tmp_path / "run")
    assert contents(tmp_path) == before


def test_checkpoint_does_not_replace_a_saved_fit(tmp_path: Path) -> None:
    a_saved_fit(tmp_path / "run")
    before = contents(tmp_path)
    with pytest.raises(svmp.FileError, match="not a checkpoint of svmp's"):
        run(tmp_path / "run")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("path", ["/dev/null", "/dev/full", "/dev/stdout"])
def test_devices_are_refused(path: str, no_work: None) -> None:
    mode = os.lstat(path).st_mode
    with pytest.raises(svmp.FileError, match=path):
        run(path)
    assert os.lstat(path).st_mode == mode


@pytest.mark.parametrize("path", ["nowhere/run", "file/run", "x" * 254])
def test_impossible_paths_are_refused(path: str, tmp_path: Path, no_work: None) -> None:
    a_table(tmp_path / "file")
    with pytest.raises(svmp.FileError, match=path[:10]):
        run(tmp_path / path)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder_is_refused(tmp_path: Path, no_work: None) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(svmp.FileError, match="Permission"):
        run(tmp_path / "run")


@pytest.mark.parametrize("path", [3, "", ".", "..", "a\0b", b"run", ["run"]])
def test_invalid_paths_are_refused(path: Any, no_work: None) -> None:
    with pytest.raises(svmp.ModelError, match="checkpoint must be the path of a file"):
        run(path)
    with pytest.raises(svmp.ModelError, match="must be the path of a file"):
        svmp.load(path)


def test_invalid_every_is_refused_before_the_fit(tmp_path: Path, no_work: None) -> None:
    with pytest.raises(svmp.ModelError, match="every must be like"):
        svmp.fit(coin(), checkpoint=tmp_path / "run", every="soon")


def test_files_that_svmp_may_replace(tmp_path: Path) -> None:
    """A checkpoint, an empty file, and what a killed process has left behind."""
    path = tmp_path / "run"
    path.touch()
    draft_of(path).touch()
    lock_of(path).touch()
    run(path)
    whole = path.read_bytes()
    draft_of(path).write_bytes(whole[:200])
    path.write_bytes(whole[:300])
    run(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "run.before"]
    assert svmp.fit(coin(), resume=path, max_sweeps=3).status


def test_file_that_appears_during_the_run(tmp_path: Path) -> None:
    path = tmp_path / "run"

    def watch(row: dict[str, float]) -> None:
        if not path.exists():
            a_table(path)

    with pytest.raises(svmp.FileError, match="not a checkpoint"):
        run(path, watch=watch)
    assert path.read_text().startswith("user,item,rating")


# --- saved fits -----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [*OTHERS, run])
def test_saved_fit_does_not_replace_other_files(
    make: Callable[[Path], object], tmp_path: Path
) -> None:
    fit = svmp.fit(coin(), kernels=False)
    make(tmp_path / "coin")
    before = contents(tmp_path)
    with pytest.raises(svmp.FileError, match="coin"):
        fit.save(tmp_path / "coin")
    assert contents(tmp_path) == before


def test_saved_fit_replaces_another(tmp_path: Path) -> None:
    path = tmp_path / "coin"
    a_saved_fit(path)
    path.write_bytes(path.read_bytes()[:100])
    a_saved_fit(path)
    assert svmp.load(path)["p"].alpha == 3


# --- models in folders ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> recommend.RatingModel:
    pairs = np.arange(80)
    table = {"user": pairs // 9, "item": pairs % 9, "rating": 1 + pairs % 5}
    return recommend.RatingModel(factors=2, max_sweeps=1).fit(table)


@pytest.mark.parametrize("make", OTHERS)
def test_model_does_not_replace_other_files(
    model: recommend.RatingModel, make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / "model")
    before = contents(tmp_path)
    with pytest.raises(svmp.FileError, match="model"):
        model.save(tmp_path / "model")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("other", ["notes.txt", "model.json"])
def test_folder_with_other_files_is_not_a_model(
    model: recommend.RatingModel, other: str, tmp_path: Path
) -> None:
    """Other projects may have a model.json, and a model's folder may have a user's notes."""
    path = tmp_path / "model"
    if other == "model.json":
        path.mkdir()
    else:
        model.save(path)
    a_table(path / other)
    before = contents(tmp_path)
    with pytest.raises(svmp.FileError, match="something else"):
        model.save(path)
    assert contents(tmp_path) == before


def test_model_replaces_another(model: recommend.RatingModel, tmp_path: Path) -> None:
    path = tmp_path / "model"
    model.save(path)
    killed = path / "v2-01234567"  # as of a process that was killed
    killed.mkdir()
    for left in (killed / ".tmpAbCdEf", draft_of(killed / ARRAYS), draft_of(path / ABOUT)):
        left.touch()
    lock_of(path).touch()
    model.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert {p.name for p in path.iterdir()} == {ABOUT, version_at(path)}
    assert recommend.load(path).predict([1], [1]) is not None


# --- drafts ---------------------------------------------------------------------------------


def test_files_beside_are_left_alone(model: recommend.RatingModel, tmp_path: Path) -> None:
    """No name beside the target is taken: drafts have names of their own."""
    for name in ("run.part", "coin.part", "model.part", "model.before", "network.part.dot"):
        a_folder(tmp_path / name)
    before = contents(tmp_path)
    run(tmp_path / "run")
    svmp.fit(coin(), kernels=False).save(tmp_path / "coin")
    model.save(tmp_path / "model")
    coin().draw().save(tmp_path / "network.dot")
    after = contents(tmp_path)
    assert {name: after[name] for name in before} == before
    new = {path.name for path in tmp_path.iterdir()} - {Path(name).name for name in before}
    assert new == {"run", "run.before", "coin", "model", "network.dot"}


def test_drafts_of_one_path_have_different_names(tmp_path: Path) -> None:
    names = {draft_of(tmp_path / "a.png").name for _ in range(1000)}
    assert len(names) == 1000
    assert {Path(name).suffix for name in names} == {".png"}
    for name in [*names][:3]:
        (tmp_path / name).touch()
    (tmp_path / "b.00000000.part.png").touch()
    assert len(drafts_of(tmp_path / "a.png")) == 3


def test_writers_at_the_same_time_each_write_a_whole_file(tmp_path: Path) -> None:
    """The first to begin is the first to end; no draft is shared, and none is left."""
    path, texts = tmp_path / "text", [str(n) * 10_000 for n in range(8)]

    def write(text: str) -> None:
        with written_beside(path) as draft:
            for start in range(0, len(text), 1000):
                with draft.open("a") as file:
                    file.write(text[start : start + 1000])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, texts))
    assert path.read_text() in texts
    assert [p.name for p in tmp_path.iterdir()] == ["text"]


# --- pictures -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [a_folder, a_pipe, a_link])
def test_pictures_are_drawn_to_files(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "network.dot")
    before = contents(tmp_path)
    with pytest.raises(svmp.FileError, match="network"):
        coin().draw().save(tmp_path / "network.dot")
    with pytest.raises(svmp.FileError, match="no folder"):
        coin().draw().save(tmp_path / "nowhere" / "network.dot")
    assert contents(tmp_path) == before


# --- permissions ----------------------------------------------------------------------------


@pytest.fixture(params=[0o022, 0o027, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    former = os.umask(request.param)
    yield request.param
    os.umask(former)


def test_file_modes_follow_the_umask(
    model: recommend.RatingModel, umask: int, tmp_path: Path
) -> None:
    run(tmp_path / "run")
    a_saved_fit(tmp_path / "coin.svmp")
    model.save(tmp_path / "model")
    coin().draw().save(tmp_path / "network.dot")
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert {"run", "run.before", "coin.svmp", "arrays.safetensors"} <= {p.name for p in files}
    assert {stat.S_IMODE(p.stat().st_mode) for p in files} == {0o666 & ~umask}
