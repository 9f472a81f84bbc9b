"""The queue of runs, with workers that hang, die or write nonsense."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from svmp.lab import process
from svmp.lab.data import find_sources
from svmp.lab.process import RunProcess
from svmp.lab.request import read_request
from svmp.lab.runs import MOST_KEPT, MOST_RUNNING, LabRun, RunLimitReached, Runs

from .conftest import PATIENCE, SMALL

REQUEST = read_request(SMALL, find_sources())
TELL = "import json, sys, os, time; tell = lambda **m: print(json.dumps(m), flush=True); "
ROW = "tell(row=[1, 2, 3.0, -4.0]); "
END = "tell(end='{}', sentence='', bound=-4.0)"
GOOD = f"{TELL} sys.stdin.readline(); {ROW} {END.format('budget')}"
KIND = f"{TELL} sys.stdin.readline(); {ROW} sys.stdin.read(); {END.format('interrupted')}"
DEAF = f"{TELL} {ROW} time.sleep(600)"


def with_workers(code: str, play: Callable[[Runs], Any]) -> None:
    """Call a function with runs whose workers execute some Python."""

    async def main() -> None:
        runs = Runs(lambda: RunProcess([sys.executable, "-c", code]))
        try:
            await asyncio.wait_for(play(runs), PATIENCE)
        finally:
            await runs.close()

    asyncio.run(main())


async def state(run: LabRun, *wanted: str) -> None:
    while run.state not in wanted:
        await asyncio.sleep(0.02)


async def rows(run: LabRun) -> None:
    while not run.rows:
        await asyncio.sleep(0.02)


def test_a_run_is_reported_to_its_end() -> None:
    async def play(runs: Runs) -> None:
        run = runs.add(REQUEST)
        await state(run, "budget")
        assert run.rows == [[1, 2, 3.0, -4.0]]
        assert run.about()["bound"] == -4.0

    with_workers(GOOD, play)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_divergence_is_reported_before_a_safe_first_step_is_known(stopped: bool) -> None:
    async def play(runs: Runs) -> None:
        run = runs.add(REQUEST)
        await state(run, "diverged")
        assert run.about()["probing"]
        assert run.sentence == "fell; looking for a safe first step ..."
        assert run.process is not None
        process = await run.process.start()
        if stopped:
            runs.stop(run)
        else:
            assert process.stdin is not None
            process.stdin.write(b"found\n")
        while run.about()["probing"]:
            await asyncio.sleep(0.02)
        assert run.about()["state"] == "diverged"
        assert run.sentence == ("fell" if stopped else "fell; 1/64 is safe")
        assert await asyncio.wait_for(process.wait(), PATIENCE) is not None

    probe = "tell(end='diverged', sentence='fell', bound=-4.0, probing=True); "
    found = "line and tell(end='diverged', sentence='fell; 1/64 is safe', bound=-4.0)"
    code = f"{TELL} sys.stdin.readline(); {ROW} {probe} line = sys.stdin.readline(); {found}"
    with_workers(code, play)


def test_two_runs_at_a_time_and_the_others_wait() -> None:
    async def play(runs: Runs) -> None:
        made = [runs.add(REQUEST) for _ in range(MOST_RUNNING + 2)]
        assert [run.state for run in made].count("running") == MOST_RUNNING
        assert made[-1].state == "waiting"
        await rows(made[0])
        runs.stop(made[0])
        await state(made[0], "interrupted")
        await state(made[MOST_RUNNING], "running")
        assert made[-1].state == "waiting"
        runs.stop(made[-1])
        assert made[-1].about()["sentence"] == "stopped before it began"

    with_workers(KIND, play)


def test_the_number_of_runs_is_limited_and_each_has_its_own_colour() -> None:
    async def play(runs: Runs) -> None:
        made = [runs.add(REQUEST) for _ in range(MOST_KEPT)]
        assert {run.colour for run in made} == set(range(MOST_KEPT))
        with pytest.raises(RunLimitReached, match="remove one first"):
            runs.add(REQUEST)
        runs.remove(made[4])
        again = runs.add(REQUEST)
        assert again.colour == 4
        assert again.id not in {run.id for run in made}

    with_workers(KIND, play)


def test_an_unresponsive_worker_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE", 0.2)

    async def play(runs: Runs) -> None:
        run = runs.add(REQUEST)
        await rows(run)
        began = time.perf_counter()
        runs.stop(run)
        assert run.state == "stopping"
        await state(run, "interrupted")
        assert 0.4 <= time.perf_counter() - began < PATIENCE

    with_workers(DEAF, play)


DEATHS = {
    "raise MemoryError('no room')": "ended with exit code 1: MemoryError: no room",
    "os._exit(3)": "ended with exit code 3: no error message",
    "os.kill(os.getpid(), 9)": "ended by signal 9: no error message",
    "print('nonsense', flush=True); time.sleep(600)": "worker process: b'nonsense",
    "print(3, flush=True); time.sleep(600)": "worker process: b'3",
    "print('x' * 100_000, flush=True); time.sleep(600)": "unexpected output",
}


@pytest.mark.parametrize("death", DEATHS)
def test_a_worker_that_dies_is_reported_and_its_rows_are_kept(death: str) -> None:
    async def play(runs: Runs) -> None:
        run = runs.add(REQUEST)
        await state(run, "failed")
        assert DEATHS[death] in run.about()["sentence"]
        assert len(run.rows) == 1
        assert run.process is not None
        assert (await run.process.start()).returncode is not None

    with_workers(f"{TELL} {ROW} {death}", play)


def test_a_worker_that_cannot_be_started_is_reported() -> None:
    async def main() -> None:
        runs = Runs(lambda: RunProcess(["/nowhere/python"]))
        run = runs.add(REQUEST)
        await state(run, "failed")
        assert "could not be started" in run.about()["sentence"]
        await runs.close()

    asyncio.run(main())


def test_a_spare_worker_takes_the_next_run() -> None:
    async def play(runs: Runs) -> None:
        runs.keep_a_spare()
        spare = runs._spare
        run = runs.add(REQUEST)
        assert run.process is spare
        assert runs._spare not in (spare, None)
        await state(run, "budget")

    with_workers(GOOD, play)


def test_the_first_update_has_everything_and_later_ones_what_is_new() -> None:
    async def play(runs: Runs) -> None:
        one = runs.add(REQUEST)
        await rows(one)
        page = runs.follow()
        first = await anext(page)
        assert [run["id"] for run in first["changed"]] == ["1"]
        assert first["changed"][0]["rows"] == one.rows
        two = runs.add(REQUEST)
        await rows(two)
        await asyncio.sleep(0.2)
        second = await anext(page)
        assert second["kept"] == ["1", "2"]
        assert [run["id"] for run in second["changed"]] == ["2"]
        runs.remove(one)
        assert (await anext(page))["kept"] == ["2"]

    with_workers(KIND, play)


def test_closing_ends_every_process_and_every_stream() -> None:
    async def main() -> None:
        runs = Runs(lambda: RunProcess([sys.executable, "-c", KIND]))
        runs.keep_a_spare()
        made = [runs.add(REQUEST) for _ in range(3)]
        removed = made.pop(0)
        await rows(removed)
        runs.remove(removed)
        page = runs.follow()
        await anext(page)
        workers = [run.process for run in [removed, *made] if run.process] + [runs._spare]
        await runs.close()
        assert [update async for update in page] == []
        processes = [await worker.start() for worker in workers if worker]
        assert all(process.returncode is not None for process in processes)
        assert {run.state for run in made} == {"interrupted"}

    asyncio.run(main())
