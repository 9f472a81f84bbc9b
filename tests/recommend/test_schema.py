"""Everything in a model's folder is checked before use: settings, numbers, ids, arrays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from svmp.errors import FileError, ModelError
from svmp.recommend import EventModel, RatingModel, load
from svmp.recommend.files import folder_of
from tests.ratings.test_library_errors import panic
from tests.recommend.tools import drawn, fitted

from .test_files import change


@pytest.fixture(scope="module")
def events() -> EventModel:
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 40, 400), rng.integers(0, 30, 400)
    model = EventModel(2, iterations=2, hold=1, counts=True, progress=False, threads=1)
    return model.fit((user, item))


def refused(path: Path) -> str:
    with pytest.raises(FileError) as caught:
        load(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    return said


SETTINGS: dict[str, list[Any]] = {
    "factors": [-1, 1.5, "3", None, True],
    "covariance": ["round", 3, None, []],
    "noise": ["loud", {}],
    "range": [[5, 1], "ab", [1], 7, [0, "x"]],
    "calibrate": [0.9, -1, "x", None],
    "columns": ["user", ["a"], [1, 2, -3], [1, 2, None], 5, {"who": 1}],
    "duplicates": ["first", None, []],
    "seed": [-1, 1.5, "x", 2**70, None],
    "max_sweeps": [0, -5, "x", None],
    "tol": [-1, "x", None],
    "threads": [0, "x", 1.5],
    "progress": ["yes", 7],
}
OF_EVENTS: dict[str, list[Any]] = {
    "factors": [0, -1],
    "ratio": [0, -1, "x", None],
    "power": [-1, "x"],
    "score": ["best", None],
    "precision": [0, "x"],
    "iterations": [0, "x"],
    "hold": [-1],
    "kappa": [0, "x"],
    "at_least": ["x"],
    "counts": ["x", 3, None],
    "seed": [-1],
    "columns": [["a"]],
}


@pytest.mark.parametrize("name", SETTINGS)
def test_saved_parameters_are_checked_like_arguments(name: str, tmp_path: Path) -> None:
    model, path = fitted(), tmp_path / "m.svmp"
    for value in SETTINGS[name]:
        model.save(path)
        change(parameters={**model.get_params(), name: value})(path)
        assert "model.json is invalid" in refused(path)
        if (name, value) in [("range", "ab"), ("seed", 2**70), ("seed", None)]:
            continue  # as arguments they are sound, or refused by another sentence
        with pytest.raises(ValueError, match=name):
            RatingModel(**{name: value}).fit(([1, 2], [1, 2], [3, 4]))


@pytest.mark.parametrize("name", OF_EVENTS)
def test_saved_parameters_of_events_are_checked(
    name: str, events: EventModel, tmp_path: Path
) -> None:
    for value in OF_EVENTS[name]:
        events.save(tmp_path / "m.svmp")
        change(parameters={**events.get_params(), name: value})(tmp_path / "m.svmp")
        assert "model.json is invalid" in refused(tmp_path / "m.svmp")


@pytest.mark.parametrize("name", ["offset", "prior_noise", "scale", "range"])
def test_non_finite_numbers_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.svmp"
    for value in (np.inf, -np.inf, np.nan, 1e300, "1", None, True, [1]):
        fitted().save(path)
        change(**{name: [1, value] if name == "range" else value})(path)
        refused(path)
    text = (path / "model.json").read_text()
    fitted().save(path)
    text = (path / "model.json").read_text()
    offset = json.loads(text)["offset"]
    (path / "model.json").write_text(text.replace(str(offset), "1e999"))  # as JSON allows
    refused(path)


def header(path: Path, work: Callable[[dict[str, Any]], Any]) -> None:
    """Change the header of the arrays."""
    file = folder_of(path) / "arrays.safetensors"
    raw = file.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    entries = json.loads(raw[8 : 8 + length])
    work(entries)
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])


@pytest.mark.parametrize("value", [np.inf, np.nan, -1, 1.5, "3", None, 10**30, True])
@pytest.mark.parametrize("field", ["shape", "data_offsets"])
def test_lengths_in_the_header_are_checked(field: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.svmp"
    fitted().save(path)

    def work(entries: dict[str, Any]) -> None:
        entries["users/side/mean"][field][1] = value

    header(path, work)
    assert "arrays.safetensors" in refused(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("users/side/bias", np.nan),
        ("users/side/bias", 3e38),
        ("users/side/bias", 0.5),  # biases are among the factors, or have a variance
        ("users/side/bias_var", 0.1),
        ("users/side/bias_var", -0.1),
        ("users/side/cov", -1.0),
        ("users/prior/cov", 0.0),
        ("users/prior/bias_var", 1e-45),
        ("items/side/mean", 1e30),
        ("items/prior/mean", np.inf),
        ("history/rating", np.nan),
        ("history/item", 40),
        ("history/item", -1),
        ("history/begin", -1),
        ("history/begin", 2**40),
        ("noise", np.inf),
        ("noise", 0.0),
        ("quantiles", np.inf),
        ("quantiles", -1.0),
    ],
)
def test_values_of_arrays_are_checked(name: str, value: float, tmp_path: Path) -> None:
    path = tmp_path / "m.svmp"
    fitted().save(path)
    overwrite(path, name, value)
    refused(path)


def overwrite(path: Path, name: str, value: float) -> None:
    """Write another number in the middle of an array."""
    kinds = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}
    file = folder_of(path) / "arrays.safetensors"
    raw = bytearray(file.read_bytes())
    length = int.from_bytes(raw[:8], "little")
    entry = json.loads(raw[8 : 8 + length])[name]
    kind = np.dtype(kinds[entry["dtype"]])
    first, last = entry["data_offsets"]
    at = 8 + length + first + (last - first) // kind.itemsize // 2 * kind.itemsize
    raw[at : at + kind.itemsize] = np.array(value).astype(kind).tobytes()
    file.write_bytes(raw)


def test_covariances_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "m.svmp"
    fitted("full").save(path)
    load(path)
    for name in ("users/side/cov", "items/prior/cov"):
        fitted("full").save(path)
        overwrite(path, name, -50.0)
        refused(path)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, 0.9])
def test_odds_are_checked(value: float, events: EventModel, tmp_path: Path) -> None:
    events.save(tmp_path / "m.svmp")
    overwrite(tmp_path / "m.svmp", "odds", value)
    assert "odds" in refused(tmp_path / "m.svmp")


@pytest.mark.parametrize("value", [0.0, 1.5, 1e30])
def test_counts_are_checked(value: float, events: EventModel, tmp_path: Path) -> None:
    events.save(tmp_path / "m.svmp")
    overwrite(tmp_path / "m.svmp", "history/rating", value)
    refused(tmp_path / "m.svmp")


@pytest.mark.parametrize(
    "ids",
    [
        [None, *range(59)],
        [None, *map(str, range(59))],
        [float("nan"), *range(59)],
        [0.5] * 60,
        [7] * 60,
        ["a"] * 60,
        ["a", "a\0", *map(str, range(58))],
        [str(n) for n in range(59)] + ["x" * 5000],
        list(range(59)),
        [],
        [[n] for n in range(60)],
        [n % 2 == 0 for n in range(60)],
    ],
)
def test_ids_are_checked(ids: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "m.svmp"
    fitted().save(path)
    pl.DataFrame({"id": pl.Series(ids, strict=False)}).write_parquet(
        folder_of(path) / "users.parquet"
    )
    refused(path)


def test_panic_is_reported_as_a_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.svmp"
    fitted().save(path)
    monkeypatch.setattr(pl, "read_parquet", panic)
    assert "users.parquet cannot be read" in refused(path)


def test_extreme_ratings_are_refused(events: EventModel) -> None:
    model = fitted()
    item = model.items_.ids[0]
    with pytest.raises(ModelError, match="too far"):
        model.fold_in({item: 1e300})
    assert np.isfinite(model.recommend(model.fold_in({item: 1e9}), 3).scores).all()
    with pytest.raises(ModelError, match="events"):
        events.fold_in([events.items_.ids[0]], [10**8])


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
@pytest.mark.parametrize("scale", [1e-8, 1e8, 0.0])
def test_models_of_any_scale_are_loaded(covariance: Any, scale: float, tmp_path: Path) -> None:
    table = drawn(0)
    ratings = (table.user, table.item, table.rating * np.float32(scale))
    model = RatingModel(2, covariance=covariance, max_sweeps=6, progress=False, threads=1)
    model.fit(ratings).save(tmp_path / "m.svmp")
    again = load(tmp_path / "m.svmp")
    assert np.array_equal(again.predict(1, [2, 3]), model.predict(1, [2, 3]))
