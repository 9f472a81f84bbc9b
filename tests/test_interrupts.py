"""Ctrl-C and SIGTERM on the command line: partial results, one sentence, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from svmp.recommend import EventModel, RatingModel, load
from tests.recommend.tools import drawn

ROOT = Path(__file__).parents[1]
SVMP = Path(sys.executable).parent / "svmp"
PATIENCE = 1200
"""Seconds after which a process that does not end is killed."""
MODULE = ["-m", "svmp"]
WAITING = """
import sys, time
from svmp.inference.running import stopping
from svmp.fitting.online import Online
from svmp.inference.running.run import Run
from svmp.cli import main

where = sys.argv.pop(1)

def waiting(kind):
    usual = kind.advance
    def advance(self, *more):
        done = usual(self, *more)
        global where
        if where == f"{kind.__name__} {self.state.iteration}":
            print(where, file=sys.stderr, flush=True)
            where = None
            while stopping._innermost is None or not stopping._innermost.pressed:
                time.sleep(0.01)
        return done
    kind.advance = advance

waiting(Online)
waiting(Run)
main()
"""
"""The command line, which waits for Ctrl-C at the end of some sweep."""
BOTH = pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])


def during(sweep: str, *arguments: object, sent: int = signal.SIGINT) -> tuple[str, str]:
    """Press Ctrl-C at the end of a sweep; return the output, and the last sentence."""
    return Command("-c", WAITING, sweep, *arguments, sent=sent).press(sweep).end()


class Command:
    """A running command, and the signal that it is sent; it may have been started ignoring some."""

    def __init__(
        self,
        *arguments: object,
        sent: int = signal.SIGINT,
        ignored: tuple[int, ...] = (),
        **variables: str,
    ) -> None:
        self.sent = sent

        def prepare() -> None:
            for number in (signal.SIGINT, signal.SIGTERM):  # as at a terminal
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        self.said: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, "SVMP_THREADS": "1", **variables},
            preexec_fn=prepare,
        )
        self._killer = threading.Timer(PATIENCE, self.process.kill)
        self._killer.start()

    def press(self, *after: str) -> Command:
        """Press Ctrl-C once a line on stderr contains all these words."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if all(word in line for word in after):
                self.process.send_signal(self.sent)
                return self
        raise AssertionError("".join(self.said))

    def end(self) -> tuple[str, str]:
        """Wait for its end; return what it wrote to stdout, and its last sentence."""
        out, said = self.process.communicate()
        self._killer.cancel()
        lines = [line for line in "".join([*self.said, said]).splitlines() if line]
        # A shell calls both 130, or 143: Python ends by the signal itself if Ctrl-C came within an
        # exec(), and after SIGTERM.
        codes = (128 + self.sent, -self.sent)
        assert self.process.returncode in codes, (self.process.returncode, lines)
        assert "Traceback" not in said
        words = [line for line in lines if not line.startswith("import time:")]
        assert words, lines
        assert words[-1].startswith("svmp: interrupted"), lines
        return out, words[-1]


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "ratings.csv"
    table = drawn(0)
    rows = np.column_stack([table.user, table.item, table.rating.astype(int)])
    np.savetxt(path, rows, "%d", ",", header="user,item,rating", comments="")
    return path


@pytest.mark.parametrize("start", [MODULE, [SVMP]], ids=["module", "script"])
def test_interrupt_during_the_first_imports(start: list[Any]) -> None:
    if start == [SVMP] and not SVMP.exists():
        pytest.skip("svmp is not installed")
    command = Command("-X", "importtime", *start, "--help").press("import time:", "svmp.errors")
    assert command.end() == ("", "svmp: interrupted")


IMPORTING = """
import sys, time

class Waiting:
    def find_spec(self, name, path=None, target=None):
        if name == seen:
            sys.meta_path.remove(self)
            print("importing", name, file=sys.stderr, flush=True)
            for _ in range(60_000):  # a signal just before one long sleep would not end it
                time.sleep(0.01)

seen = sys.argv[1]
sys.argv[:2] = ["svmp"]
sys.meta_path.insert(0, Waiting())
from svmp.cli import main
main()
"""
"""The command line, which waits for Ctrl-C where it imports some module."""


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (["--help"], "svmp.errors"),
        (["lab", "--no-open"], "svmp.study.netflix"),
        (["recommend", "serve"], "svmp.recommend.service.app"),
        (["recommend", "top", "nothing", "--user", "1"], "svmp.recommend.files"),
        (["study", "all", "--out", "nothing"], "svmp.study.settings"),
    ],
)
def test_interrupt_during_imports(arguments: list[str], seen: str) -> None:
    command = Command("-c", IMPORTING, seen, *arguments).press("importing", seen)
    assert command.end() == ("", "svmp: interrupted")


def test_importing_svmp_does_not_change_signal_handling() -> None:
    code = "import signal, svmp; print(signal.getsignal(signal.SIGINT))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert "default_int_handler" in done.stdout


