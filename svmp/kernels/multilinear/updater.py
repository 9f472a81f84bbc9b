"""The multilinear loops of one density: updates (equation (6) of the paper), sums and bounds.

`loop_table.py` says which densities they serve, `inference/program/program.py` where they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from svmp.families.family import Array, stack
from svmp.families.normal import LOG_2PI
from svmp.kernels.machine.threads import STREAM, share, threads_for
from svmp.kernels.multilinear import residuals, solve
from svmp.kernels.multilinear import update as loops
from svmp.kernels.multilinear.ahead import begin_to_compile
from svmp.kernels.multilinear.drawn import update_drawn
from svmp.kernels.multilinear.loop_table import LoopOperand, LoopTable
from svmp.kernels.multilinear.losses import Losses
from svmp.kernels.multilinear.table import Keyed, plain
from svmp.kernels.multilinear.terms import ALL, OWN, LoopRows, Mean, Receiver
from svmp.kernels.multilinear.update import LONG
from svmp.kernels.multilinear.work import Work
from svmp.network.beliefs import Beliefs, RowLosses
from svmp.network.grid import Ints
from svmp.network.slot import Single

ONE, NO_PRIOR = np.ones(1), np.zeros((1, 2))


class Updated(NamedTuple):
    """The result of an update.

    Attributes
    ----------
    natural
        The natural parameters of all elements.
    sound
        Whether all of them are in their domain.
    losses
        The losses of the rows of each key; empty if they were not measured.
    """

    natural: Array
    sound: bool
    losses: Array


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
        """Sum over the rows of each key of E[(y - mu)^2], or of minus E[log p] of logits."""
        keys = np.arange(len(keyed.begin))
        rows, mean = self.rows(q, keyed, keys, column), self.mean(q, column, np.float64)
        with threads_for(rows.columns.shape[1] * len(self.operands)):
            return self.sum_losses(rows, mean, keys)

    def sum_losses(self, rows: LoopRows, mean: Mean, keys: Ints) -> Array:
        """Return `losses` of rows in the form of the loops."""
        out = np.empty(len(keys))
        share(residuals.losses, rows, mean, keys, out)
        return out

    def measures(self, name: str) -> bool:
        """Whether updates of a variable from all rows can compute their losses too."""
        return self.noise is not None and not self.logit

    def serves_noise(self, name: str) -> bool:
        """Whether losses by the key of a variable are what the update of the noise needs."""
        varies = self.conditional.slots["tau"].varies
        return not varies or self.operand(name).column == self.noise

    def row_losses(self, column: int, sums: Array) -> RowLosses:
        """Return the losses of all rows, by a key, as an update has computed them."""
        slot = self.conditional.slots["tau"]
        names = {operand.name for operand in self.operands}
        weighted = slot.varies and column != self.noise
        if weighted:
            names |= {variable.name for variable in slot.variables}
        return RowLosses(
            self.table, frozenset(names), column, sums, weighted, self.all_rows(column)
        )

    def known_losses(self, q: Beliefs) -> RowLosses | None:
        """Return the losses that the last update of a parent has computed, if they still hold."""
        found = q.known_losses(self.table)
        return found if found is not None and found.rows is self.all_rows(found.column) else None

    def bound_term(self, q: Beliefs) -> float:
        """E[log p(y | parents)] of all rows, where the noise is constant or varies by a key."""
        assert self.noise is not None
        known, keyed = self.known_losses(q), self.all_rows(self.noise)
        losses = self.losses(q, keyed, self.noise) if known is None else known.sums
        if self.logit:
            return -float(losses.sum())
        slot = self.conditional.slots["tau"]
        if isinstance(slot, Single) and slot.varies:
            tau, counts = q.moments[slot.reader.variable.name], keyed.counts
        else:
            tau = slot.moments(q, np.zeros(1, dtype=np.int64))
            counts, losses = keyed.counts.sum(keepdims=True), losses.sum(keepdims=True)
        if known is not None and known.weighted:
            squares = losses.sum()
        else:
            squares = (tau[:, 0] * losses).sum()
        return 0.5 * float((counts * (tau[:, 1] - LOG_2PI)).sum() - squares)

    def noise_messages(self, q: Beliefs, keyed: Keyed) -> Array:
        """Return the messages of the rows to their precision: one, or one for each key."""
        assert self.noise is not None
        varies, known = self.conditional.slots["tau"].varies, self.known_losses(q)
        whole = keyed is self.all_rows(self.noise)
        if known is None or known.weighted or not whole:
            squares = self.losses(q, keyed, self.noise)
            if whole:
                q.keep_losses(self.row_losses(self.noise, squares))
        else:
            squares = known.sums
        if varies:
            return stack(-0.5 * squares, 0.5 * keyed.counts)
        return stack(-0.5 * squares.sum(), 0.5 * keyed.counts.sum())[None]

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
        mean = self.mean(q, column, self.precision, without, centred=self.centred(name))
        return self.rows(q, work.keyed, work.keys, column), mean

    def centred(self, name: str) -> str | None:
        """Return the operand of which the update of another reads covariances, if there is one."""
        return None

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
        that of the place `offset`. A common weight of rows is that of q to all digits, since the
        bound is computed from these sums.
        """
        to = self.receiver(name, work.keys)
        rows, mean = self.reading(q, name, work)
        if rows.weigher in (ALL, OWN):
            weights = self.weights(q, work.keyed, self.operand(name).column, np.float64)
            rows = rows._replace(weight=plain(weights[0]))
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
        measured: bool = False,
    ) -> Updated:
        """Update elements, and compute the losses of their rows if they are `measured`.

        Natural parameters are q's own array if `at_once`, else a copy.
        """
        operand = self.operand(name)
        natural = q.natural[name] if at_once else q.natural[name].copy()
        rows, mean = self.reading(q, name, work)
        place = self.place(name)
        to = Receiver(*place, work.keys, work.scale, rho, plain(prior), at_once, joint)
        sound = np.ones(len(work.keys), dtype=bool)
        losses = self.asked(q, work, operand, measured)
        with threads_for(self.accesses(operand, work)):
            loop = (rows, mean, natural, q.moments[name], sound)
            if work.drawn is not None:
                share(update_drawn, to, work.drawn, *loop)
            else:
                share(self.whole_loop(operand, joint), to, *loop, losses)
        if work.keyed.longest > LONG:
            long = rows.end - rows.begin > LONG
            if work.drawn is not None:
                long &= rows.end - rows.begin <= work.drawn.most
            for m in np.flatnonzero(long):
                own = (rows, mean, natural, q.moments[name], losses)
                sound[m] = loops.update_long(to, int(m), *own)
        return Updated(natural, bool(sound.all()), losses.out)

    def asked(self, q: Beliefs, work: Work, operand: LoopOperand, measured: bool) -> Losses:
        """Return an array for the losses of each key, empty if they are not measured."""
        if not measured:
            return Losses(ONE, np.empty(0))
        weight = plain(self.weights(q, work.keyed, operand.column, np.float64)[0])
        return Losses(weight, np.empty(len(work.keys)))
