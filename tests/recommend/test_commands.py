"""`svmp recommend`: from a file to results; exit code 2 on invalid input."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from typer.main import get_command

import svmp.parts.parquet_files
from svmp.cli import main
from svmp.ratings import read_ratings
from svmp.recommend import EventModel, RatingModel
from svmp.recommend.commands import recommend
from tests.recommend.tools import drawn

ROOT = Path(__file__).parents[2]
SVMP = Path(sys.executable).parent / "svmp"


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object) -> Done:
    """Run a command in this process."""
    out, errors, code = io.StringIO(), io.StringIO(), 0
    argv = ["svmp", "recommend", *map(str, arguments)]
    with (
        patch.object(sys, "argv", argv),
        patch.dict(os.environ, {"COLUMNS": "200"}),
        redirect_stdout(out),
        redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Done(code, out.getvalue(), errors.getvalue())


def execute(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command by the executable."""
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


def test_the_executable_prints_tables_and_ends_with_a_code(model: Path) -> None:
    done = execute("top", model, "--user", 4)
    assert done.returncode == 0
    assert "score" in done.stdout
    done = execute("top", model, "--user", "ann")
    assert done.returncode == 2
    assert "whole numbers" in done.stderr
    assert "Traceback" not in done.stderr


def test_width_scales_exploration(model: Path) -> None:
    ask = ("top", model, "--user", 4, "-n", 5, "--explore", "thompson", "--width", 0)
    assert answer(*ask) == answer("top", model, "--user", 4, "-n", 5)
    loaded = RatingModel.load(model)
    wide = loaded.recommend(4, 5, explore="ucb", width=30).items.tolist()
    found = answer("top", model, "--user", 4, "-n", 5, "--explore", "ucb", "--width", 30)
    assert [row["item"] for row in found] == wide


