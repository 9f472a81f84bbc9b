"""The multilinear loops of one density: updates (equation (6) of the paper), sums and bounds.

`loop_table.py` says which densities they serve, `inference/program.py` where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from svmp.families.family import Array, stack
from svmp.families.normal import LOG_2PI
from svmp.kernels.machine.threads import STREAM, share, threads_for
from svmp.kernels.multilinear import residuals, solve
from svmp.kernels.multilinear import update as loops
from svmp.kernels.multilinear.ahead import begin_to_compile
from svmp.kernels.multilinear.drawn import update_drawn
from svmp.kernels.multilinear.loop_table import LoopOperand, LoopTable
from svmp.kernels.multilinear.table import Keyed, plain
from svmp.kernels.multilinear.terms import LoopRows, Mean, Receiver
from svmp.kernels.multilinear.update import LONG
from svmp.kernels.multilinear.work import Work
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.slot import Single

ONE, NO_PRIOR = np.ones(1), np.zeros((1, 2))
KEPT = 1 << 21
"""Most moments whose losses are kept."""


@dataclass(frozen=True, eq=False)
class Multilinear(LoopTable):
    """The loops of one conditional density.

    Attributes
    ----------
    draws
        Whether its loops draw rows for each element.
    """

    draws: ClassVar[bool] = True

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        """E[mu] and E[mu^2] of each row."""
        table, only = self.look_up_once(rows)
        with threads_for(len(rows)):
            return self.row_moments(table, self.mean(q, None, np.float64, only=only))

    def row_moments(self, rows: LoopRows, mean: Mean) -> Array:
        """Return `moments` of rows in the form of the loops."""
        out = np.empty((rows.columns.shape[1], 2))
        share(residuals.row_moments, rows, mean, out)
        return out

    def losses(self, q: Beliefs, keyed: Keyed, column: int) -> Array:
        """Sum over the rows of each key of E[(y - mu)^2], or of minus E[log p] of logits.

        The last are kept with the moments that they belong to: precisions that are updated last
        and the bound need the same.
        """
        moments = {o.name: q.moments[o.name] for o in self.operands}
        if self._kept and self._kept[0] is keyed and same(self._kept[1], moments):
            found: Array = self._kept[2]
            return found
        keys = np.arange(len(keyed.begin))
        rows, mean = self.rows(q, keyed, keys, column), self.mean(q, column, np.float64)
        with threads_for(rows.columns.shape[1] * len(self.operands)):
            found = self.row_losses(rows, mean, keys)
        self._kept.clear()
        observed = self.conditional.variable.observed is not None
        if observed and sum(array.size for array in moments.values()) <= KEPT:
            copies = {name: array.copy() for name, array in moments.items()}
            self._kept.extend((keyed, copies, found))
        return found

    @cached_property
    def _kept(self) -> list[Any]:
        """Rows, moments and the losses of `losses`, as they were last."""
        return []

    def row_losses(self, rows: LoopRows, mean: Mean, keys: Ints) -> Array:
        """Return `losses` of rows in the form of the loops."""
        out = np.empty(len(keys))
        share(residuals.losses, rows, mean, keys, out)
        return out

    def bound_term(self, q: Beliefs) -> float:
        """E[log p(y | parents)] of all rows, where the noise is constant or varies by a key."""
        assert self.noise is not None
        keyed = self.all_rows(self.noise)
        losses, counts = self.losses(q, keyed, self.noise), keyed.end - keyed.begin
        if self.logit:
            return -float(losses.sum())
        slot = self.conditional.slots["tau"]
        if isinstance(slot, Single) and slot.varies:
            tau = q.moments[slot.reader.variable.name]
        else:
            tau = slot.moments(q, np.zeros(1, dtype=np.int64))
        each = counts * (tau[:, 1] - LOG_2PI) - tau[:, 0] * losses
        return 0.5 * float(each.sum())

    def noise_messages(self, q: Beliefs, keyed: Keyed) -> Array:
        """Return the messages of the rows to their precision: one, or one for each key."""
        assert self.noise is not None
        squares = self.losses(q, keyed, self.noise)
        message = stack(-0.5 * squares, 0.5 * (keyed.end - keyed.begin))
        return message if self.conditional.slots["tau"].varies else message.sum(axis=0)[None]

    def accesses(self, operand: LoopOperand, work: Work) -> int:
        """Return the cost of an update, in units of one random access to a row.

        Rows that are not drawn in the loop are read once for all elements of a key.
        """
        alone = work.drawn is not None
        each = operand.width if alone else len(self.operands) - 1 + operand.width // STREAM
        return int(work.read.sum()) * max(each, 1)

    def place(self, name: str) -> tuple[int, int, int]:
        """Return the term of a variable, its index among all operands, and its K."""
        operand = self.operand(name)
        return operand.term, self.operands.index(operand), operand.width

    def reading(self, q: Beliefs, name: str, work: Work) -> tuple[LoopRows, Mean]:
        """Return the rows of some keys, and the mean as the loops of a variable read it."""
        column = self.operand(name).column
        without = None if self.logit else name
        mean = self.mean(q, column, self.precision, without)
        return self.rows(q, work.keyed, work.keys, column), mean

    def receiver(self, name: str, keys: Ints) -> Receiver:
        """Return the receiver of sums over the rows of some keys, which need no prior."""
        return Receiver(*self.place(name), keys, ONE, ONE, NO_PRIOR, True, True)

    def line_size(self, name: str) -> int:
        """Return how many numbers the sums of a key of a variable have."""
        return solve.line_size(self.place(name)[2])

    def add_sums(self, q: Beliefs, name: str, work: Work, places: Ints, total: Array) -> None:
        """Add the sums over the rows of each key to its line of a total, all different."""
        self.adder(q, name, work, places)(total, slice(0, len(work.keys)), 0)

    def adder(
        self, q: Beliefs, name: str, work: Work, places: Ints
    ) -> Callable[[Array, slice, int], None]:
        """Return `add_sums` as a function of some lines of a total, of some keys, and of an offset.

        Where many parts add to one total, keys are taken in blocks, so that the lines of a block
        stay in the cache while one part after the other adds to them. The first line of a block is
        that of the place `offset`.
        """
        to = self.receiver(name, work.keys)
        rows, mean = self.reading(q, name, work)
        cost = self.sum_cost(name, work) / max(len(work.keys), 1)

        def add(total: Array, some: slice, offset: int) -> None:
            begin, end, keys = rows.begin[some], rows.end[some], to.keys[some]
            part = rows._replace(begin=begin, end=end)
            with threads_for(int(cost * len(keys))):
                self.add_to_keys(to._replace(keys=keys), part, mean, places[some] - offset, total)

        return add

    def sum_cost(self, name: str, work: Work) -> int:
        """Return the cost of sums, in units of one random access to a row."""
        return self.accesses(self.operand(name), work)

    @staticmethod
    def add_to_keys(to: Receiver, rows: LoopRows, mean: Mean, places: Ints, total: Array) -> None:
        """Add the sums over the rows of each key to its line of a total."""
        solve.add_to_keys(to, rows, mean, places, total)

    @staticmethod
    def whole_loop(operand: LoopOperand, joint: bool) -> Any:
        """Return the loop that updates an operand from all rows."""
        sums = joint or operand.width <= loops.FEW
        return loops.update_whole_from_sums if sums else loops.update_whole

    def prepare(self, name: str, joint: bool) -> None:
        """Begin to compile the loop that updates a variable, in another process."""
        begin_to_compile(self.whole_loop(self.operand(name), joint), self.precision)

    def update(
        self,
        q: Beliefs,
        name: str,
        work: Work,
        prior: Array,
        rho: Array,
        at_once: bool,
        joint: bool,
    ) -> tuple[Array, bool]:
        """Update elements; return the natural parameters, and whether all are in their domain.

        The array is q's own if `at_once`, else a copy.
        """
        operand = self.operand(name)
        natural = q.natural[name] if at_once else q.natural[name].copy()
        rows, mean = self.reading(q, name, work)
        place = self.place(name)
        to = Receiver(*place, work.keys, work.scale, rho, plain(prior), at_once, joint)
        sound = np.ones(len(work.keys), dtype=bool)
        with threads_for(self.accesses(operand, work)):
            loop = (rows, mean, natural, q.moments[name], sound)
            if work.drawn is not None:
                share(update_drawn, to, work.drawn, *loop)
            else:
                share(self.whole_loop(operand, joint), to, *loop)
        if work.keyed.longest > LONG:
            long = rows.end - rows.begin > LONG
            if work.drawn is not None:
                long &= rows.end - rows.begin <= work.drawn.most
            for m in np.flatnonzero(long):
                sound[m] = loops.update_long(to, int(m), rows, mean, natural, q.moments[name])
        return natural, bool(sound.all())


def same(before: Mapping[str, Array], now: Mapping[str, Array]) -> bool:
    """Return whether arrays by name are equal."""
    return all(np.array_equal(old, now[name]) for name, old in before.items())
