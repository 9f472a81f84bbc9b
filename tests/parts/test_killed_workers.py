"""Workers that are killed at random moments of a fit, and a scheduler that is gone for good."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Timer
from typing import Any

import numpy as np
import pytest

import svmp
from tests.parts import test_chains
from tests.parts.networks import CASES

distributed = pytest.importorskip("distributed", reason="Dask distributed is not installed")

from svmp.parts.cluster import Cluster  # noqa: E402
from svmp.parts.waiting import LostRound  # noqa: E402
from svmp.parts.workers import Workers  # noqa: E402
from tests.parts.test_workers import cluster, have_two_workers, same_bits  # noqa: E402

SWEEPS, LATEST = 6, 0.4
"""Number of sweeps, and of seconds after the beginning of each until a worker is killed."""
SCHEDULER = """
import time
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        print(cluster.scheduler_address, flush=True)
        time.sleep(600)
"""


def chain() -> svmp.Parts:
    rows = svmp.split(test_chains.TABLE, by="night", parts=6)
    return svmp.Parts(test_chains.declare, rows, own=["z"], groups=6)


def divided(name: str) -> Callable[[], svmp.Parts]:
    return lambda: CASES[name]().divided(groups=len(CASES[name]().parts))


FITS: dict[str, tuple[Callable[[], svmp.Parts], dict[str, Any]]] = {
    "mixture": (divided("mixture"), {}),
    "mixture, plain": (divided("mixture"), {"kernels": False}),
    "hierarchy": (divided("schools"), {}),
    "regression": (divided("regression"), {}),
    "chain": (chain, {"init": {"mu": [0.0, 5.0]}}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_workers_killed_at_random_moments_change_no_bit(name: str) -> None:
    parts, given = FITS[name]
    options = {"max_sweeps": SWEEPS, "tol": 0, "bound_every": 1} | given
    expected = svmp.fit(parts(), svmp.FullVB(), **options)
    chance, killed = random.Random(name), list[int]()
    with cluster(2) as client:

        def kill(pid: int) -> None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

        def watch(row: dict[str, float]) -> None:
            have_two_workers(client)
            one = chance.choice(sorted(pids(client)))
            timer = Timer(chance.uniform(0, LATEST), kill, [one])
            timer.daemon = True
            timer.start()

        found = svmp.fit(parts(), svmp.FullVB(), client=client, watch=watch, **options)
    assert len(killed) >= SWEEPS // 2
    assert found.trace["bound"].tolist() == expected.trace["bound"].tolist()
    assert found.bound_terms == expected.bound_terms
    for variable in expected.posteriors:
        np.testing.assert_array_equal(found.mean(variable), expected.mean(variable))


def pids(client: Any) -> set[int]:
    return set(client.run(os.getpid, on_error="ignore").values())


def test_workers_that_are_all_replaced_between_two_sweeps_change_no_bit() -> None:
    case, options = CASES["mixture"](), {"max_sweeps": 4, "tol": 0, "bound_every": 1}
    parts = case.divided(groups=len(case.parts))
    expected = svmp.fit(parts, svmp.FullVB(), **options)
    with cluster(2) as client:
        workers = Workers(client)

        def replace(row: dict[str, float]) -> None:
            if row["iteration"] == 2:
                for pid in pids(client):
                    os.kill(pid, signal.SIGKILL)
                client.run_on_scheduler(no_tasks_run)
                have_two_workers(client)

        begun = time.monotonic()
        found = svmp.fit(parts, svmp.FullVB(), client=workers, watch=replace, **options)
    assert time.monotonic() - begun < workers.deadline / 2
    assert workers.transfer.retries >= 1
    assert same_bits(found, expected)


async def no_tasks_run(dask_scheduler: Any) -> None:
    """Wait until tasks have found no worker at all, and wait for addresses that are gone."""
    import asyncio

    for _ in range(600):
        if dask_scheduler.unrunnable:
            return
        await asyncio.sleep(0.01)


def test_a_round_is_lost_if_its_tasks_may_wait_for_a_worker_that_is_gone() -> None:
    cluster = Cluster(client=None, _checked={"a", "b"})  # type: ignore[arg-type]
    cluster._check_lost({"a", "c"})
    with pytest.raises(LostRound, match="all workers were lost"):
        cluster._check_lost({"c", "d"})
    cluster._homes.suspects = {"b"}  # tasks may then run on "a" alone
    cluster._check_lost({"a"})
    with pytest.raises(LostRound, match="a was lost"):
        cluster._check_lost({"b", "c"})


def test_a_worker_that_joins_and_is_lost_at_once_is_not_the_end() -> None:
    class Few:
        """A client that has a worker for a moment now and then, and at last for good."""

        status, seen = "running", iter([{}, {"a": 1}, {}, {}, {"b": 1}])

        def nthreads(self) -> dict[str, int]:
            return next(self.seen)

        def run(self, function: Callable[[], Any], workers: list[str], **_: Any) -> dict[str, Any]:
            return {worker: OSError() for worker in workers}

    workers = Cluster(Few())  # type: ignore[arg-type]
    workers._check_workers()
    with pytest.raises(LostRound):
        workers._check_workers()
    assert workers._checked == {"b"}


def test_new_workers_that_do_not_answer_get_no_tasks() -> None:
    """All workers are asked at once: those that hang are asked before any of them is given up."""
    answers, asked = Event(), list[str]()

    class Hanging:
        """A client whose workers "b" and "d" do not answer; "c" does after both were asked."""

        def run(self, function: Callable[[], Any], workers: list[str], **_: Any) -> dict[str, Any]:
            asked.extend(workers if len(workers) == 1 else ())
            if {"b", "d"} & set(workers):
                answers.wait()
            while "c" in workers and not {"b", "d"} <= set(asked):
                time.sleep(0.001)
            return {worker: function() for worker in workers}

    cluster = Cluster(Hanging(), without_workers=1.0)  # type: ignore[arg-type]
    cluster._check_versions(["a", "b", "c", "d"])
    answers.set()
    assert cluster._homes.suspects == {"b", "d"}
    assert cluster._homes.able(["a", "b", "c", "d"]) == ["a", "c"]


@pytest.mark.slow
def test_a_scheduler_that_is_gone_ends_the_fit_soon(tmp_path: Path) -> None:
    script, path = tmp_path / "scheduler.py", tmp_path / "run.svmp"
    script.write_text(SCHEDULER)
    case, killed = CASES["factorization"](), list[float]()
    options: dict[str, Any] = {"max_sweeps": 6, "tol": 0, "bound_every": 1}
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    client = distributed.Client(process.stdout.readline().strip())

    def kill(row: dict[str, float]) -> None:
        if row["iteration"] == 3:
            process.kill()
            process.communicate()  # closes its output
            killed.append(time.monotonic())

    workers = Workers(client, without_workers=15)
    with pytest.raises(svmp.SvmpError, match=r"scheduler .*resume=.*run\.svmp"):
        svmp.fit(
            case.divided(groups=4), svmp.FullVB(), client=workers, watch=kill, checkpoint=path,
            every=1, **options,
        )  # fmt: skip
    assert time.monotonic() - killed[0] < workers.deadline / 2
    client.close(timeout=1)
    expected = svmp.fit(case.divided(groups=4), svmp.FullVB(), **options)
    resumed = svmp.fit(case.divided(groups=4), resume=path, **options)
    assert resumed.bound_terms == expected.bound_terms
