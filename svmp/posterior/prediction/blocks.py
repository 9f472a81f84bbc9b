"""Joint blocks of a fit in the rows to predict: joint draws, and covariances of means.

A block is either integrated over as a whole, where the mean of a row is linear in its variables, or
drawn as a whole. Integrated over, its variables count as known in the row, and it adds

    Var[mu] = sum over unknowns i, j of  x_i x_j cov_ij

to the variance of the mean. Where these terms cancel, as those of collinear coefficients do, the
sum is computed from the factors of cov.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from svmp.families.family import Array
from svmp.inference.gaussian.joint_posterior import JointPosterior
from svmp.inference.updaters.joint_rows import lines_of, mean_of, row_covariances
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.grid import Ints
from svmp.network.joint_normal import AT_ONCE, Layout
from svmp.network.means.linear import Linear
from svmp.network.variable import Variable

CANCELLED = 1e-5
"""Share of what its terms could add up to, below which a variance is computed from factors."""


@dataclass(frozen=True, eq=False)
class KnownBlock:
    """A joint block of a fit, as a newly declared network sees it.

    Attributes
    ----------
    joint
        The joint q.
    means
        By variable of the fit, the means of its elements, (elements, entries).
    place
        By variable of the network, the element in the fit of each element; -1 for new ones.
    linear
        Whether rows multiply its variables, which are then not drawn together (linearised.py).
    """

    joint: JointPosterior
    means: Mapping[str, Array]
    place: Mapping[str, Ints]
    linear: bool = False
    _added: dict[str, Array] = field(default_factory=dict)
    _lines: dict[str, Any] = field(default_factory=dict)

    def draw(
        self,
        elements: Mapping[str, Ints],
        size: int,
        rng: np.random.Generator,
        stratified: bool = False,
    ) -> dict[str, Array]:
        """Return joint draws of some elements of its variables, (size, elements, entries).

        Parameters
        ----------
        elements
            By variable of the network, the elements to draw.
        size, rng
            Number of draws, and random numbers.
        stratified
            Whether the standard Normals behind the draws are in strata, see `draw_known`.
        """
        mine = {name: some for name, some in elements.items() if name in self.place}
        if not mine or self.linear:
            return {}
        at = {name: self.place[name][some] for name, some in mine.items()}
        unknowns = {name: self.joint.layout.places(name)[some] for name, some in at.items()}
        found = {name: np.empty((size, *some.shape)) for name, some in unknowns.items()}
        step = max(1, AT_ONCE // self.joint.layout.size)
        for start in range(0, size, step):
            white = standard_strata if stratified else None
            around = self.joint.covariance.draw(rng, min(step, size - start), white)
            around = around * self.joint.scale
            for name, some in unknowns.items():
                found[name][start : start + step] = self.means[name][at[name]] + around[:, some]
        return found

    def added(self, given: Conditional, rows: Ints) -> Array:
        """Return what the block adds to the variance of the mean of some sub-rows.

        That is all of the variance that is due to it. Of a block that is linearised it is what the
        covariances add to the variance under independent variables.
        """
        table = given.variable.name
        if table not in self._added:
            self._added[table] = self._covariances(given)
        return self._added[table][rows]

    @cached_property
    def precision(self) -> Array:
        """The inverse of the covariance matrix."""
        return np.asarray(self.joint.covariance.precision.toarray())

    def lines(self, given: Conditional) -> Any:
        """Return the derivatives of the means of all rows by the unknowns of the fit, sparse."""
        table = given.variable.name
        if table not in self._lines:
            self._lines[table] = sparse.vstack([*self._scaled_lines(given)], format="csr")
        return self._lines[table]

    def shift(
        self, given: Conditional, q: Beliefs, known: Mapping[str, Ints], drawn: Array
    ) -> Array:
        """Return g . (d - e) of all rows, for a draw q of what they depend on and d of the block.

        Parameters
        ----------
        given
            The density of the rows.
        q, known
            A draw m + e, and by variable the elements that were drawn.
        drawn
            d, with mean 0.
        """
        step = drawn.copy()
        for name in (n for n in known if n in self.place):
            at = self.place[name][known[name]]
            places = self.joint.layout.places(name)[at]
            step[places] -= q.moments[name][known[name], : places.shape[1]] - self.means[name][at]
        return np.asarray(self.lines(given) @ step)

    def _covariances(self, given: Conditional) -> Array:
        if self.linear:
            lines, every = self.lines(given), np.arange(self.joint.layout.size)
            apart = self.joint.covariance.dense(every)
            for name in self.joint.layout.names:
                for places in self.joint.layout.places(name):
                    apart[np.ix_(places, places)] -= np.linalg.inv(
                        self.precision[np.ix_(places, places)]
                    )
            return np.asarray((lines @ apart * lines.toarray()).sum(axis=1))
        found = [self._variances(lines) for lines in self._scaled_lines(given)]
        return np.concatenate([np.zeros(0), *found])

    def _variances(self, lines: Any) -> Array:
        """Return x^T cov x of each row of a sparse matrix."""
        covariance, none = self.joint.covariance, np.zeros(0, dtype=np.int64)
        each: Ints = np.arange(self.joint.layout.size)
        pairs = row_covariances(lines, 1, each)
        found = lines.power(2) @ covariance.variances
        if pairs is not None:
            found = found + pairs.sums(covariance, none)[:, 0]
        largest = (abs(lines) @ np.sqrt(np.maximum(covariance.variances, 0.0))) ** 2
        few = np.flatnonzero(found < CANCELLED * largest)
        found[few] = covariance.quadratic(lines[few])
        return np.asarray(found)

    def _scaled_lines(self, given: Conditional) -> Iterator[Any]:
        """Yield the coefficients of the unknowns of the fit in blocks of rows, scaled."""
        variables = {v.name: v for v in given.slots[mean_of(given)].variables}
        mine = {name: v for name, v in variables.items() if name in self.place}
        then = self.joint.layout
        layout = Layout.of(
            {n: v.size for n, v in mine.items()}, {n: then.dimensions[n] for n in mine}
        )
        q = Beliefs()
        for name, variable in variables.items():
            if not variable.hidden:
                q.moments[name] = variable.conditional.child(q, variable.rows)
            elif name in self.place:  # its mean is the coefficient of what it multiplies
                q.moments[name] = self.means[name][np.maximum(self.place[name], 0)]
        old = np.empty(layout.size, dtype=np.int64)
        for name in mine:
            at = self.place[name]
            old[layout.places(name)] = np.where(at[:, None] < 0, -1, then.places(name)[at])
        for lines in lines_of(layout, q, given):
            yield in_fit(lines, old, self.joint.scale)


def standard_strata(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return standard Normals, with one along the last axis in each part of equal probability."""
    order = rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
    return np.asarray(ndtri((order + rng.random(shape)) / shape[-1]))


