"""What is sent to the place where parts are, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from svmp.errors import EmptyTableError, ModelError, SvmpError
from svmp.families.family import Array
from svmp.inference.methods import Method
from svmp.network.declaration import Declaration
from svmp.network.grid import Ints
from svmp.network.validation import shown
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
        By unit, the q of its own variables; None if it is not kept.
    """

    units: tuple[Unit, ...]
    then: Unit | None = None
    own: dict[Unit, Own] | None = None


class Visited(NamedTuple):
    """The result of a visit of some parts.

    Attributes
    ----------
    totals
        The sums that were asked for.
    children
        By shared variable that was asked for, the number of children of each element.
    own
        By unit, the new q of its own variables.
    accesses
        Number of rows read by own variables.
    """

    totals: list[Array]
    children: dict[str, Ints]
    own: dict[Unit, Own]
    accesses: int


def declared(declare: Declare, source: Source, number: int) -> Declaration | None:
    """Load a part and declare its network; None if the part has no rows."""
    where = source.name(number)
    rows = source.load(number)
    if source.rows(number) == 0:
        return None
    try:
        model = declare(rows)
    except EmptyTableError:
        return None
    except SvmpError as error:
        raise ModelError(f"{where}: {error}") from error
    if not isinstance(model, Declaration):
        raise ModelError(
            f"the function that declares a part must return its model, not {shown(model)}"
        )
    return model