@pytest.mark.parametrize(
    ("events", "sent"),
    [
        ([], signal.SIGINT),
        ([], signal.SIGTERM),
        (["--events"], signal.SIGINT),
        pytest.param(["--events"], signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_interrupted_fit_saves_the_model(
    ratings: Path, events: list[str], sent: int, tmp_path: Path
) -> None:
    out = tmp_path / "model"
    fit = ["recommend", "fit", ratings, "-o", out, "--factors", 2, *events]
    said, last = during("Online 2", *fit, sent=sent)
    assert last.endswith(": the saved model is what was learned until then")
    assert "users" in said
    model = load(out)
    top = model.recommend(model.users_.ids, 3)
    assert np.isfinite(top.scores).all()


def test_sigterm_saves_the_model_where_ctrl_c_is_ignored(ratings: Path, tmp_path: Path) -> None:
    """As of a command that a shell script has started in the background."""
    out = tmp_path / "model"
    fit = ["recommend", "fit", ratings, "-o", out, "--factors", 2]
    command = Command(
        "-c", WAITING, "Online 2", *fit, sent=signal.SIGTERM, ignored=(signal.SIGINT,)
    )
    _, last = command.press("Online 2").end()
    assert last.endswith(": the saved model is what was learned until then")
    assert len(load(out).users_) == 60


@pytest.mark.slow
def test_interrupt_is_reported_in_json(ratings: Path, tmp_path: Path) -> None:
    fit = ["recommend", "fit", ratings, "-o", tmp_path / "m", "--factors", 2, "--json"]
    said, _ = during("Online 2", *fit)
    assert '"interrupted": true' in said


@pytest.mark.slow
@BOTH
def test_interrupted_evaluation_prints_scores(ratings: Path, sent: int) -> None:
    arguments = ["recommend", "evaluate", ratings, "--factors", 2]
    said, last = during("Online 2", *arguments, sent=sent)
    assert last.endswith(": the scores are those of the model that was learned until then")
    assert "popularity" in said


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("kind", [RatingModel, EventModel])
def test_interrupted_update_leaves_the_model_unchanged(
    ratings: Path, kind: Any, sent: int, tmp_path: Path
) -> None:
    out = tmp_path / "model"
    few = {"iterations": 2} if kind is EventModel else {"max_sweeps": 3}
    kind(2, progress=False, threads=1, **few).fit(drawn(0)).save(out)
    before = contents(out)
    more = tmp_path / "more.csv"
    more.write_text("user,item,rating\n9999,14,5\n9999,21,1\n4,21,2\n")
    sweep = "Online 1" if kind is EventModel else "Run 1"
    update = ["recommend", "update", out, more, "--duplicates", "last"]
    said, last = during(sweep, *update, sent=sent)
    assert (said, last) == ("", f"svmp: interrupted: {out} is unchanged")
    assert contents(out) == before
    assert {file.name for file in tmp_path.iterdir()} == {"model", "more.csv"}


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, by their path in it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (["recommend", "partition", "{ratings}", "{out}"], "svmp.ratings.partitioning"),
        (["warm"], "svmp.warm.recipes"),
        (["study", "all", "--out", "{out}"], "svmp.study.settings"),
    ],
)
def test_sigterm_ends_other_commands_with_a_sentence(
    arguments: list[str], seen: str, ratings: Path, tmp_path: Path
) -> None:
    words = [word.format(ratings=ratings, out=tmp_path / "out") for word in arguments]
    command = Command("-c", IMPORTING, seen, *words, sent=signal.SIGTERM).press("importing", seen)
    assert command.end()[0] == ""
    assert not (tmp_path / "out").exists()


def test_programs_that_import_svmp_keep_their_sigterm() -> None:
    code = (
        "import signal, svmp; from svmp.inference.running.stopping import catch_interrupt\n"
        "with catch_interrupt(): print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "True\n"


@pytest.mark.slow
@pytest.mark.parametrize("events", [[], ["--events"]], ids=["ratings", "events"])
def test_second_interrupt_during_compilation_ends_the_command(
    ratings: Path, events: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "model"
    fit = ["recommend", "fit", ratings, "-o", out, "--factors", 2, *events]
    command = Command(*MODULE, *fit, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    _, last = command.press("compiling loops").press("Ctrl-C again").end()
    assert last == "svmp: interrupted: there is no model yet, and nothing is saved"
    assert not out.exists()


@pytest.mark.slow
@BOTH
def test_one_interrupt_during_compilation_still_gives_a_model(
    ratings: Path, sent: int, tmp_path: Path
) -> None:
    out = tmp_path / "model"
    fit = ["recommend", "fit", ratings, "-o", out, "--factors", 2]
    command = Command(*MODULE, *fit, sent=sent, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    command.press("compiling loops").end()
    assert len(load(out).users_) == 60