def test_similar_warns_if_the_model_has_no_factors(ratings: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.svmp"
    about = answer("fit", ratings, "-o", out, "--factors", 0, "--max-sweeps", 3)
    assert about["factors"] == 0
    done = run("similar", out, "--item", 14, "-n", 2)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "has no factors, so no item is more like it than others" in done.stderr


def test_unknown_users_are_skipped_and_named(model: Path) -> None:
    done = run("top", model, "--user", 99_999, "--user", 4, "--user", 2**70, "-n", 2, "--json")
    assert done.returncode == 0
    assert {row["user"] for row in json.loads(done.stdout)} == {4}
    assert done.stderr == f"svmp: skipped, not in the model: user 99999, {2**70}\n"


def test_top_of_all_users_is_written_to_a_file(model: Path, tmp_path: Path) -> None:
    loaded, out = RatingModel.load(model), tmp_path / "top.parquet"
    about = answer("top", model, "--all-users", "-o", out, "-n", 3)
    assert about == [{"file": str(out), "users": 60, "rows": 180}]
    wanted = loaded.recommend(loaded.users_.ids, 3)
    assert pl.read_parquet(out)["item"].to_list() == wanted.items.ravel().tolist()
    for text in ("4\n99999\n7\n", "userId,age\n4,30\n99999,31\n7,32\n"):
        (tmp_path / "users.csv").write_text(text)
        done = run("top", model, "--users", tmp_path / "users.csv", "-o", tmp_path / "top.csv")
        assert done.returncode == 0, done.stderr
        assert done.stderr == "svmp: skipped, not in the model: user 99999\n"
        assert set(pl.read_csv(tmp_path / "top.csv")["user"]) == {4, 7}
    pl.DataFrame({"user": [4, 7]}).write_parquet(tmp_path / "users.parquet")
    found = answer("top", model, "--users", tmp_path / "users.parquet", "-n", 1)
    assert [row["user"] for row in found] == [4, 7]
    for wrong, says in [
        (["--all-users"], "--all-users needs --out"),
        ([], "one of the three"),
        (["--user", 4, "--all-users"], "one of the three"),
        (["--users", tmp_path / "none.csv"], "none.csv: the ids cannot be read"),
        (["--all-users", "-o", model], "to .parquet or .csv"),
    ]:
        done = run("top", model, *wrong)
        assert (done.returncode, says in done.stderr) == (2, True), done.stderr


def test_filters_boosts_quotas_and_diversity(model: Path, tmp_path: Path) -> None:
    loaded, rng = RatingModel.load(model), np.random.default_rng(1)
    ids = loaded.items_.ids
    kinds = np.array(["a", "b", "c"])[rng.integers(0, 3, 40)]
    columns = {"id": ids, "kind": kinds, "age": rng.integers(0, 9, 40)}
    pl.DataFrame(columns).write_csv(tmp_path / "about.csv")
    (tmp_path / "some.txt").write_text("".join(f"{item}\n" for item in [*ids[::2], 9999]))
    rules: dict[str, Any] = {
        "where": {"kind": ["a", "b"], "age": {"min": 1, "max": 7}},
        "boost": {"age": 0.1, "kind": {"b": -0.2}},
        "quota": {"kind": {"a": 2}},
        "diversity": 0.3,
    }
    options = ["--items", tmp_path / "about.csv", "--where", "kind=a", "--where", "kind=b"]
    options += ["--where", "age>=1", "--where", "age<=7", "--boost", "age:0.1"]
    options += ["--boost", "kind=b:-0.2", "--quota", "kind=a:2", "--diversity", 0.3, "-n", 6]
    person = loaded.fold_in({14: 5})
    asked = {"top": (4, ["--user", 4]), "fold-in": (person, ["--rated", "14=5"])}
    for command, (user, words) in asked.items():
        found = [row["item"] for row in answer(command, model, *words, *options)]
        assert found == loaded.recommend(user, 6, items=columns, **rules).items.tolist()
    done = run("top", model, "--user", 4, "--candidates", tmp_path / "some.txt", "--json")
    assert {row["item"] for row in json.loads(done.stdout)} <= {*ids[::2].tolist()}
    assert done.stderr == "svmp: skipped, not in the model: item 9999\n"
    done = run("top", model, "--user", 4, "--exclude", tmp_path / "some.txt", "--json")
    assert not {row["item"] for row in json.loads(done.stdout)} & {*ids[::2].tolist()}
    about = ["--items", tmp_path / "about.csv"]
    for wrong, says in [
        (["--where", "kind=a"], "need --items"),
        ([*about, "--where", "kind"], "--where must be as genre=comedy"),
        ([*about, "--where", "age>=1", "--where", "age>=2"], "two limits >= of 'age'"),
        ([*about, "--where", "age>=1", "--where", "age=2"], "= and other conditions of 'age'"),
        ([*about, "--where", "colour=red"], "there is no column 'colour'"),
        ([*about, "--quota", "kind"], "--quota must be a column"),
        ([*about, "--quota", "kind:1.5"], "and a whole number"),
        ([*about, "--quota", "kind:1", "--quota", "kind=a:2"], "'kind' twice"),
        ([*about, "--boost", "kind:1"], "--boost: the column 'kind' has text"),
        (["--items", "none.csv", "--where", "a=1"], "none.csv: the table cannot be read"),
    ]:
        done = run("top", model, "--user", 4, *wrong)
        assert (done.returncode, says in done.stderr) == (2, True), done.stderr


def test_predict_equals_the_model(model: Path, tmp_path: Path) -> None:
    loaded = RatingModel.load(model)

    def check(found: list[dict[str, Any]], users: Any, items: Any) -> None:
        mean, std = loaded.predict(users, items, return_std=True, unknown="prior")
        low, high = loaded.predict_interval(users, items, 0.8, unknown="prior")
        for name, wanted in {"mean": mean, "std": std, "low": low, "high": high}.items():
            np.testing.assert_allclose([row[name] for row in found], wanted, atol=1e-4)

    ask = ["--item", 14, "--item", 21, "--level", 0.8]
    check(answer("predict", model, "--user", 4, *ask), 4, [14, 21])
    person = loaded.fold_in({7: 5.0})
    check(answer("predict", model, "--rated", "7=5", *ask), person, [14, 21])
    pairs, out = tmp_path / "pairs.csv", tmp_path / "out.parquet"
    pairs.write_text("itemId,userId,note\n14,4,x\n21,9999,y\n")
    check(answer("predict", model, "--pairs", pairs, "--level", 0.8), [4, 9999], [14, 21])
    about = answer("predict", model, "--pairs", pairs, "--level", 0.8, "-o", out)
    assert about == [{"file": str(out), "rows": 2}]
    check(pl.read_parquet(out).to_dicts(), [4, 9999], [14, 21])
    (tmp_path / "letter.csv").write_text("Dear reader")
    (tmp_path / "words.csv").write_text("user,item\nann,3\n")
    for wrong, says in [
        ([], "give --item"),
        (["--item", 14], "give a --user"),
        (["--item", 14, "--user", 4, "--rated", "7=5"], "one of the two"),
        (["--pairs", pairs, "--user", 4], "or --pairs"),
        (["--item", 4444, "--user", 4], "no item 4444"),
        (["--item", 14, "--user", 4, "--level", 2], "between 0 and 1"),
        (["--pairs", tmp_path / "none.csv"], "none.csv: the table cannot be read"),
        (["--pairs", tmp_path / "letter.csv"], "there are no pairs"),
        (["--pairs", tmp_path / "words.csv"], "the users of this model are whole numbers"),
        (["--pairs", pairs, "-o", tmp_path / "letter.csv"], "not a table of predictions"),
    ]:
        done = run("predict", model, *wrong)
        assert (done.returncode, says in done.stderr) == (2, True), done.stderr


def test_explain_equals_the_model(model: Path) -> None:
    loaded = RatingModel.load(model)
    why = loaded.explain(4, 14)
    found = answer("explain", model, "--user", 4, "--item", 14, "-n", 3)
    assert [part["item"] for part in found["parts"]] == why.items[:3].tolist()
    whole = found["base"] + found["others"] + found["rest"]
    whole += sum(part["part"] for part in found["parts"])
    assert whole == pytest.approx(found["score"], abs=1e-3)
    assert found["score"] == pytest.approx(why.prediction, abs=1e-4)
    done = run("explain", model, "--rated", "7=5", "--rated", "21=2", "--item", 14)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("without any ratings", "rest", "score", "5"):
        assert word in done.stdout
    assert "one of the two" in run("explain", model, "--item", 14).stderr


def test_evaluate_has_every_option_of_fit() -> None:
    fit, evaluate = (options_of(name) for name in ("fit", "evaluate"))
    only_to_save = {"out", "memory", "scheduler", "wait"}
    assert set(fit) - set(evaluate) == only_to_save
    for name in set(fit) & set(evaluate):
        assert (fit[name].help, fit[name].default) == (evaluate[name].help, evaluate[name].default)


def test_help_tells_the_defaults_of_the_models() -> None:
    for name, option in options_of("fit").items():
        known = [m._defaults()[name] for m in (RatingModel, EventModel) if name in m._defaults()]
        told = re.search(r"by default (.+?)\.?$", option.help or "")
        if option.default in (None, "") and known:
            assert told or known == [None] * len(known) or name in ("columns", "duplicates"), name
        if told and known and known[0] is not None:
            text = told[1]
            same = text == str(known[0]) or (text[0].isdigit() and float(text) == known[0])
            assert same, (name, text, known)
        elif option.default is not None and known and name != "columns":
            assert option.default in (known[0], ""), name


def options_of(command: str) -> dict[str, Any]:
    group = get_command(recommend)
    return {option.name: option for option in group.commands[command].params}  # type: ignore[attr-defined]


def test_evaluate_passes_its_options_on(ratings: Path) -> None:
    plain = answer("evaluate", ratings, "--factors", 2)
    for more in (["--max-sweeps", 1], ["--noise", "shared"], ["--calibrate", 0.3]):
        other = answer("evaluate", ratings, "--factors", 2, *more)
        assert other["scores"]["model"]["RMSE"] != plain["scores"]["model"]["RMSE"]
    refused = run("evaluate", ratings, "--range", "1,3")
    assert refused.returncode == 2
    assert "ratings.csv, line 6: the rating is 4, not in 1 to 3" in refused.stderr
    assert "need --events" in run("evaluate", ratings, "--ratio", 5).stderr
    assert "with --events" in run("fit", ratings, "-o", "x", "--events", "--tol", 0.1).stderr


def test_scores_that_were_clipped_are_shown_before_too(model: Path) -> None:
    path = model.with_name("narrow.svmp")
    narrow = RatingModel.load(model, mapped=False)
    narrow.range_ = 1.0, 2.0
    narrow.save(path)
    found = answer("top", path, "--user", 4, "-n", 4)
    assert {row["score"] for row in found} == {2.0}
    raw = [row["unclipped"] for row in found]
    assert raw == sorted(raw, reverse=True)
    assert len(set(raw)) == 4


def test_update_refuses_ratings_off_the_scale(model: Path, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("user,item,rating\n1,14,5\n4,21,900\n")
    before = {path: path.read_bytes() for path in model.rglob("*.*") if path.is_file()}
    done = run("update", model, tmp_path / "more.csv")
    assert done.returncode == 2
    assert "more.csv: user 4, item 21: the rating 900 is not between 1 and 5" in done.stderr
    assert done.stderr.rstrip().endswith("fit the model with --range 1,900")
    assert {path: path.read_bytes() for path in model.rglob("*.*") if path.is_file()} == before


def test_fit_with_a_range(ratings: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.svmp"
    about = answer("fit", ratings, "-o", out, "--factors", 2, "--range", "0,10")
    assert about["ended"].startswith("stopped ")
    assert RatingModel.load(out).range_ == (0, 10)
    for wrong in ("5", "a,b", "1,2,3"):
        assert "as 1,5, not" in run("fit", ratings, "-o", out, "--range", wrong).stderr
    assert "least and the greatest" in run("fit", ratings, "-o", out, "--range", "5,1").stderr


def test_update_writes_a_new_model(model: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.csv"
    more.write_text("userId,movieId,rating\n9999,14,5\n9999,21,1\n")
    out = tmp_path / "new.svmp"
    assert answer("update", model, more, "-o", out)["users"] == 61
    assert len(RatingModel.load(model).users_) == 60
    assert len(answer("top", out, "--user", 9999, "-n", 2)) == 2


def test_all_commands_on_events(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 40, 500), rng.integers(0, 15, 500)
    item += 15 * (user % 2)  # two groups of users, with separate items
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


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            "fit {ratings} -o {out} --covariance round",
            "--covariance must be one of auto, diagonal, full",
        ),
        ("fit {ratings} -o {out} --noise loud", "--noise must be one of"),
        ("fit {ratings} -o {out} --duplicates perhaps", "--duplicates must be one of error, last"),
        ("fit {ratings} -o {out} --columns a,b", "--columns must be three or four names"),
        ("fit {ratings} -o {out} --max-sweeps inf", "--max-sweeps must be a number"),
        ("fit {ratings} -o {out} --events --at-least nan", "--at-least must be a number"),
        ("fit {ratings} -o {out} --events --noise user", "--noise and --max-sweeps cannot be used"),
        ("fit {ratings} -o {out} --text-ids rating", "--text-ids must be a list of"),
        ("fit {ratings} -o {out} --seed -1", "--seed"),
        ("fit {latin} -o {out}", "name its encoding, as --encoding latin-1"),
        ("fit {latin} -o {out} --encoding klingon", "there is no encoding 'klingon'"),
        ("fit {packed} -o {out} --max-unpacked 10", "allow more, as --max-unpacked"),
        ("fit {twice} -o {out}", "say which counts with --duplicates last or mean"),
        ("fit {odd} -o {out}", "say it with --columns, as --columns who,what,stars"),
        ("evaluate {ratings} --split sideways", "--split must be one of random, time"),
        ("evaluate {ratings} --share 2", "--share must be between 0 and 1"),
        ("evaluate {ratings} --duplicates x", "--duplicates must be one of"),
        ("top {model} --user 99999", "--user: there is no user 99999 in the model"),
        ("top {model} --user 1_0", "--user: the ids of this model are whole numbers"),
        ("top {model} --user 99999999999999999999", "--user: there is no user 9999"),
        ("top {model} --user 4 --explore wide", "--explore must be thompson or ucb"),
        ("similar {model} --item 4444", "--item: there is no item 4444 in the model"),
        ("similar {model}", "give an --item or a --user"),
        ("fold-in {model} --rated 14=nan", "--rated must be ITEM=RATING"),
        ("fold-in {model} --rated 14=99", "--rated must have ratings from 1 to 5"),
        ("top {model} --user 4 --explore ucb --width -1", "--width"),
        ("fit {ratings} -o {latin}", "is not a model of svmp's"),
        ("fold-in {model} --rated 4444=3", "--rated: there is no item 4444"),
        ("fold-in {model} --rated 14=3 --rated 14=4", "--rated has the item 14 twice"),
        ("update {model} {latin} -o {out}", "--encoding latin-1"),
        ("update {model} {words} -o {out}", "words: the ids are whole numbers, and 'ann' is not"),
        ("update {model} {odd} -o {out}", "--columns who,what,stars"),
        ("update {model} {ratings} --duplicates q -o {out}", "--duplicates must be one of"),
        ("serve {model} --titles {latin}", "--encoding latin-1"),
        ("serve {model} --token=", "--token"),
    ],
)
def test_errors_name_flags(
    command: str,
    says: str,
    model: Path,
    ratings: Path,
    tmp_path: Path,
) -> None:
    files = {
        "twice": b"user,item,rating\n1,2,3\n1,2,4\n",
        "words": b"user,item,rating\nann,14,3\n",
        "odd": b"who,what,stars\n1,2,3\n",
        "latin": "user,item,rating\nJosé,2,3\n".encode("latin-1"),
        "packed": gzip.compress(b"user,item,rating\n" + b"1,2,3\n4,5,6\n"),
    }
    for name, raw in files.items():
        (tmp_path / name).write_bytes(raw)
    places = {name: tmp_path / name for name in files}
    line = command.format(model=model, ratings=ratings, out=tmp_path / "out", **places)
    done = run(*line.split())
    assert done.returncode == 2
    assert says in done.stderr
    assert not (tmp_path / "out").exists()


def test_other_encodings_packed_files_and_ids_as_text(tmp_path: Path) -> None:
    data, out = tmp_path / "latin.csv", tmp_path / "m.svmp"
    rows = [f"José{n % 7},{2**64 + n},{1 + n % 5}" for n in range(40)]
    data.write_bytes("\n".join(["user,item,rating", *rows]).encode("latin-1"))
    flags = ("--encoding", "latin-1", "--factors", 0, "--max-sweeps", 3)
    about = answer("fit", data, "-o", out, *flags, "--text-ids", "item")
    assert (about["users"], about["items"]) == (7, 40)
    assert 1 <= about["sweeps"] <= 3
    assert len(answer("top", out, "--user", "José3", "-n", 2)) == 2
    assert len(answer("similar", out, "--item", 2**64, "-n", 2)) == 2
    assert answer("update", out, data, "--encoding", "latin-1")["items"] == 40


def test_partition_writes_parts(ratings: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    about = answer("partition", ratings, out, "--parts", 3, "--memory", "500MB")
    source = svmp.parts.parquet_files.parquet(out, by="user")
    rows = [source.rows(part) for part in range(3)]
    assert about["parts"] == len(source) == 3
    assert about["ratings"] == sum(rows) == len(read_ratings(ratings))
    assert about["ratings of the largest part"] == max(rows)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--memory", "much"], "--memory must be an amount of memory, as 4GB or 512MB, not 'much'"),
        (["--by", "rating"], "--by must be 'user' or 'item', not 'rating'"),
        (["--memory", "1KB", "--parts", 1], "with --memory, or use more --parts"),
    ],
)
def test_errors_of_partition_name_flags(
    ratings: Path, tmp_path: Path, flags: list[object], message: str
) -> None:
    done = run("partition", ratings, tmp_path / "out", *flags)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_fit_of_parts_within_memory(ratings: Path, tmp_path: Path) -> None:
    assert run("partition", ratings, tmp_path / "parts", "--parts", 3).returncode == 0
    options = ("--factors", 2, "--max-sweeps", 4)
    pattern = tmp_path / "parts" / "*.parquet"
    about = answer("fit", pattern, "-o", tmp_path / "a.svmp", "--memory", "2GB", *options)
    assert (about["ratings"], about["users"], about["items"]) == (1200, 60, 40)
    answer("fit", tmp_path / "parts", "-o", tmp_path / "b.svmp", *options)  # found to be parts
    plain = tmp_path / "plain"
    plain.mkdir()
    for file in (tmp_path / "parts").glob("part-*.parquet"):
        file.rename(plain / file.name)
    answer("fit", plain, "-o", tmp_path / "c.svmp", *options)  # of anyone's Parquet files
    one, *others = (RatingModel.load(tmp_path / f"{name}.svmp") for name in "abc")
    for other in others:
        assert np.array_equal(one.users_.side.mean, other.users_.side.mean)
    assert len(answer("top", tmp_path / "a.svmp", "--user", 4, "-n", 3)) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--memory", "lots"), "--memory must be an amount of memory"),
        (("--memory", "2GB", "--events"), "--events cannot be used with ratings in parts"),
        (("--memory", "2GB", "--encoding", "latin-1"), "--encoding, --max-unpacked and --text-ids"),
        (("--memory", "2GB"), "Parquet files, and this is none"),
    ],
)
def test_invalid_options_of_parts_are_refused(
    arguments: tuple[str, ...], message: str, ratings: Path, tmp_path: Path
) -> None:
    done = run("fit", ratings, "-o", tmp_path / "out", *arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()
