"""The queue, and workers that hang, die or talk nonsense; each a few lines of Python."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from svmp.lab import process as worker_process
from svmp.lab.data import find_sources
from svmp.lab.plan import read_plan
from svmp.lab.process import Worker
from svmp.lab.runs import MOST_KEPT, MOST_RUNNING, Run, Runs, TooMany

from .conftest import PATIENCE, SMALL

PLAN = read_plan(SMALL, find_sources())
TELL = "import json, sys, os, time; tell = lambda **m: print(json.dumps(m), flush=True); "
ROW = "tell(row=[1, 2, 3.0, -4.0]); "
END = "tell(end='{}', sentence='', bound=-4.0)"
GOOD = f"{TELL} sys.stdin.readline(); {ROW} {END.format('budget')}"
KIND = f"{TELL} sys.stdin.readline(); {ROW} sys.stdin.read(); {END.format('interrupted')}"
DEAF = f"{TELL} {ROW} time.sleep(600)"


def with_workers(code: str, play: Callable[[Runs], Any]) -> None:
    """Let something happen to runs whose workers run some Python."""

    async def main() -> None:
        runs = Runs(lambda: Worker([sys.executable, "-c", code]))
        try:
            await asyncio.wait_for(play(runs), PATIENCE)
        finally:
            await runs.close()

    asyncio.run(main())


async def state(run: Run, *wanted: str) -> None:
    while run.state not in wanted:
        await asyncio.sleep(0.02)


async def rows(run: Run) -> None:
    while not run.rows:
        await asyncio.sleep(0.02)


def test_a_run_is_heard_to_its_end() -> None:
    async def play(runs: Runs) -> None:
        run = runs.add(PLAN)
        await state(run, "budget")
        assert run.rows == [[1, 2, 3.0, -4.0]]
        assert run.about()["bound"] == -4.0

    with_workers(GOOD, play)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_divergence_is_heard_before_it_is_known_what_is_safe(stopped: bool) -> None:
    async def play(runs: Runs) -> None:
        run = runs.add(PLAN)
        await state(run, "diverged")
        assert run.about()["probing"]
        assert run.sentence == "fell; looking for a safe first step ..."
        assert run.worker is not None
        process = await run.worker.start()
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


def test_only_so_many_run_at_once_and_the_others_follow() -> None:
    async def play(runs: Runs) -> None:
        made = [runs.add(PLAN) for _ in range(MOST_RUNNING + 2)]
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


def test_only_so_many_are_kept_and_each_has_a_colour_of_its_own() -> None:
    async def play(runs: Runs) -> None:
        made = [runs.add(PLAN) for _ in range(MOST_KEPT)]
        assert {run.colour for run in made} == set(range(MOST_KEPT))
        with pytest.raises(TooMany, match="remove one first"):
            runs.add(PLAN)
        runs.remove(made[4])
        again = runs.add(PLAN)
        assert again.colour == 4
        assert again.id not in {run.id for run in made}

    with_workers(KIND, play)


def test_a_worker_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "GRACE", 0.2)

    async def play(runs: Runs) -> None:
        run = runs.add(PLAN)
        await rows(run)
        began = time.perf_counter()
        runs.stop(run)
        assert run.state == "stopping"
        await state(run, "interrupted")
        assert 0.4 <= time.perf_counter() - began < PATIENCE

    with_workers(DEAF, play)


DEATHS = {
    "raise MemoryError('no room')": "ended with exit code 1: MemoryError: no room",
    "os._exit(3)": "ended with exit code 3: it left no word why",
    "os.kill(os.getpid(), 9)": "ended by signal 9: it left no word why",
    "print('nonsense', flush=True); time.sleep(600)": "none of its own: b'nonsense",
    "print(3, flush=True); time.sleep(600)": "none of its own: b'3",
    "print('x' * 100_000, flush=True); time.sleep(600)": "none of its own",
}


@pytest.mark.parametrize("death", DEATHS)
def test_a_worker_that_dies_is_reported_and_its_rows_are_kept(death: str) -> None:
    async def play(runs: Runs) -> None:
        run = runs.add(PLAN)
        await state(run, "failed")
        assert DEATHS[death] in run.about()["sentence"]
        assert len(run.rows) == 1
        assert run.worker is not None
        assert (await run.worker.start()).returncode is not None

    with_workers(f"{TELL} {ROW} {death}", play)


def test_a_worker_that_cannot_be_started_is_reported() -> None:
    async def main() -> None:
        runs = Runs(lambda: Worker(["/nowhere/python"]))
        run = runs.add(PLAN)
        await state(run, "failed")
        assert "could not be started" in run.about()["sentence"]
        await runs.close()

    asyncio.run(main())


def test_a_spare_worker_takes_the_next_run() -> None:
    async def play(runs: Runs) -> None:
        runs.keep_a_spare()
        spare = runs._spare
        run = runs.add(PLAN)
        assert run.worker is spare
        assert runs._spare not in (spare, None)
        await state(run, "budget")

    with_workers(GOOD, play)


def test_a_page_hears_everything_first_and_then_what_is_new() -> None:
    async def play(runs: Runs) -> None:
        one = runs.add(PLAN)
        await rows(one)
        page = runs.follow()
        first = await anext(page)
        assert [run["id"] for run in first["changed"]] == ["1"]
        assert first["changed"][0]["rows"] == one.rows
        two = runs.add(PLAN)
        await rows(two)
        await asyncio.sleep(0.2)
        second = await anext(page)
        assert second["kept"] == ["1", "2"]
        assert [run["id"] for run in second["changed"]] == ["2"]
        runs.remove(one)
        assert (await anext(page))["kept"] == ["2"]

    with_workers(KIND, play)


def test_closing_ends_every_process_and_every_page() -> None:
    async def main() -> None:
        runs = Runs(lambda: Worker([sys.executable, "-c", KIND]))
        runs.keep_a_spare()
        made = [runs.add(PLAN) for _ in range(3)]
        removed = made.pop(0)
        await rows(removed)
        runs.remove(removed)
        page = runs.follow()
        await anext(page)
        workers = [run.worker for run in [removed, *made] if run.worker] + [runs._spare]
        await runs.close()
        assert [update async for update in page] == []
        processes = [await worker.start() for worker in workers if worker]
        assert all(process.returncode is not None for process in processes)
        assert {run.state for run in made} == {"interrupted"}

    asyncio.run(main())
