"""Several processes update one saved model: none is lost, none is half written, readers go on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from svmp.errors import FileError
from svmp.recommend import RatingModel, load, lock
from svmp.recommend.files import version_at
from tests.recommend.tools import copied, fitted

ROOT = Path(__file__).parents[2]
SVMP = Path(sys.executable).parent / "svmp"
FEW, MANY = 4, 16
COMMANDS = """
import os, sys
from pathlib import Path
import svmp.recommend.commands.learn, svmp.recommend.update, svmp.ratings.text
from svmp.cli import main
from svmp.recommend import load

folder, writers = Path(sys.argv[1]), int(sys.argv[2])
begin, go = os.pipe()
children = []
for n in range(writers):
    child = os.fork()
    if not child:
        os.close(go)
        os.read(begin, 1)  # ends when all are there
        sys.argv = ["svmp", "recommend", "update", str(folder / "m.svmp"), str(folder / f"{n}.csv")]
        main()
        os._exit(0)
    children.append(child)
os.close(begin)
os.close(go)
seen = []
while children:  # as a reader
    seen.append(len(load(folder / "m.svmp", mapped=False).users_))
    child, status = os.waitpid(-1, os.WNOHANG)
    if child:
        children.remove(child)
        print("ended", status)
print("seen", *sorted(set(seen)), "in order", seen == sorted(seen))
"""
KILLED = """
import os, signal, sys
from pathlib import Path
import polars
from safetensors.numpy import save_file
from svmp.recommend import load

path = Path(sys.argv[1])
WATCHED = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree")
for last in range(1, 1000):
    child = os.fork()  # Polars has no threads yet, which would not be in the child
    if not child:
        steps = 0
        def watch(event, arguments):
            global steps
            if event in WATCHED:
                steps += 1
                if steps == last:
                    os.kill(os.getpid(), signal.SIGKILL)
        model = load(path, mapped=False)  # as the one before has left it
        print(last - 1, model.offset_, flush=True)
        model.offset_ = float(last)
        sys.addaudithook(watch)
        model.save(path, wait=0)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status != signal.SIGKILL:
        break
print(last, status)
"""


def python(code: str, *arguments: object) -> list[list[str]]:
    """Run a script on one thread; return the words of each line."""
    variables = {"PYTHONPATH": str(ROOT), "SVMP_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    env = {**os.environ, **variables, "COLUMNS": "200"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def write_ratings(folder: Path, writers: int) -> None:
    """Write a file for each writer: two ratings by a new user."""
    for n in range(writers):
        text = f"user,item,rating\n{9000 + n},14,5\n{9000 + n},21,{1 + n % 5}\n"
        (folder / f"{n}.csv").write_text(text)


def check_all_are_there(path: Path, writers: int) -> None:
    found = load(path)
    new = 9000 + np.arange(writers)
    assert len(found.users_) == 60 + writers
    keys = found.users_.keys(new)
    rows = [found.history_.rows(int(key)) for key in keys]
    kept = [found.history_.rating[row].tolist() for row in rows]
    assert kept == [[5.0, 1.0 + n % 5] for n in range(writers)]
    assert version_at(path).startswith(f"v{1 + writers}-")
    assert {p.name for p in path.iterdir()} == {"model.json", version_at(path)}


def test_updates_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    fitted().save(tmp_path / "m.svmp")
    write_ratings(tmp_path, FEW)
    lines = python(COMMANDS, tmp_path, FEW)
    assert lines.count(["ended", "0"]) == FEW
    seen, order = lines[-1][1:-3], lines[-1][-3:]
    assert {*map(int, seen)} <= {*range(60, 61 + FEW)}
    assert order == ["in", "order", "True"]
    check_all_are_there(tmp_path / "m.svmp", FEW)
    assert {p.suffix for p in tmp_path.iterdir()} == {".svmp", ".csv"}


@pytest.mark.slow
def test_commands_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    fitted().save(tmp_path / "m.svmp")
    write_ratings(tmp_path, MANY)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SVMP_THREADS": "1"}
    update = [SVMP, "recommend", "update", tmp_path / "m.svmp"]
    commands = [
        subprocess.Popen([*update, tmp_path / f"{n}.csv"], env=env, stdout=subprocess.DEVNULL)
        for n in range(MANY)
    ]
    assert {command.wait(600) for command in commands} == {0}
    check_all_are_there(tmp_path / "m.svmp", MANY)


def test_writer_killed_at_any_step_leaves_a_whole_model(tmp_path: Path) -> None:
    """Kill it at its first access to a file, at its second, and so on until it ends."""
    path = tmp_path / "m.svmp"
    fitted().save(path)
    offset = load(path).offset_
    *lines, end = python(KILLED, path)
    assert len(lines) > 15
    for killed, found in lines:
        assert float(found) in (offset, float(killed))  # the model before, or the new one
        offset = float(found)
    assert end == [str(len(lines)), "0"]
    assert load(path).offset_ == len(lines)
    assert {p.name for p in path.iterdir()} == {"model.json", version_at(path)}


def test_model_that_another_has_replaced_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "m.svmp"
    fitted().save(path)
    one, two = load(path), load(path)
    one.update(([9001], [14], [5.0])).save(path)
    two.update(([9002], [14], [5.0]))
    with pytest.raises(FileError, match=r"m\.svmp: another process has saved a newer version"):
        two.save(path)
    assert load(path).users_.ids[-1] == 9001
    two.save(tmp_path / "other.svmp")
    one.update(([9003], [14], [5.0])).save(path)  # it goes on from what it saved
    assert load(path).users_.ids[-2:].tolist() == [9001, 9003]
    fresh = RatingModel(2, max_sweeps=2, progress=False).fit(([1, 2], [1, 2], [3.0, 4.0]))
    fresh.save(path)  # replaces any
    with pytest.raises(FileError, match="newer version"):
        one.update(([9004], [14], [5.0])).save(path)


def test_lock_is_held_around_load_and_save(tmp_path: Path) -> None:
    path = tmp_path / "m.svmp"
    fitted().save(path)
    code = f"import svmp.recommend as r; r.load({str(path)!r}).save({str(path)!r}, wait=0.1)"
    with lock(path):
        model = load(path).update(([9001], [14], [5.0]))
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        assert f"process {os.getpid()} is still writing there after 0.1 seconds" in done.stderr
        assert "or raise wait" in done.stderr
        model.save(path)
    assert load(path).users_.ids[-1] == 9001


def test_saved_model_of_format_1_is_replaced(tmp_path: Path) -> None:
    from svmp.recommend.service import demo

    path = copied(demo.MODEL, tmp_path / "m.svmp")
    assert "v1" not in version_at(path)
    load(path).save(path)
    assert {p.name for p in path.iterdir()} == {"model.json", version_at(path)}
    assert version_at(path).startswith("v1-")
