"""Held-out values of rows in parts: each part scores its own, and the coordinator adds up.

The score is that of `inference/running/held_out.py`,

    score = sum over parts p of total_p / sum over parts p of count_p,

where total_p is what the held-out rows of part p would add to the bound, given the q of the shared
variables and of its own. Parts are added in their order, so that bits do not depend on where a part
is scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from svmp.errors import ModelError, SvmpError
from svmp.inference.program.program import Program
from svmp.inference.running.held_out import HeldOut, Scorer, held_out_of
from svmp.network.beliefs import Beliefs
from svmp.network.declaration import Declaration
from svmp.network.network import Network
from svmp.network.validation import shown
from svmp.network.variable import Variable
from svmp.saving.fingerprint import fingerprint

ValuesOf = Callable[[Any], Mapping[str, Any]]
"""Returns the held-out values of the rows of one part, by variable."""


class HeldOutValues(NamedTuple):
    """The held-out values of all parts.

    Attributes
    ----------
    of
        Returns those of one part.
    locals
        Variables that are local in every part, and so in all rows together.
    """

    of: ValuesOf
    locals: frozenset[str]


@dataclass(frozen=True)
class HeldOutSummary:
    """What the coordinator knows about the held-out values of one part.

    Attributes
    ----------
    count
        Number of held-out rows.
    fingerprint
        A short hash of the values.
    locals
        The local variables of the part.
    """

    count: int
    fingerprint: str
    locals: frozenset[str]

    @classmethod
    def of(cls, network: Network, held: Mapping[str, Variable]) -> HeldOutSummary:
        """Describe the held-out variables of one part."""
        found = HeldOut.between(network, held)
        return cls(found.count, found.fingerprint, frozenset(network.locals))


def held_out_variables(
    values_of: ValuesOf, rows: Any, model: Declaration, where: str
) -> dict[str, Variable]:
    """Return the held-out variables of a part, without those of which nothing is held out."""
    try:
        values = values_of(rows)
        if not isinstance(values, Mapping):
            raise ModelError(
                "the function held_out must return values by variable, as {'r': values}, not "
                + shown(values)
            )
        return {
            name: held_out_of(model.variables, name, given)
            for name, given in values.items()
            if not all_missing(given)
        }
    except SvmpError as error:
        raise ModelError(f"{where}: {error}") from error


def all_missing(values: Any) -> bool:
    """Return whether there are values, and all of them are NaN or masked.

    >>> all_missing([np.nan, np.nan]), all_missing([np.nan, 1.0]), all_missing([])
    (True, False, False)
    """
    try:
        array = np.ma.asarray(values)
    except ValueError:  # of different lengths, which is refused later
        return False
    missing = np.ma.getmaskarray(array)
    if array.dtype.kind == "f":
        missing = missing | np.isnan(array.data)
    return array.size > 0 and bool(missing.all())


def summary_of(found: Sequence[HeldOutSummary]) -> tuple[int, str, frozenset[str]]:
    """Return the number of held-out rows of all parts, a hash, and what is local in every part."""
    count = sum(part.count for part in found)
    if not count:
        raise ModelError("held_out leaves out nothing: all values are missing in every part")
    codes = [np.frombuffer(part.fingerprint.encode(), np.uint8) for part in found]
    return count, fingerprint(codes), frozenset.intersection(*(part.locals for part in found))


@dataclass(frozen=True)
class PartsScorer(Scorer):
    """Scores the held-out values of all parts.

    Attributes
    ----------
    totals
        Returns what the held-out rows of each part would add to the bound of q, in part order.
    """

    count: int
    fingerprint: str
    totals: Callable[[Program, Beliefs], Iterable[float]]

    def score(self, program: Program, q: Beliefs) -> float:
        return sum(self.totals(program, q)) / self.count
