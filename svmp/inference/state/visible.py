"""What can be seen of q: means of rows, and parameters that are identified, in units of their sds.

The factors of a product of hidden variables, as u . v, can rotate, and exchange scale with each
other and with the other terms of the sum, while no row's mean changes. So the variables of such a
mean are judged by the means of its rows alone, and every other hidden variable by its own means and
sds. Each table and each variable is represented by at most SAMPLE rows or elements, always the
same, and by fewer where these are long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from svmp.families import Gamma, MvNormal, Normal
from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.slot import Slot

SAMPLE = 256
"""Most rows of a table, and elements of a variable, that are compared."""
FEWEST, NUMBERS = 16, 1 << 14
"""At least so many rows or elements are compared, and no more of them than have so many numbers."""
SD = 3.0
"""Weight of a relative change of an sd beside that of a mean in sds: 1% weighs as much as .03."""
ROUNDING = 1e-12
"""Smallest variance of a row's mean, relative to its second moment, that is not rounding."""
Seen = dict[str, Array]
"""By table or variable a mean and a variance for each number that is compared."""


@dataclass(frozen=True, eq=False)
class Visible:
    """Reads from q what can be seen of it."""

    network: Network

    def read(self, q: Beliefs) -> Seen:
        """Return the means and variances of the sample."""
        found = {}
        for name, rows in self._rows.items():
            for slot, seen in self._of_rows(q, self.network.observed[name].conditional, rows):
                found[f"{name}.{slot}"] = seen
        for name, elements in self._elements.items():
            if name in q.natural:
                family = self.network.hidden[name].family.at(elements)
                natural = q.natural[name][elements]
                found[name] = np.stack([family.mean(natural).ravel(), family.var(natural).ravel()])
        return found

    def distance(self, name: str, seen: Array, other: Array) -> float:
        """Return the root mean square of changes in sds, and with it that of relative sds."""
        unit = np.maximum(seen[1], other[1])
        shift = np.divide((seen[0] - other[0]) ** 2, unit, out=np.zeros_like(unit), where=unit > 0)
        if not len(shift):
            return 0.0
        square = float(shift.mean())
        if name not in self.shares:
            both = (seen[1] > 0) & (other[1] > 0) & np.isfinite(unit)  # beyond 1e154 they overflow
            ratio = np.divide(seen[1], other[1], out=np.ones_like(unit), where=both)
            square += SD**2 * float((0.25 * np.log(ratio) ** 2).mean())
        return square**0.5 if square >= 0 else np.inf

    @cached_property
    def traded(self) -> frozenset[str]:
        """The variables that are judged by rows only: all those in means with a product."""
        found: set[str] = set()
        for conditional in self._conditionals():
            for slot in conditional.slots.values():
                if has_product(slot):
                    names = [v.name for v in slot.variables]
                    if conditional.variable.observed is not None:
                        names += [v.name for s in scales(conditional) for v in s.variables]
                    found.update(names)
        waiting = list(found)
        while waiting:
            name = waiting.pop()
            if name in self.network.hidden:
                above = {v.name for v in self.network.hidden[name].conditional.parents()} - found
                found |= above
                waiting += above
        return frozenset(found)

    def _conditionals(self) -> Iterator[Conditional]:
        for variable in (*self.network.hidden.values(), *self.network.observed.values()):
            yield variable.conditional

    @cached_property
    def _rows(self) -> dict[str, Ints]:
        found = {}
        for i, (name, variable) in enumerate(self.network.observed.items()):
            rows = variable.rows if variable.present is None else variable.present
            conditional = variable.conditional
            found[name] = rows[sample(len(rows), i, conditional.components * variable.family.size)]
        return found

    @cached_property
    def _elements(self) -> dict[str, Ints]:
        count = len(self.network.observed)
        hidden = self.network.hidden.items()
        return {n: sample(v.size, count + i, v.family.size) for i, (n, v) in enumerate(hidden)}

    @cached_property
    def shares(self) -> frozenset[str]:
        """Choices and shares, whose sds follow from their means."""
        hidden = self.network.hidden.items()
        return frozenset(n for n, v in hidden if (v.family.nominal or v.family.simplex))

    def _of_rows(
        self, q: Beliefs, conditional: Conditional, rows: Ints
    ) -> Iterator[tuple[str, Array]]:
        """Yield the means of rows and, where they have a product, the logs of their precisions."""
        subrows, count = conditional.subrows(rows), len(rows)
        product = any(has_product(slot) for slot in conditional.slots.values())
        for name, slot in conditional.slots.items():
            family = conditional.factor.slots[name]
            if family in (Normal, MvNormal):
                mean, square = first_two(conditional.parameter(q, name, subrows), len(subrows))
                if conditional.selector is not None:
                    weights = conditional.selector.moments(q, rows)[:, :, None]
                    shape = (count, conditional.components, mean.shape[1])
                    mean = (weights * mean.reshape(shape)).sum(axis=1)
                    square = (weights * square.reshape(shape)).sum(axis=1)
                variance = np.maximum(square - mean**2, ROUNDING * square)
                yield name, np.stack([mean.ravel(), variance.ravel()])
            elif product and family is Gamma and slot.variables:
                each = len(subrows)  # of a mixture, all of its components
                precision = np.broadcast_to(conditional.parameter(q, name, subrows), (each, 2))
                # in this unit a change of log(sd) by d, of log(precision) by 2 d, counts SD d
                logs = np.log(precision[:, 0])
                yield name, np.stack([logs, np.full(each, (2 / SD) ** 2)])


def first_two(moments: Array, count: int) -> tuple[Array, Array]:
    """Return the means and the second moments of numbers or of vectors, from their statistics."""
    size = (int((1 + 4 * moments.shape[-1]) ** 0.5) - 1) // 2
    moments = np.broadcast_to(moments, (count, moments.shape[-1]))
    places = size + np.arange(size) * (size + 1)
    return moments[:, :size], moments[:, places]


def has_product(slot: Slot) -> bool:
    """Return whether a mean has a term that multiplies hidden variables."""
    terms = getattr(slot, "terms", ())
    return any(len(getattr(term, "readers", ())) > 1 for term in terms)


def scales(conditional: Conditional) -> list[Slot]:
    """Return the slots of precisions."""
    of = conditional.factor.slots
    return [slot for name, slot in conditional.slots.items() if of[name] is Gamma]


def sample(count: int, index: int, size: int) -> Ints:
    """Choose some of a number of places, always the same; each has `size` numbers."""
    most = max(FEWEST, min(SAMPLE, NUMBERS // size))
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng([index, count]).choice(count, most, replace=False))
