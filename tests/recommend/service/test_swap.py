"""A new model replaces the old one as a whole; a damaged one is refused, and the old one stays."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest

from svmp.errors import FileError
from svmp.recommend import RatingModel, load
from svmp.recommend.files import folder_of
from svmp.recommend.service import current as swapping
from svmp.recommend.service import demo
from svmp.recommend.service.current import CurrentModel
from svmp.recommend.service.metrics import Metrics
from tests.ratings.test_library_errors import panic

from .conftest import PATIENCE, client_of, events, started, wait_for

ARRAYS, ABOUT = "arrays.safetensors", "model.json"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copytree(demo.MODEL, tmp_path / "model.svmp"))


def current_of(path: Path) -> CurrentModel:
    return CurrentModel(path, None, "it", 1000, Metrics())


def other() -> RatingModel:
    """The demo with other items, each rated one star less."""
    model = RatingModel.load(demo.MODEL)
    model.offset_ -= 1
    return model


def cut(path: Path) -> None:
    """Truncate the files in place, as if the disk were full, under the model in use."""
    with (path / ARRAYS).open("r+b") as file:
        file.truncate(5_000)


def spoil(path: Path) -> None:
    """Write a factor that is not finite, in place."""
    with (path / ARRAYS).open("r+b") as file:
        file.seek(-4, 2)
        file.write(np.array([np.nan], np.float32).tobytes())
        file.seek(200_000)
        file.write(np.full(500, np.nan, np.float32).tobytes())


def empty(path: Path) -> None:
    shutil.rmtree(path)
    path.mkdir()
    (path / "other.txt").write_text("no model")


DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "cut short": (cut, "cut short"),
    "not finite": (spoil, "damaged"),
    "no JSON": (lambda path: (path / ABOUT).write_text("{"), "cannot be read"),
    "of the future": (lambda path: (path / ABOUT).write_text('{"format": 99}'), "newer version"),
    "of another kind": (
        lambda path: (path / ABOUT).write_text('{"format": 1, "kind": "Oracle"}'),
        "Oracle",
    ),
    "not a model": (empty, "not a model"),
    "without ids": (lambda path: (path / "items.parquet").unlink(), "items.parquet"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_model_is_refused_and_the_old_one_stays(
    path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    current = current_of(path)
    before = current.served
    wanted = before.search("", 5)
    harm, reason = DAMAGES[damage]
    harm(path)
    for _ in range(3):  # the same files are not looked at again
        current.look()
    assert current.served is before
    assert before.search("", 5) == wanted
    assert before.model.recommend(3, 5).items.shape == (5,)  # its arrays are its own
    assert reason in str(current.refused)
    assert "svmp_model_refusals_total 1.0" in current.metrics.text().decode()
    [record] = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert reason in record.getMessage()
    other().save(path) if path.joinpath(ABOUT).exists() else (
        shutil.rmtree(path),
        other().save(path),
    )
    current.look()
    assert current.served is not before
    assert current.refused is None


def test_new_model_is_loaded_once(path: Path) -> None:
    current = current_of(path)
    before = current.served
    current.look()
    assert current.served is before
    other().save(path)
    current.look()
    now = current.served
    assert now.model.offset_ == pytest.approx(before.model.offset_ - 1)
    current.look()
    assert (current.served, current.swaps) == (now, 1)
    shutil.rmtree(path)  # as while it is replaced
    current.look()
    assert current.served is now
    assert current.refused is None
    events().save(path)  # of the other kind
    current.look()
    assert current.served.about["kind"] == "EventModel"
    assert current.swaps == 2


def test_model_that_changes_while_loading_is_loaded_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = current_of(path)
    before = current.served
    other().save(path)
    reading = CurrentModel._load

    def disturbed(self: CurrentModel) -> Any:
        served = reading(self)
        (folder_of(path) / "users.parquet").touch()
        return served

    monkeypatch.setattr(CurrentModel, "_load", disturbed)
    current.look()
    assert current.served is before
    monkeypatch.undo()
    current.look()
    assert current.served is not before


def test_library_panic_is_a_refusal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    current = current_of(path)
    before = current.served
    other().save(path)
    monkeypatch.setattr(pl, "read_parquet", panic)
    current.look()
    assert current.served is before
    assert "users.parquet cannot be read" in str(current.refused)
    monkeypatch.undo()
    other().save(path)
    current.look()
    assert (current.served is before, current.refused) == (False, None)


@pytest.mark.parametrize("failing", ["_load", "look"])
def test_watch_survives_any_exception(
    failing: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a check raises, /health reports it, and the next valid model is loaded."""
    monkeypatch.setattr(swapping, "PAUSE", 0.01)
    with client_of(path) as client:
        with monkeypatch.context() as broken:
            broken.setattr(CurrentModel, failing, panic)
            other().save(path)
            wait_for(lambda: client.get("/health").json()["refused"])
            assert "PanicException" in client.get("/health").json()["refused"]
        other().save(path)
        wait_for(lambda: client.get("/health").json()["swaps"])
        assert client.get("/health").json()["refused"] is None


def test_damaged_first_model_is_refused_at_start(path: Path) -> None:
    cut(path)
    with pytest.raises(FileError, match="cut short"):
        current_of(path)


def test_no_request_is_dropped_while_models_change(path: Path) -> None:
    """Send requests on several connections while the model is replaced three times."""
    low, high = load(demo.MODEL), other()
    bodies: list[tuple[str, Any]] = [
        ("/recommend", {"users": [3]}),
        ("/recommend", {"users": [1, 2]}),
        ("/fold-in", {"history": [{"item": 1, "rating": 5}]}),
        ("/predict", {"users": [3], "items": [4]}),
        ("/similar", {"item": 3}),
    ]
    mean = {round(float(m.predict(3, 4)[0]), 4) for m in (low, high)}
    statuses: list[int] = []
    seen: set[float] = set()
    end = threading.Event()

    def asking(url: httpx.URL) -> None:
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:
            while not end.is_set():
                for place, body in bodies:
                    answer = client.post(place, json=body)
                    statuses.append(answer.status_code)
                    if place == "/predict":
                        seen.add(round(answer.json()["predictions"][0]["mean"], 4))

    with started(path, "--workers", 1, "--timeout", PATIENCE) as (client, _):
        threads = [threading.Thread(target=asking, args=(client.base_url,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for swaps, model in enumerate((high, low, high), start=1):
                model.save(path)
                wait_for(lambda: client.get("/health").json()["swaps"] >= swaps)  # noqa: B023
        finally:
            end.set()
            for thread in threads:
                thread.join()
        assert client.get("/health").json()["swaps"] == 3
    assert set(statuses) == {200}
    assert seen == mean
