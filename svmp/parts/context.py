"""What is sent to the place where parts are, and what comes back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from svmp.errors import EmptyTableError, ModelError, SvmpError
from svmp.families.family import Array
from svmp.inference.methods import Method
from svmp.network.declaration import Declaration
from svmp.network.grid import Ints
from svmp.network.validation import shown
from svmp.parts.description import dim_prints
from svmp.parts.held_out import HeldOutValues
from svmp.parts.sharing import Sharing
from svmp.parts.sources import Source

Declare = Callable[[Any], Declaration]
"""Declares the network for the rows of one part."""
Own = dict[str, Array]
"""Natural parameters of the own variables of one part."""


@dataclass(frozen=True, eq=False)
class SharedQ:
    """q of the shared variables, of all their elements."""

    natural: dict[str, Array]
    moments: dict[str, Array]

    def copy(self) -> SharedQ:
        """Return a copy with its own arrays."""
        natural, moments = (
            {name: array.copy() for name, array in arrays.items()}
            for arrays in (self.natural, self.moments)
        )
        return SharedQ(natural, moments)

    def equals(self, other: SharedQ) -> bool:
        """Return whether the variables and all numbers are the same."""
        return all(
            mine.keys() == theirs.keys()
            and all(np.array_equal(array, theirs[name]) for name, array in mine.items())
            for mine, theirs in ((self.natural, other.natural), (self.moments, other.moments))
        )


@dataclass(frozen=True, eq=False)
class Context:
    """What is needed to load a part and to update it.

    Attributes
    ----------
    declare, source
        Declares the network of a part, and loads its rows.
    sharing, sizes
        Which variables are shared, and the sizes of their dims in all parts together.
    method, kernels
        The method of the run, and whether compiled loops are used.
    resident
        Number of parts that may stay in memory.
    keeps
        Whether the q of own variables is kept from one visit to the next, or optimised anew.
    token
        Identifies this context in caches.
    stored
        Own variables whose q is stored in all parts, because it must be in some.
    held_out
        The held-out values of parts, if there are any.
    prints
        By part and dim, a number for the size and labels that the part was described with.
    """

    declare: Declare
    source: Source
    sharing: Sharing
    sizes: Mapping[str, int]
    method: Method
    kernels: bool
    resident: int
    keeps: bool
    token: str
    stored: frozenset[str] = frozenset()
    held_out: HeldOutValues | None = None
    prints: tuple[Mapping[str, int], ...] = ()

    def declared(self, number: int) -> tuple[Declaration, Any] | None:
        """Load a part and declare its network as it was described; None if it has no rows."""
        found = declared_rows(self.declare, self.source, number)
        for dim, known in () if found is None else dim_prints(found[0]).items():
            if self.prints[number].get(dim) != known:
                raise ModelError(
                    f"{self.source.name(number)}: the function that declares a part gave another "
                    f"size or other labels along '{dim}' when it was called again; it must return "
                    "the same model each time, with labels in a fixed order, as sorted(names)"
                )
        return found


Unit = tuple[int, ...]
"""The numbers of parts that are put together into one, or of a single part."""


class Job(NamedTuple):
    """Parts that are visited one after the other.

    Attributes
    ----------
    units
        The parts, in this order.
    then
        What is needed next, if it is known.
    own
        By unit, the q of its own variables; None if it is not kept, or not here.
    """

    units: tuple[Unit, ...]
    then: Unit | None = None
    own: dict[Unit, Own] | None = None


class OwnElsewhere(ABC):
    """q of the own variables that a visit has left where it was computed.

    Attributes
    ----------
    depth
        Number of visits since this q was last sent from here, or fetched.
    """

    depth: int

    @abstractmethod
    def fetch(self) -> Iterator[dict[Unit, Own]]:
        """Yield the q of the own variables of each job."""

    @abstractmethod
    def begin_from(self, jobs: Sequence[Job]) -> None:
        """Use the fetched q of these jobs as the recovery point."""

    @abstractmethod
    def release(self) -> None:
        """Release what is held elsewhere."""


class Visited(NamedTuple):
    """The result of a visit of some parts.

    Attributes
    ----------
    totals
        The sums that were asked for.
    children
        By shared variable that was asked for, the number of children of each element.
    own
        By unit, the new q of its own variables, if the visit has changed it.
    accesses
        Number of rows read by own variables.
    terms
        By unit, its terms of the bound at the q of its sums, if the visit measures them.
    left
        The new q of own variables, if it was left elsewhere.
    target
        By shared variable, lambda_temp, where it was computed without sums.
    gains
        By line of the sums that a solution was computed from, how much E[log p] of the rows rises.
    """

    totals: list[Array]
    children: dict[str, Ints]
    own: dict[Unit, Own]
    accesses: int
    terms: dict[Unit, dict[str, float]]
    left: OwnElsewhere | None = None
    target: Own | None = None
    gains: Array | None = None


def declared(declare: Declare, source: Source, number: int) -> Declaration | None:
    """Load a part and declare its network; None if the part has no rows."""
    found = declared_rows(declare, source, number)
    return None if found is None else found[0]


def declared_rows(declare: Declare, source: Source, number: int) -> tuple[Declaration, Any] | None:
    """Load a part and declare its network; return both, or None if the part has no rows."""
    where = source.name(number)
    rows = source.load(number)
    if source.rows(number) == 0:
        return None
    try:
        model = declare(rows)
    except EmptyTableError:
        return None
    except SvmpError as error:
        named = str(error).startswith(where)  # by the columns of a file
        raise ModelError(str(error) if named else f"{where}: {error}") from error
    except Exception as error:  # of the user's own function
        error.add_note(f"The function that declares a part was called with {where}.")
        raise
    if not isinstance(model, Declaration):
        raise ModelError(
            f"the function that declares a part must return its model, not {shown(model)}"
        )
    return model, rows
