"""The loops of one density whose mean or logit has a dot product of MvNormals.

Their rows are like those of the multilinear loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from svmp.families.family import Array
from svmp.kernels.machine.simd import EIGHT
from svmp.kernels.machine.threads import STREAM, share, threads_for
from svmp.kernels.multilinear.loop_table import LoopOperand
from svmp.kernels.multilinear.table import Numbers, plain
from svmp.kernels.multilinear.terms import LoopRows, Mean, Receiver
from svmp.kernels.multilinear.updater import Multilinear, Updated
from svmp.kernels.multilinear.work import Work
from svmp.kernels.vectors import solve, terms
from svmp.kernels.vectors import update as loops
from svmp.kernels.vectors.update import LONG
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.means.linear import LinearTerm, dimension
from svmp.network.reader import Reader

PAIR = 2
"""Vectors in a dot product whose losses updates can compute."""


@dataclass(frozen=True, eq=False)
class Vectors(Multilinear):
    """The loops of one density: each row reads one element of every operand."""

    draws: ClassVar[bool] = False

    def partner(self, name: str) -> LoopOperand | None:
        """Return the other vector in a dot product of two with no coefficient that varies."""
        operand = self.operand(name)
        both = [o for o in self.operands if o.term == operand.term]
        if len(both) != PAIR or self.terms[operand.term].constants or self.place(name)[2] == 1:
            return None
        return both[1] if both[0] is operand else both[0]

    def centred(self, name: str) -> str | None:
        """Return the first vector of a dot product if `name` is the second.

        The second is updated last as a rule, and covariances are what its losses need. The update
        of the first reads second moments, which takes less time.
        """
        partner = None if self.logit else self.partner(name)
        if partner is None or self.operands.index(partner) > self.operands.index(
            self.operand(name)
        ):
            return None
        return partner.name

    def measures(self, name: str) -> bool:
        """Whether updates can compute losses: for a dot product beside biases."""
        operand = self.operand(name)
        others = (o for o in self.operands if o.term != operand.term)
        biases = all(
            len(self.terms[o.term].readers) == 1 and not o.reader.variable.event_dims
            for o in others
        )
        return super().measures(name) and biases and self.centred(name) is not None

    @staticmethod
    def reads(reader: Reader, slots: tuple[str, ...]) -> bool:
        """Whether an operand is a whole vector, or a bias."""
        if not slots:
            return reader.variable.family.gaussian == "number"
        whole = reader.index[-1] == slots[0] and not reader.carried
        return reader.variable.family.gaussian == "vector" and whole

    def packed_size(self, term: LinearTerm) -> int:
        """Return `packed_size` with the K (K - 1) / 2 cross moments, padded to eights."""
        width = term.scope.inner.size
        return super().packed_size(term) + -(-width * (width - 1) // 2 // EIGHT) * EIGHT

    def pack(self, moments: Array, operand: LoopOperand, centred: bool, out: Numbers) -> None:
        padded = self.packed_width(self.terms[operand.term])
        with threads_for(out.size // STREAM):
            width = dimension(operand.reader.variable)
            share(terms.pack, moments, width, padded, centred, out)

    def row_moments(self, rows: LoopRows, mean: Mean) -> Array:
        out = np.empty((rows.columns.shape[1], 2))
        share(terms.row_moments, rows, mean, out)
        return out

    def sum_losses(self, rows: LoopRows, mean: Mean, keys: Ints) -> Array:
        out = np.empty(len(keys))
        share(terms.losses, rows, mean, keys, out)
        return out

    def place(self, name: str) -> tuple[int, int, int]:
        term, operand, _ = super().place(name)
        return term, operand, dimension(self.operand(name).reader.variable)

    def line_size(self, name: str) -> int:
        return solve.line_size(self.place(name)[2])

    def sum_cost(self, name: str, work: Work) -> int:
        return int(work.read.sum()) * self.line_size(name) // STREAM

    @staticmethod
    def add_to_keys(to: Receiver, rows: LoopRows, mean: Mean, places: Ints, total: Array) -> None:
        solve.add_to_keys(to, rows, mean, places, total)

    @staticmethod
    def whole_loop(operand: LoopOperand, joint: bool) -> Any:
        return loops.update

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
        """Update elements; the entries of a vector are always solved together."""
        natural = q.natural[name] if at_once else q.natural[name].copy()
        rows, mean = self.reading(q, name, work)
        place = self.place(name)
        to = Receiver(*place, work.keys, work.scale, rho, plain(prior), at_once, True)
        sound = np.ones(len(work.keys), dtype=bool)
        with threads_for(int(work.read.sum()) * prior.shape[1] // STREAM):
            losses = self.asked(q, work, self.operand(name), measured)
            share(loops.update, to, rows, mean, natural, q.moments[name], sound, losses)
        for m in np.flatnonzero(rows.end - rows.begin > LONG):
            own = (rows, mean, natural, q.moments[name], losses)
            sound[m] = loops.update_long(to, int(m), *own)
        return Updated(natural, bool(sound.all()), losses.out)
