"""`svmp.Parts`: one network for rows that lie in parts."""

from __future__ import annotations

import math
import os
import uuid
import warnings
from collections.abc import Collection
from typing import Any

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.methods.method import check_count
from svmp.inference.running.problem import Divided
from svmp.network.keywords import known_keywords
from svmp.network.memory import machine_memory
from svmp.network.validation import shown
from svmp.parts.cache import forget
from svmp.parts.context import Declare
from svmp.parts.description import PartDims
from svmp.parts.groups import default_groups, group_numbers, part_sizes
from svmp.parts.memory import parse_memory
from svmp.parts.problem import PartsProblem
from svmp.parts.scratch import zeros_on_disk
from svmp.parts.sharing import Sharing
from svmp.parts.sources import as_source
from svmp.parts.workspace import Executor, Local
from svmp.writing import as_path

BYTES_A_ROW = 160
"""Memory of a part, for each of its observed rows: arrays, and their order by two keys."""
MEMORY = 1 << 30
"""Memory for parts that are read from files, by default."""


class Parts(Divided):
    """Rows that lie in parts, with a function that declares the network of one part.

    Hidden variables are shared by all parts (items, topics, components) or own to one (its users,
    documents, sequences). Elements are the same in two parts if their labels in `coords` are.

    Parameters
    ----------
    declare
        A function from the rows of one part to its `svmp.Model`. All parts must declare the same
        network; they may differ in their rows and in their elements.
    parts
        The rows of each part: a list of anything that `declare` accepts, `svmp.parquet(...)`,
        `svmp.frames(...)`, or a Dask data frame.
    own, shared
        Names of hidden variables (or of dims, for all variables that have them) that belong to one
        part, or that all parts share. Only one of the two is needed. By default they are found from
        the dims and labels: variables along a dim whose labels differ in all parts are own, and so
        are those that depend on them.
    groups
        Number of groups of parts. One process visits all parts of a group and adds up their sums,
        so that each visit returns one result for each group. The number of groups changes the
        result by rounding alone, and the number of workers changes no bit. By default 4, and 8 or
        16 from 128 or 256 parts on; for parts in memory, which are put together in each group, one
        for 8 parts or 4 million rows, at least 1 and at most 8. With a client, give at least twice
        the number of workers.
    keep
        Whether to keep the q of own variables from one visit to the next, in memory or in temporary
        files ("memory", "disk"), or to optimise them anew in each visit ("none"), which needs no
        room for them, and more time. By default in memory if a variable takes less than a quarter
        of the machine's, else on disk; the result is the same.
    memory
        Memory for the rows of parts, as 2_000_000_000 or "2GB". By default parts that are in memory
        stay there, and of those in files as many as fit into 1 GB.
    scratch
        An existing folder for the files of `keep="disk"`, by default that of temporary files. They
        have no name, and are gone with the fit.

    >>> import numpy as np, svmp
    >>> def counts(part):
    ...     with svmp.Model() as model:
    ...         rate = svmp.Gamma("rate", alpha=1, beta=1)
    ...         svmp.Poisson("count", mu=rate, dims="row", observed=part)
    ...     return model
    >>> fit = svmp.fit(svmp.Parts(counts, [[3, 4], [8], [2, 2, 5]]))
    >>> fit["rate"].alpha, fit["rate"].beta
    (array(25.), array(7.))
    """

    @known_keywords
    def __init__(
        self,
        declare: Declare,
        parts: Any,
        *,
        own: Collection[str] | None = None,
        shared: Collection[str] | None = None,
        groups: int | None = None,
        keep: str | None = None,
        memory: int | str | None = None,
        scratch: str | os.PathLike[str] | None = None,
    ) -> None:
        if not callable(declare):
            raise ModelError(
                f"declare must be a function from a part's rows to its model, not {shown(declare)}"
            )
        self.declare, self.source, self._chosen = declare, as_source(parts), groups is not None
        self.own, self.shared = own, shared
        count = default_groups(self.source) if groups is None else groups
        check_count("groups", count)
        if keep not in (None, "memory", "disk", "none"):
            raise ModelError(f'keep must be "memory", "disk" or "none", not {shown(keep)}')
        self.scratch = None if scratch is None else as_path(scratch, "scratch")
        self.groups, self.keep = min(int(count), len(self.source)), keep
        self.memory = None if memory is None else parse_memory(memory)
        self._tokens: list[str] = []
        self._executors: list[Executor] = []

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.source)

    def __repr__(self) -> str:
        return f"<Parts: {len(self)} in {self.groups} groups>"

    def problem(self, client: Any = None) -> PartsProblem:
        """Read what the parts have in common; with a client, on its workers."""
        executor = executor_of(client)
        self._executors.append(executor)
        groups = group_numbers(part_sizes(self.source), self.groups)
        numbers = [tuple(np.flatnonzero(groups == g).tolist()) for g in range(self.groups)]
        found: list[PartDims | None] = executor.describe(self.declare, self.source, numbers)
        if self.groups < executor.places and not self._chosen:
            warnings.warn(few_groups(self.groups, executor.places), UserWarning, stacklevel=2)
        dims = {number: part for number, part in enumerate(found) if part is not None}
        if not dims:
            raise ModelError("no part has any rows, so there is nothing to learn from")
        sharing = Sharing.of(list(dims.values()), self.own, self.shared)
        token = uuid.uuid4().hex
        self._tokens.append(token)
        largest = max(part.observations for part in dims.values())
        return PartsProblem.of(
            self.declare,
            self.source,
            dims,
            sharing,
            executor,
            groups,
            self.resident(largest),
            self.keep != "none",
            token,
            self.empty,
        )

    def empty(self, shape: tuple[int, ...]) -> Array:
        """Return an array of zeros for the q of own variables, in memory or on disk."""
        large = 8 * math.prod(shape) > machine_memory() // 4
        on_disk = self.keep == "disk" or (self.keep is None and large)
        return zeros_on_disk(shape, self.scratch) if on_disk else np.zeros(shape)

    def resident(self, rows: int) -> int:
        """Return the number of parts that may stay in memory, given the rows of the largest."""
        if self.source.in_memory and self.memory is None:
            return len(self.source)
        memory = MEMORY if self.memory is None else self.memory
        return max(1, memory // max(rows * BYTES_A_ROW, 1))

    def close(self) -> None:
        """Release the parts that are in memory."""
        for token in self._tokens:
            forget(token)
        self._tokens.clear()
        for executor in self._executors:
            executor.close()
        self._executors.clear()


def few_groups(groups: int, workers: int) -> str:
    """Return the warning that some workers will have nothing to do.

    The default does not depend on workers, since groups decide rounding.
    """
    return (
        f"the parts make up {groups} {'group' if groups == 1 else 'groups'}, and one worker "
        f"processes a group: {workers - groups} of {workers} workers will have nothing to do; "
        f"give groups={2 * workers} to svmp.Parts, and as many parts or more"
    )


def executor_of(client: Any) -> Executor:
    """Return where tasks are run: here, or on the workers of a Dask client."""
    if client is None:
        return Local()
    from svmp.parts.workers import Workers

    return Workers.of(client)
