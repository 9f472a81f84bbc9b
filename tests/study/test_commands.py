"""`svmp study` on the command line: its folder, its output, and its errors."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import time

import polars as pl
import pytest

from svmp import cli

from .conftest import SVMP, TINY, svmp_study

FORMATS = ("png", "svg", "pdf", "parquet", "json")


def test_help_explains_itself():
    done = svmp_study("--help")
    assert done.returncode == 0
    for command in ("figure2", "figure3", "thresholds", "answer", "claims", "all", "draw"):
        assert command in done.stdout
    assert "svmp study all --quick --out demo" in done.stdout


def test_a_study_writes_a_page_figures_and_numbers(made):
    for name in ("figure2", "figure3", "thresholds", "answer"):
        for kind in FORMATS:
            assert (made / f"{name}.{kind}").stat().st_size > 100, f"{name}.{kind}"
    assert (made / "claims.parquet").exists()
    assert (made / "figure2.png").read_bytes()[:4] == b"\x89PNG"
    assert (made / "figure2.pdf").read_bytes()[:4] == b"%PDF"
    about = json.loads((made / "study.json").read_text())
    assert about["settings"]["seed"] == 0
    assert {"numpy", "numba", "svmp", "python"} <= set(about["versions"])
    assert not list(made.rglob("*.part*"))


def test_results_are_printed(made):
    said = (made / "said.txt").read_text()
    assert "diverged" in said
    assert "E[λ_temp] = λ*" in said
    assert str(made / "index.html") in said.replace("\n", "")


def test_every_trace_is_in_the_table_of_its_figure(made):
    table = pl.read_parquet(made / "figure2.parquet")
    runs = json.loads((made / "figure2.json").read_text())["runs"]
    assert len(runs) == 1 + 2 * 2  # full VB, and C = 1, 5 in two options
    assert table["run"].n_unique() == len(runs)
    for run in runs:
        trace = table.filter(pl.col("run") == run["run"])
        assert trace["accesses"].is_sorted()
        assert trace["bound"].min() == run["lowest"]


def test_the_same_study_again_makes_no_run(made, tmp_path):
    folder = shutil.copytree(made, tmp_path / "again")
    before = {p.name: p.read_bytes() for p in (folder / "runs").iterdir()}
    done = svmp_study("figure2", "--out", folder, *TINY)
    assert done.returncode == 0, done.stderr
    assert "0 runs made, 5 were there" in done.stdout
    assert before == {p.name: p.read_bytes() for p in (folder / "runs").iterdir()}
    assert (folder / "answer.json").exists()


@pytest.mark.slow
def test_figures_are_drawn_again_without_running(made, tmp_path):
    folder = shutil.copytree(made, tmp_path / "drawn")
    shutil.rmtree(folder / "runs")
    for path in [folder / "index.html", *folder.glob("*.svg")]:
        path.unlink()
    done = svmp_study("draw", "--out", folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "index.html").exists()
    for name in ("figure2", "figure3", "thresholds", "answer"):
        assert (folder / f"{name}.svg").read_bytes() == (made / f"{name}.svg").read_bytes()


@pytest.mark.slow
def test_ctrl_c_keeps_finished_runs(tmp_path):
    """The same numbers, whether stopped or not, and whatever the number of workers."""
    folder, whole = tmp_path / "stopped", tmp_path / "whole"
    sizes = ["--data", "netflix-shaped:0.002", "--children", "5-12", "--threads"]
    env = {**os.environ, "COLUMNS": "100"}
    command = [str(SVMP), "study", "figure2", "--out", str(folder), *sizes, "1"]
    going = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    while going.poll() is None and len(list(folder.glob("runs/*.json"))) < 3:
        time.sleep(0.005)
    going.send_signal(signal.SIGINT)
    said, _ = going.communicate(timeout=120)
    if going.returncode == 0:
        pytest.skip("the study was over before it could be stopped")
    assert going.returncode == 130
    assert "Stopped" in said
    kept = len(list(folder.glob("runs/*.json")))
    assert kept >= 3
    done = svmp_study("figure2", "--out", folder, *sizes, "2")
    assert f"{17 - kept} runs made, {kept} were there" in done.stdout, done.stderr
    assert svmp_study("figure2", "--out", whole, *sizes, "2").returncode == 0
    found, expected = (pl.read_parquet(f / "figure2.parquet") for f in (folder, whole))
    assert found.drop("seconds").equals(expected.drop("seconds"))


BAD = {
    "--data no/such/file.csv": "there is no such file",
    "--data netflix-shaped:2": "scale must be a number from 0.0005 to 1",
    "--data netflix-shaped:many": "scale must be a number",
    "--children 0": "--children",
    "--children one": "--children",
    "--children 5-2": "--children",
    "--batches 1-x": "--batches",
    "--kappa 0.5": "--kappa",
    "--kappa 2": "--kappa",
    "--factors 0": "--factors",
    "--seed -1": "--seed",
    "--users 0": "--users",
    "--max-accesses 0": "--max-accesses",
    "--duplicates perhaps": "--duplicates",
    "--threads 0": "--threads",
    "--seed x": "--seed",
    "--data {cut}": "line 3",
    "--data {nan}": "line 2",
    "--data {empty}": "the file is empty",
    "--data {named}": "--columns who,what,stars",
    "--data {twice}": "line 3: user 1 has rated item 2 already",
    "--data {twice} --seed 1": "with --duplicates last or mean",
    "--data {latin}": "line 2: this is not utf-8 text; convert it first",
}
FILES = {
    "cut": "user,item,rating\n1,2,3\n4,5\n",
    "nan": "user,item,rating\n1,2,nan\n",
    "empty": "",
    "named": "buyer,thing,grade\n1,2,3\n",
    "twice": "user,item,rating\n1,2,3\n1,2,4\n",
    "latin": "user,item,rating\nJosé,2,3\n",
}


@pytest.mark.parametrize("asked", BAD)
def test_bad_input_is_refused_in_a_sentence(asked, tmp_path, monkeypatch, capsys):
    files = {name: tmp_path / f"{name}.csv" for name in FILES}
    for name, text in FILES.items():
        files[name].write_text(text, encoding="latin-1")
    folder = tmp_path / "out"
    words = [word.format(**files) for word in asked.split()]
    monkeypatch.setattr("sys.argv", ["svmp", "study", "figure2", "--out", str(folder), *words])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert BAD[asked] in said
    assert "Traceback" not in said
    assert not folder.exists()


def test_the_executable_prints_one_sentence(tmp_path):
    done = svmp_study("all", "--out", tmp_path / "out", "--data", "no/such/file.csv")
    assert done.returncode == 2
    assert done.stderr == "svmp: no/such/file.csv: there is no such file\n"
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    mine = tmp_path / "thesis.txt"
    mine.write_text("irreplaceable")
    asked = ("figure2", "--out", tmp_path, *TINY, "--threads", "1")
    done = svmp_study(*asked)
    assert done.returncode == 2
    assert "other things" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.slow
def test_a_folder_with_other_things_is_written_to_with_force(tmp_path):
    mine = tmp_path / "thesis.txt"
    mine.write_text("irreplaceable")
    done = svmp_study("figure2", "--out", tmp_path, *TINY, "--threads", "1", "--force")
    assert done.returncode == 0, done.stderr
    assert mine.read_text() == "irreplaceable"
    assert (tmp_path / "index.html").exists()


def test_other_settings_need_another_folder(made, monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv", ["svmp", "study", "all", "--out", str(made), *TINY, "--seed", "1"]
    )
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
    assert "seed 0, not 1" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_an_impossible_folder_is_reported(place, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("in the way")
    out = str(tmp_path / place)
    monkeypatch.setattr("sys.argv", ["svmp", "study", "figure2", "--out", out, *TINY])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
    assert out in capsys.readouterr().err


@pytest.mark.slow
def test_a_full_disk_is_reported_and_finished_runs_are_kept(made, tmp_path):
    """Files may not grow beyond what a run needs: the page is too large."""
    folder = shutil.copytree(made, tmp_path / "full")
    (folder / "index.html").unlink()

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    done = svmp_study("figure2", "--out", folder, *TINY, preexec_fn=small_disk)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "kept" in done.stderr
    assert not (folder / "index.html").exists()
    assert not list(folder.rglob("*.part*"))
    assert len(list(folder.glob("runs/*.json"))) == len(list(made.glob("runs/*.json")))


@pytest.mark.slow
def test_a_file_of_ratings(tmp_path):
    """In MovieLens's format, with a name that must be escaped in HTML."""
    from svmp.datasets import netflix_shaped

    ratings = netflix_shaped(0.002)
    lines = [
        f"{u + 1}::{i + 1}::{r:g}::978300760"
        for u, i, r in zip(ratings.user, ratings.item, ratings.rating, strict=True)
    ]
    file = tmp_path / "<b>ratings & co.dat"
    file.write_text("\n".join(lines) + "\n")
    done = svmp_study(
        "figure2", "--out", tmp_path / "out", "--data", file, "--children", "5",
        "--max-accesses", "20000",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "index.html").read_text()
    assert "&lt;b&gt;ratings &amp; co.dat" in page
    assert "<b>ratings" not in page
