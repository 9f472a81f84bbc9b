"""What runs on a Dask worker: one task at a time in a process, as pure functions.

A task gets the context of the fit, what is common to a round, the rows of its group if they are not
read from files, and its job. It changes nothing that it was given, so that it can be run again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from distributed import get_worker

from svmp.errors import SvmpError
from svmp.kernels.machine.threads import use_threads
from svmp.parts import shards, versions
from svmp.parts.cache import forget
from svmp.parts.context import Context, Declare, Job, Own, SharedQ, Unit, Visited
from svmp.parts.description import PartDims
from svmp.parts.sources import Source
from svmp.parts.tasks import describe_parts

Value = TypeVar("Value")
_one_at_a_time = Lock()


@dataclass(frozen=True)
class SentRows(Source):
    """Parts whose rows were sent to this process, by number.

    Attributes
    ----------
    names, sizes, rows_of
        By part its name, its number of rows (None if it is unknown), and its rows.
    """

    names: Mapping[int, str]
    sizes: Mapping[int, int | None]
    rows_of: Mapping[int, Any]

    def __len__(self) -> int:
        return len(self.rows_of)

    def load(self, part: int) -> Any:
        return self.rows_of[part]

    def name(self, part: int) -> str:
        return self.names[part]

    def rows(self, part: int) -> int | None:
        return self.sizes[part]

    def fingerprint(self, part: int) -> str:
        return ""


NO_ROWS = SentRows({}, {}, {})
"""In place of a source whose rows are sent for each group."""


@dataclass(frozen=True, eq=False)
class Round:
    """What is common to the tasks of a round.

    Attributes
    ----------
    task, arguments
        The function to call, and its arguments after q and the job.
    versions
        The versions of the coordinator.
    """

    task: Callable[..., Any]
    arguments: tuple[Any, ...]
    versions: dict[str, str]


@dataclass(frozen=True, eq=False)
class Sent:
    """A value in an envelope, in which Dask does not look for tasks."""

    value: Any


def hold(value: Value) -> Value:
    """Return a value: a task that can be computed again wherever it was lost."""
    return value


def collect(about: Sent, *rows: Any) -> SentRows:
    """Return the rows of a group of parts."""
    numbers, names, sizes = about.value
    found = [each.value if isinstance(each, Sent) else each for each in rows]
    return SentRows(names, sizes, dict(zip(numbers, found, strict=True)))


def describe_group(common: Sent, rows: SentRows | None, numbers: Sent) -> list[PartDims | None]:
    """Describe the parts of a group."""
    declare: Declare
    declare, source, ours = common.value
    _check(ours)
    with _one_at_a_time, use_threads(_threads(), tell=False):
        return describe_parts(declare, source if rows is None else rows, numbers.value)


def run_job(
    context: Context,
    shared: SharedQ,
    common: Round,
    rows: SentRows | None,
    job: Sent,
    own: dict[Unit, Own] | None,
) -> Any:
    """Run the task of a round on the parts of a job, with the q of own variables, if it is kept."""
    _check(common.versions)
    here = context if rows is None else replace(context, source=rows)
    mine: Job = job.value
    before = mine.own if own is None else own
    if before is not None:  # tasks may change these arrays
        copied = {p: {n: a.copy() for n, a in arrays.items()} for p, arrays in before.items()}
        mine = mine._replace(own=copied)
    quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")
    with _one_at_a_time, quiet, use_threads(_threads(), tell=False):
        return common.task(here, shared, mine, *common.arguments)


def add_lines(shard: Sent, *every: Visited) -> Visited:
    """Return the sums of neighbouring groups for the lines of a shard."""
    return shards.add_lines(shard.value, every)


def solve_lines(
    shared: SharedQ, common: Round, prior: Own | None, job: Sent, *pieces: Visited
) -> Visited:
    """Add the sums of all groups for the lines of a shard, and solve for their elements."""
    shard, nodes, visit, solved = job.value
    _check(common.versions)
    quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")
    with _one_at_a_time, quiet, use_threads(_threads(), tell=False):
        return shards.solve_lines(pieces, nodes, shard, shared, visit, prior, solved)


def own_of(visited: Visited) -> dict[Unit, Own]:
    """Return the q of own variables after a visit."""
    return visited.own


def opened(sent: Sent) -> Any:
    """Return what is in an envelope."""
    return sent.value


def forget_all(tokens: list[str]) -> None:
    """Remove the parts of a fit from the memory of this process."""
    for token in tokens:
        forget(token)


def versions_here() -> dict[str, str]:
    """Return the versions of this process."""
    return versions.versions()


def _threads() -> int:
    return int(get_worker().state.nthreads)


def _check(ours: dict[str, str]) -> None:
    """Raise if this process runs other code than the coordinator."""
    if found := versions.differences(versions.versions(), ours):
        raise SvmpError(refusal(get_worker().address, found))


def refusal(address: str, found: str) -> str:
    """Return the message for a worker with other versions."""
    return (
        f"the worker {address} has {found}; results would not be the same on all workers, so "
        "install the same versions everywhere"
    )
