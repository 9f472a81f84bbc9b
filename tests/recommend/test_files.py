"""Save and load models; damaged ones are refused with one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from svmp.errors import FileError
from svmp.recommend import EventModel, RatingModel, load
from svmp.recommend.files import folder_of
from tests.recommend.tools import fitted


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_loaded_model_gives_the_same_answers(covariance: Any, words: bool, tmp_path: Path) -> None:
    model = fitted(covariance, words=words)
    model.save(tmp_path / "m.svmp")
    again = RatingModel.load(tmp_path / "m.svmp")
    users, items = model.users_.ids, model.items_.ids[7]
    for mine, its in zip(
        (*model.predict(users, items, return_std=True), *model.predict_interval(users, items)),
        (*again.predict(users, items, return_std=True), *again.predict_interval(users, items)),
        strict=True,
    ):
        assert np.array_equal(mine, its)
    assert np.array_equal(model.recommend(users, 4).items, again.recommend(users, 4).items)
    assert again.get_params() == model.get_params()
    assert isinstance(again.users_.side.mean, np.memmap)
    again.update(([users[0]], [model.items_.ids[0]], [4.0]))  # of arrays that are read-only
    again.save(tmp_path / "m.svmp")  # over the folder that it is mapped from
    assert len(RatingModel.load(tmp_path / "m.svmp").users_) == 60


def test_load_returns_the_kind_that_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "m.svmp"
    fitted().save(path)
    assert isinstance(load(path), RatingModel)
    events = EventModel(2, iterations=1, progress=False).fit(([1, 1, 2, 3], [1, 2, 2, 1]))
    events.save(path)
    assert isinstance(load(path), EventModel)
    change(kind="Oracle")(path)
    with pytest.raises(FileError, match="Oracle is not a model"):
        load(path)


def test_model_in_memory_does_not_need_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "m.svmp"
    model = fitted()
    model.save(path)
    again = load(path, mapped=False)
    cut("arrays.safetensors", 0.1)(path)  # where it was mapped, this would end the process
    users = model.users_.ids
    assert np.array_equal(model.recommend(users, 4).items, again.recommend(users, 4).items)


def cut(name: str, keep: float) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = (folder if name == "model.json" else folder_of(folder)) / name
        raw = path.read_bytes()
        path.write_bytes(raw[: int(keep * len(raw))])

    return damage


def change(**entries: Any) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        about = json.loads((folder / "model.json").read_text())
        (folder / "model.json").write_text(json.dumps({**about, **entries}))

    return damage


def nan(folder: Path) -> None:
    path = folder_of(folder) / "arrays.safetensors"
    raw = bytearray(path.read_bytes())
    length = int.from_bytes(raw[:8], "little")
    entry = json.loads(raw[8 : 8 + length])["users/side/mean"]["data_offsets"]
    raw[8 + length + entry[0] : 8 + length + entry[0] + 4] = np.float32(np.nan).tobytes()
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (cut("arrays.safetensors", 0.9), "cut short"),
        (cut("arrays.safetensors", 0.001), "damaged"),
        (cut("users.parquet", 0.5), "users.parquet cannot be read"),
        (cut("model.json", 0.5), "model.json cannot be read"),
        (lambda f: (folder_of(f) / "items.parquet").unlink(), "items.parquet cannot be read"),
        (lambda f: (folder_of(f) / "arrays.safetensors").unlink(), "cannot be read"),
        (lambda f: (f / "model.json").unlink(), "not a model that svmp saved"),
        (change(format=99), "format 99, made by a newer version"),
        (change(format="x"), "damaged"),
        (change(kind="EventModel"), "this is a EventModel"),
        (change(parameters={"depth": 3}), "is invalid"),
        (change(offset="x"), "is invalid"),
        (change(prior_noise=-1), "the noise variance is invalid"),
        (change(shapes={"gone": [1]}), "there is no array 'gone'"),
        (nan, "is not a valid distribution"),
    ],
)
def test_damaged_files_are_reported(
    damage: Callable[[Path], Any], says: str, tmp_path: Path
) -> None:
    fitted().save(tmp_path / "m.svmp")
    damage(tmp_path / "m.svmp")
    with pytest.raises(FileError, match=says) as caught:
        RatingModel.load(tmp_path / "m.svmp")
    assert "\n" not in str(caught.value)


def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("dear diary")
    with pytest.raises(FileError, match="something else"):
        fitted().save(tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "dear diary"
    with pytest.raises(FileError, match="no such model"):
        RatingModel.load(tmp_path / "absent")
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="cannot be written"):
        fitted().save(tmp_path / "file" / "m.svmp")
