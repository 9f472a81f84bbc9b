"""`svmp recommend` through the real executable: from a file to answers; bad input, exit code 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from svmp.recommend import EventModel, RatingModel
from tests.recommend.tools import drawn

ROOT = Path(__file__).parents[2]
SVMP = Path(sys.executable).parent / "svmp"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [SVMP, "recommend", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "SVMP_THREADS": "1"},
        check=False,
    )


def answer(*arguments: object) -> Any:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "ratings.csv"
    table = drawn(0)
    rows = np.column_stack(
        [table.user_ids[table.user], table.item_ids[table.item], table.rating.astype(int)]
    )
    np.savetxt(path, rows, "%d", ",", header="userId,movieId,rating", comments="")
    return path


@pytest.fixture(scope="module")
def model(ratings: Path) -> Path:
    out = ratings.parent / "model.svmp"
    about = answer("fit", ratings, "-o", out, "--factors", 3, "--max-sweeps", 8)
    assert (about["ratings"], about["users"], about["items"]) == (1200, 60, 40)
    return out


def test_top_similar_and_fold_in(model: Path) -> None:
    loaded = RatingModel.load(model)
    found = answer("top", model, "--user", 4, "--user", 7, "-n", 3)
    assert [row["item"] for row in found if row["user"] == 7] == loaded.recommend(
        7, 3
    ).items.tolist()
    like = answer("similar", model, "--item", 14, "-n", 4)
    assert [row["item"] for row in like] == loaded.similar_items(14, 4).items.tolist()
    folded = answer("fold-in", model, "--rated", "14=5", "--rated", "21=1.5", "-n", 2)
    wanted = loaded.recommend(loaded.fold_in({14: 5.0, 21: 1.5}), 2)
    assert [row["item"] for row in folded] == wanted.items.tolist()
    table = run("top", model, "--user", 4).stdout
    assert "score" in table


def test_update_writes_a_new_model(model: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.csv"
    more.write_text("userId,movieId,rating\n9999,14,5\n9999,21,1\n")
    out = tmp_path / "new.svmp"
    assert answer("update", model, more, "-o", out)["users"] == 61
    assert len(RatingModel.load(model).users_) == 60
    assert len(answer("top", out, "--user", 9999, "-n", 2)) == 2


def test_events_from_a_file_to_answers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 40, 500), rng.integers(0, 15, 500)
    item += 15 * (user % 2)  # two circles, each with items of its own
    rows = np.column_stack([user, item, rng.integers(1, 4, 500)])
    data, out = tmp_path / "plays.csv", tmp_path / "events.svmp"
    np.savetxt(data, rows, "%d", ",", header="user,item,plays", comments="")
    about = answer("fit", data, "--events", "--counts", "-o", out, "--factors", 3)
    assert (about["users"], about["items"]) == (40, 30)
    loaded = EventModel.load(out)
    found = answer("top", out, "--user", 7, "-n", 3)
    assert [row["item"] for row in found] == loaded.recommend(7, 3).items.tolist()
    folded = answer("fold-in", out, "--rated", "16", "--rated", "20=2", "-n", 2)
    wanted = loaded.recommend(loaded.fold_in([16, 20], [1, 2]), 2)
    assert [row["item"] for row in folded] == wanted.items.tolist()
    assert len(answer("similar", out, "--item", 16, "-n", 4)) == 4
    data.write_text("user,item,plays\n99,16,2\n99,20,1\n")
    assert answer("update", out, data)["users"] == 41
    assert {row["item"] >= 15 for row in answer("top", out, "--user", 99, "-n", 3)} == {True}


def test_evaluate_of_events(tmp_path: Path) -> None:
    data = tmp_path / "events.csv"
    rows = np.column_stack(
        [np.divmod(np.arange(0, 400, 3), 20)[k] for k in (0, 1)] + [np.ones(134)]
    )
    np.savetxt(data, rows, "%d", ",", header="user,item,count", comments="")
    found = answer("evaluate", data, "--events", "--factors", 2)
    assert set(found["scores"]) == {"model", "popularity"}


def test_evaluate_prints_and_draws(ratings: Path, tmp_path: Path) -> None:
    picture = tmp_path / "figure.png"
    found = answer("evaluate", ratings, "--factors", 2, "--plot", picture)
    assert set(found["scores"]) == {"model", "biases", "popularity"}
    assert picture.stat().st_size > 10_000


def test_bad_input_is_one_sentence_and_exit_code_2(model: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("userId,movieId,rating\n1,2,3\n1,4,good\n")
    out = tmp_path / "out.svmp"
    for arguments, says in [
        (("fit", bad, "-o", out), "bad.csv, line 3: the rating is 'good', not a number"),
        (("fit", tmp_path / "absent.csv", "-o", out), "there is no such file"),
        (("top", model, "--user", "ann"), "whole numbers"),
        (("top", tmp_path, "--user", "2"), "not a model that svmp saved"),
        (("fold-in", model, "--rated", "14"), "must be ITEM=RATING"),
        (("update", model, bad), "line 3"),
        (("fit", bad, "--counts", "-o", out), "--at-least and --counts need --events"),
    ]:
        done = run(*arguments)
        assert done.returncode == 2
        assert says in done.stderr
        assert "Traceback" not in done.stderr
    assert not out.exists()
