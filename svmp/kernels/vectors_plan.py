"""What the loops of vectors serve: means and logits with a dot product of MvNormals in them.

All else about their rows is as for the multilinear loops, so that the plan is one of those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmp.families.family import Array
from svmp.families.mvnormal import MvNormal
from svmp.families.normal import Normal
from svmp.kernels import vectors
from svmp.kernels.plan import Operand, Plan, Precision, Work
from svmp.kernels.table import Numbers
from svmp.kernels.terms import Mean, Rows
from svmp.kernels.threads import threads_for
from svmp.kernels.vectors import Cross, Receiver
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints, ragged
from svmp.network.linear import dimension
from svmp.network.reader import Reader

PIECE = 1024
"""Rows of one key that a thread adds up at a time, so that a key with many is shared."""


@dataclass(frozen=True, eq=False)
class VectorPlan(Plan):
    """A conditional that the loops of vectors serve: every operand is read one element a row."""

    @staticmethod
    def reads(reader: Reader, slots: tuple[str, ...]) -> bool:
        """Whether an operand is a vector that is read whole, or a bias."""
        if not slots:
            return isinstance(reader.variable.family, Normal)
        whole = reader.index[-1] == slots[0] and not reader.carried
        return isinstance(reader.variable.family, MvNormal) and whole

    def pack(self, q: Beliefs, operand: Operand, out: Numbers) -> None:
        k, moments = dimension(operand.reader.variable), q.moments[operand.name]
        both = out.reshape(len(moments), 2 * k)
        both[:, :k], both[:, k:] = moments[:, :k], moments[:, k :: k + 1]

    def cross(self, q: Beliefs, dtype: Precision) -> Cross:
        """Return the cross moments of all operands as the loops read them."""
        packed = []
        for operand in self.operands:
            k = dimension(operand.reader.variable)
            left, right = np.triu_indices(k, 1)
            found = q.moments[operand.name].take(k + left * k + right, axis=1)
            packed.append(found.astype(dtype).ravel())
        return Cross(np.concatenate(packed), np.cumsum([0, *(len(p) for p in packed[:-1])]))

    def row_moments(self, q: Beliefs, rows: Rows, mean: Mean) -> Array:
        return vectors.row_moments(rows, mean, self.cross(q, np.float64))

    def row_losses(self, q: Beliefs, rows: Rows, mean: Mean, keys: Ints) -> Array:
        return vectors.losses(rows, mean, self.cross(q, np.float64), keys)

    def update(
        self,
        q: Beliefs,
        name: str,
        work: Work,
        prior: Array,
        rho: Array,
        at_once: bool,
        joint: bool,
    ) -> Array:
        """Blend in what the rows say, as `Plan.update`; the entries of a vector are one anyway."""
        operand = self.operand(name)
        natural = q.natural[name] if at_once else q.natural[name].copy()
        own = np.require(
            np.broadcast_to(prior, (len(rho), prior.shape[1])), requirements=["C", "W"]
        )
        to = Receiver(work.keys, work.scale, rho, own, at_once)
        with threads_for(int(work.read.sum()) * prior.shape[1]):
            sums = self.message_sums(q, operand, work)
            vectors.settle(to, dimension(operand.reader.variable), sums, natural, q.moments[name])
        return natural

    def message_sums(self, q: Beliefs, operand: Operand, work: Work) -> Array:
        """Return the sums over the rows of each key, of which long ones are added up in pieces."""
        rows = self.rows(q, work.keyed, work.keys)
        count = np.maximum(-(-(rows.end - rows.begin) // PIECE), 1)
        first = np.cumsum(count) - count
        owner, piece = ragged(np.zeros_like(count), count)
        begin = rows.begin[owner] + piece * PIECE
        end = np.minimum(begin + PIECE, rows.end[owner])
        sums = vectors.message_sums(
            operand.term,
            self.operands.index(operand),
            work.keys[owner],
            rows._replace(begin=begin, end=end),
            self.mean(q, operand.column, self.precision),
            self.cross(q, self.precision),
        )
        return np.add.reduceat(sums, first) if len(owner) > len(first) else sums