def in_fit(lines: Any, old: Ints, scale: Array) -> Any:
    """Return lines with the unknowns of the fit as columns, scaled, without new elements."""
    lines = lines.tocoo()
    row, column = lines.coords
    kept = old[column] >= 0
    shape = (lines.shape[0], len(scale))
    values = (lines.data[kept] * scale[old[column[kept]]], (row[kept], old[column[kept]]))
    found = type(lines)(values, shape=shape).tocsr()
    found.sum_duplicates()
    return found


def known_in_rows(
    blocks: Sequence[KnownBlock], known: Mapping[str, Ints], integrated: Collection[str]
) -> set[str]:
    """Return variables of blocks that are integrated over as a whole, whose variance blocks add."""
    whole = (b for b in blocks if not b.linear and not is_single(b, known))
    return {name for block in whole for name in block.place if name in known} & set(integrated)


def is_single(block: KnownBlock, known: Mapping[str, Ints]) -> bool:
    """Return whether one element of a block is needed only, so that marginals suffice."""
    return sum(len(e) for n, e in known.items() if n in block.place) <= 1


def without_variance(natural: Array, moments: Array) -> Array:
    """Return moments of Normals or MvNormals as if their means were known numbers."""
    size = int((np.sqrt(1 + 4 * natural.shape[1]) - 1) / 2)
    mean = moments[:, :size]
    return np.concatenate([mean, (mean[:, :, None] * mean[:, None]).reshape(len(mean), -1)], axis=1)


def is_whole(
    block: KnownBlock,
    given: Conditional,
    variables: Mapping[str, Variable],
    known: Mapping[str, Ints],
    new: Mapping[str, Ints],
) -> bool:
    """Return whether a block can be integrated over: it is read by the linear means of rows only.

    Not if its variables are multiplied by hidden ones, nor if new elements depend on it, which are
    correlated through it.
    """
    if block.linear:
        return True
    slot = given.slots.get(mean_of(given)) if mean_of(given) else None
    mine = {name for name in known if name in block.place}
    if not isinstance(slot, Linear) or not mine <= {v.name for v in slot.variables}:
        return False
    for term in slot.terms:
        hidden = [r.variable.name for r in term.readers if r.variable.hidden]
        if len(hidden) > 1 and mine & set(hidden):
            return False
    above = {p.name for name in new for p in variables[name].conditional.parents()}
    return not mine & above
