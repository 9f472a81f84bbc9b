"""A model of ratings in parts: the same network as that of one table."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.errors import FileError, ModelError
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network
from svmp.parts.sources import InMemory
from svmp.parts.splitting import split
from svmp.ratings import Ratings, partition
from svmp.recommend import RatingModel, learn_parts, load
from svmp.recommend.network import network
from tests.recommend.tools import drawn, parts


def small(**options: Any) -> RatingModel:
    return RatingModel(2, **{"progress": False, "threads": 1, "max_sweeps": 6, **options})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "parts"
    partition(parts().train, path, parts=4)
    return path


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
@pytest.mark.parametrize("noise", ["user", "shared"])
def test_bound_is_that_of_the_undivided_table(covariance: Any, noise: Any, folder: Path) -> None:
    table = parts().train
    options: dict[str, Any] = {"covariance": covariance, "noise": noise, "calibrate": 0}
    fit = small(**options).fit(svmp.parquet(folder)).fit_
    assert fit is not None
    mean, scale = table.rating.mean(dtype=np.float64), table.rating.std(dtype=np.float64)
    unit = (table.rating - np.float32(mean)) / np.float32(scale)
    rows = Ratings(table.user, table.item, unit, table.user_ids, table.item_ids)
    whole = Network(network(rows, 2, covariance, noise))
    q = Beliefs()
    for name, variable in whole.hidden.items():
        q.natural[name] = np.array(fit[name].natural)
        q.moments[name] = variable.family.moments(q.natural[name])
    assert sum(whole.bound(q).values()) == pytest.approx(fit.bound, rel=1e-9)


def test_predictions_are_as_good_as_those_of_one_table(folder: Path) -> None:
    train, test = parts()
    pairs = test.user_ids[test.user], test.item_ids[test.item]
    errors = []
    for data in (train, svmp.parquet(folder)):
        model = small(max_sweeps=60).fit(data)
        errors.append(np.sqrt(np.mean((model.predict(*pairs) - test.rating) ** 2)))
    assert errors[1] < 1.02 * errors[0]


def test_model_of_parts_saves_loads_and_recommends(folder: Path, tmp_path: Path) -> None:
    train = parts().train
    model = small().fit(svmp.parquet(folder, by="user"))
    model.save(tmp_path / "model.svmp")
    again = load(tmp_path / "model.svmp")
    user = int(train.user_ids[3])
    assert np.array_equal(again.recommend(user, 5).items, model.recommend(user, 5).items)
    seen = train.item_ids[train.item[train.user == 3]]
    assert not set(model.recommend(user, 40).items.tolist()) & set(seen.tolist())
    assert len(model.history_.item) == len(train)
    assert model.sweeps_ == 6
    low, high = model.predict_interval(user, train.item_ids[:5], 0.9)
    assert (low < high).all()


def test_path_with_memory_is_read_in_parts(folder: Path) -> None:
    model = small().fit(str(folder / "*.parquet"), memory="2GB")
    other = small().fit(svmp.parquet(folder))
    assert np.array_equal(model.items_.side.mean, other.items_.side.mean)


def test_too_little_memory_is_refused_before_the_fit(folder: Path) -> None:
    model = small()
    with pytest.raises(ModelError, match=r"memory is 20 MB, but about .* are needed.*partition"):
        model.fit(svmp.parquet(folder), memory="20MB")
    assert not model.is_fitted


def test_ratings_that_do_not_fit_are_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("svmp.recommend.out_of_core.PROGRAM", 0)
    monkeypatch.setattr("svmp.recommend.out_of_core.BYTES_A_ROW", 1)
    monkeypatch.setattr("svmp.recommend.out_of_core.COPIES", 0)
    model = small()
    with pytest.warns(UserWarning, match="does not keep the 1,080 ratings"):
        model.fit(svmp.parquet(folder), memory=20_000)
    assert len(model.history_.item) == 0
    model.save(tmp_path / "model.svmp")
    user = int(parts().train.user_ids[3])
    assert len(load(tmp_path / "model.svmp").recommend(user, 40).items) == 40


def test_text_file_with_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n1,2,3\n")
    with pytest.raises(FileError, match=r"Parquet files, and this is none.*partition"):
        small().fit(path, memory="2GB")


@pytest.mark.parametrize("at", [1, 4])
def test_interrupted_fit_keeps_its_progress(
    at: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, calls = learn_parts.step, []

    def step(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == at:
            signal.raise_signal(signal.SIGINT)
        return usual(*arguments)

    monkeypatch.setattr(learn_parts, "step", step)
    model = small(max_sweeps=30).fit(svmp.parquet(folder))
    assert model.interrupted_
    assert len(calls) == at
    assert model.fit_ is not None
    assert model.fit_.status == "interrupted"
    assert np.isfinite(model.predict(int(parts().train.user_ids[3]), parts().train.item_ids)).all()


def test_interrupt_while_reading_leaves_the_model_unchanged(folder: Path) -> None:
    class Interrupting(InMemory):
        def load(self, part: int) -> Any:
            signal.raise_signal(signal.SIGINT)
            return super().load(part)

    rows = {"user": [1, 2], "item": [7, 7], "rating": [1.0, 2.0]}
    model = small()
    with pytest.raises(KeyboardInterrupt):
        model.fit(Interrupting((rows, {**rows, "user": [3, 4]})))
    assert not model.is_fitted


def test_strings_as_ids() -> None:
    table = drawn(0, words=True)
    columns = {
        "user": table.user_ids[table.user],
        "item": table.item_ids[table.item],
        "rating": table.rating,
    }
    source = split(columns, by="user", parts=3)
    model = small().fit(source)
    assert model.users_.ids.tolist() == table.user_ids.tolist()
    assert model.recommend("u003", 3).items.dtype.kind == "U"
