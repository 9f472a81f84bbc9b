"""Joint blocks: q of several Normals and MvNormals as one multivariate Normal.

Given all other variables the expected log density is quadratic in the unknowns theta of a block, so
that the optimal q is Normal with

    P = sum over rows of X^T w X,        m' = m + P^-1 sum over rows of X^T w (y - E[mu]),

where the rows are those of the tables that read the block, and of its own variables
(joint_rows.py). The diagonal blocks of P^-1 are the marginals of its elements, in q.natural and
q.moments as those of all variables; its other entries are read where a row depends on several
elements (network/joint_normal.py). The rows of a logit have the w of the tangent at the current q.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeGuard

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array, Family
from svmp.inference.gaussian.analysis import MANY
from svmp.inference.gaussian.factor import Factor
from svmp.inference.gaussian.system import System
from svmp.inference.loops import may_compile
from svmp.inference.methods.draw import Draw
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.joint_rows import BlockRows, dense_lines
from svmp.inference.updaters.precision_pairs import PrecisionPair, pair_of
from svmp.inference.updaters.updater import Change, Updater
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.joint_normal import (
    Covariances,
    JointNormal,
    Layout,
    Paired,
    RowCovariances,
    described,
    natural_of,
)
from svmp.network.means.linear import dimension
from svmp.network.network import Network
from svmp.network.variable import Variable

WITHOUT_LOOPS = " (all unknowns are in it, as kernels=False eliminates none of them)"
LARGEST = MANY
"""Most unknowns of a block that stay after the elimination of groups: their matrix is dense."""
INFLATED = 1e11
"""Largest ratio of the variance of an unknown to the one given all others. Standard deviations then
have a relative error of up to 1e-4, and that of the bound is as large."""
RIDGE = 1e-9
"""Share of the diagonal that is added to a precision matrix that cannot be factorised, to find out
which unknowns are collinear."""


@dataclass(frozen=True, eq=False)
class JointBlock:
    """Variables with a joint q, and the rows that depend on them.

    Attributes
    ----------
    variables, layout
        The variables, and where their unknowns are.
    tables
        The rows of each table.
    system
        Their normal equations.
    pair
        The precision of all rows, if it is in the block too.
    left_out
        Variables that could be in the block but for its size, each with the reason.
    """

    network: Network
    variables: tuple[Variable, ...]
    layout: Layout
    tables: tuple[BlockRows, ...]
    system: System
    pair: PrecisionPair | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, network: Network, variables: Sequence[Variable], precision: Any = None
    ) -> JointBlock:
        """Find the rows of some Normals, and how their precision matrix is factorised.

        `precision` is one that other rows have led to, if it is to be factorised too.
        """
        layout = layout_of(variables)
        tables = tuple(
            BlockRows.of(network, layout, fixed_moments(network), table)
            for table in tables_of(network, variables)
        )
        element = layout.elements()
        elements = [element[layout.places(v.name)[:, 0]] for v in variables]
        system = System.of([(t.lines, t.dimension) for t in tables], element, elements, precision)
        return cls(network, tuple(variables), layout, tables, system)

    def with_precision(self, variable: Variable) -> JointBlock:
        """Return the block together with the precision of all of its rows.

        Raises
        ------
        ModelError
            If some row has another precision.
        """
        pair = pair_of(self.network, self.layout, self.tables, variable)
        if isinstance(pair, str):
            raise ModelError(
                f"joint= cannot have '{variable.name}' with {quoted(self.layout.names)}: {pair}"
            )
        return replace(self, pair=pair)

    @property
    def densest(self) -> str | None:
        """The variable with most unknowns that stay, if they are too many; None if they are not."""
        tail = self.system.analysis.tail
        if len(tail) <= LARGEST:
            return None
        stay = np.zeros(self.layout.size, dtype=bool)
        stay[tail] = True
        return max(self.layout.names, key=lambda name: int(stay[self.layout.places(name)].sum()))

    def without_densest(self) -> JointBlock:
        """Return the block without the variable that has most unknowns in the dense matrix."""
        name, tail = self.densest, len(self.system.analysis.tail)
        assert name is not None
        others = [v for v in self.variables if v.name != name]
        reason = (
            f"which rows connect with so many others that the dense matrix would have {tail:,} "
            f"unknowns ({8 * tail**2 / 1e9:.2g} GB), and at most {LARGEST:,} are computed"
            f"{WITHOUT_LOOPS if not may_compile() else ''}"
        )
        return replace(
            JointBlock.of(self.network, others), left_out={**self.left_out, name: reason}
        )

    @property
    def line(self) -> str:
        """What q of the block is, and what was left out of it."""
        return described(self.layout, None if self.pair is None else self.pair.name, self.left_out)

    def check_size(self) -> None:
        """Refuse a block whose dense matrix would be too large."""
        if self.densest is not None:
            count = len(self.system.analysis.tail)
            raise ModelError(
                f"the joint block of {quoted(self.names)} has {count:,} unknowns "
                f"that rows connect with each other, and at most {LARGEST:,} can be: their "
                f"covariance matrix is dense{WITHOUT_LOOPS if not may_compile() else ''}; leave "
                f"'{self.densest}' out of joint="
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, with the precision if it is one of them."""
        return self.layout.names if self.pair is None else (*self.layout.names, self.pair.name)

    @cached_property
    def pairs(self) -> dict[str, RowCovariances]:
        """By table in which a row depends on several elements, what covariances add."""
        element, found = self.layout.elements(), dict[str, RowCovariances]()
        for table, rows in zip(self.tables, self.system.tables, strict=True):
            dense = dense_lines(table.lines, table.dimension, element)
            if dense is not None or rows.joins:
                found[table.conditional.variable.name] = rows if dense is None else dense
        return found

    def solve(self, q: Beliefs) -> tuple[JointNormal, Array]:
        """Return the optimal covariances and means, given all other variables."""
        joined = q.block_of(self.layout.names[0]) is not None  # its means are those of a solution
        precision, gradient, barren = self.assemble(q, check=joined)
        last = next((b for b in q.blocks if b.layout.names == self.layout.names), None)
        if last is not None and holds(last.covariance, self, precision):
            covariance = last.covariance
            joint = last if self.pair is None else self.with_covariance(covariance, barren, q)
        else:
            covariance = self.factorise(precision)
            joint = self.with_covariance(covariance, barren, q)
        means = self.means(q) + covariance.solve(gradient)
        if not np.isfinite(means).all():
            raise self._singular(covariance)
        return joint, means

    def factorise(self, precision: Array) -> Factor:
        """Return the covariances of a precision matrix, given as its entries in the pattern.

        Raises
        ------
        ModelError
            If unknowns are so collinear that too few digits of their variances are left.
        """
        try:
            covariance = self.system.factor(precision)
        except np.linalg.LinAlgError:
            analysis = self.system.analysis
            on = analysis.column == analysis.matrix.row
            try:
                ridge = np.where(on, RIDGE * np.abs(precision), 0.0)
                covariance = self.system.factor(precision + ridge)
            except np.linalg.LinAlgError:
                raise self._singular(None) from None
            raise self._singular(covariance) from None
        if not (np.abs(covariance.inflation) <= INFLATED).all():
            raise self._singular(covariance)
        return covariance

    def assemble(self, q: Beliefs, check: bool = False) -> tuple[Array, Array, float]:
        """Return the precision matrix, the gradient at the current means, and `barren`.

        `check` is that of `BlockRows.weigh`.
        """
        weights, gradient, barren = [], np.zeros(self.layout.size), 0.0
        for table in self.tables:
            weight, pull = table.weigh(q, check)
            weights.append(table.of_all_rows(weight))
            gradient += table.gradient(pull)
            barren += table.barren_log_det(weight) if len(table.barren) else 0.0
        return self.system.values(weights), gradient, barren

    def means(self, q: Beliefs) -> Array:
        """Return the means of all unknowns."""
        found = np.empty(self.layout.size)
        for name in self.layout.names:
            places = self.layout.places(name)
            found[places] = q.moments[name][:, : places.shape[1]]
        return found

    def with_covariance(self, covariance: Factor, barren: float, q: Beliefs) -> JointNormal:
        """Return q of the block with covariances that are known.

        `barren` is the log determinant of the precisions of barren rows. Barren elements follow the
        others, and are not in the bound.
        """
        entropy, own = 0.0, {}
        for variable in self.variables:
            own[variable.name] = covariance.blocks(self.layout.places(variable.name))
            counting = own[variable.name][self.network.rows(variable)]
            entropy += 0.5 * float(np.linalg.slogdet(counting)[1].sum())
        joint = -0.5 * (covariance.log_det - barren)
        if self.pair is not None:
            joint += self.pair.entropy(q)
        pair = None if self.pair is None else Paired(self.pair.name, self.pair.classes)
        return JointNormal(self.layout, covariance, self.pairs, own, entropy - joint, barren, pair)

    def _singular(self, covariance: Factor | None) -> ModelError:
        """Return the error of collinear terms, which names them where they are known."""
        collinear = self.names if covariance is None else self._collinear(covariance.inflation)
        return ModelError(
            f"the joint block of {quoted(self.names)} has a covariance matrix that cannot be "
            f"computed: rows hardly tell the terms {', '.join(collinear)} apart, which leaves too "
            "few digits of their variances; centre and scale covariates, leave one of the terms "
            "out, or use stronger priors"
        )

    def _collinear(self, inflation: Array) -> list[str]:
        """Return the terms that are collinear with others, in quotes."""
        size, found = np.nan_to_num(np.abs(inflation), nan=np.inf), []
        for name in self.layout.names:
            worst = size[self.layout.places(name)].max(axis=1, initial=0.0)
            chosen = np.flatnonzero(worst >= 0.01 * size.max())
            if len(worst) == 1 or len(chosen) > 3:
                found += [f"'{name}'"] if len(chosen) else []
            else:
                shape = self.network.hidden[name].plate.shape
                places = [", ".join(map(str, np.unravel_index(i, shape))) for i in chosen]
                found += [f"'{name}'[{place}]" for place in places]
        return found

    def restored(self, precision: Any, scale: Array, barren: float, q: Beliefs) -> JointNormal:
        """Return q of the block from a precision matrix that was stored.

        `scale` is what its standard deviations are multiplied by.
        """
        factor = self.system.factor(self.system.entries_of(precision))
        if (scale != 1).any():
            factor = factor.scaled(scale)
        return self.with_covariance(factor, barren, q)

    def rescaled(self, joint: JointNormal, before: Array, q: Beliefs) -> JointNormal:
        """Return q of the block after the expected precision of all of its rows has changed.

        Each row and each prior has a known multiple of it, so that the covariances are divided by
        the same number as it is multiplied by: there is nothing to factorise.
        """
        assert self.pair is not None
        assert isinstance(joint.covariance, Factor)
        ratio = (q.moments[self.pair.name][:, 0] / before)[self.pair.classes]
        barren = joint.barren
        for table in self.tables:
            if len(table.barren):
                own = self.layout.places(table.conditional.variable.name)[table.barren]
                barren += float(np.log(ratio[own]).sum())
        return self.with_covariance(joint.covariance.scaled(1 / np.sqrt(ratio)), barren, q)

    def marginals(self, joint: JointNormal, means: Array) -> Iterator[tuple[str, Array]]:
        """Yield the natural parameters of the marginals of each variable."""
        for name in self.layout.names:
            places = self.layout.places(name)
            yield name, natural_of(joint.own[name], means[places])


@dataclass(frozen=True, eq=False)
class JointBlockUpdater(Updater):
    """Updates a joint block from all rows."""

    block: JointBlock

    @property
    def label(self) -> str:  # type: ignore[override]
        """Short description."""
        pair = self.block.pair
        kind = "Normal" if pair is None else f"Normal-{type(pair.variable.family).__name__}"
        return f"jointly {kind}: {', '.join(self.names)}"

    @property
    def names(self) -> tuple[str, ...]:
        return self.block.names

    @property
    def solves_together(self) -> bool:
        return True

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        block, pair = self.block, self.block.pair
        joint, means = block.solve(q)
        for name, natural in block.marginals(joint, means):
            yield self._change(q, rows, rho, name, natural)
        set_joint(q, joint)  # once the means of all variables are in q
        if pair is None:
            return
        before = q.moments[pair.name].copy()
        yield self._change(q, rows, rho, pair.name, pair.solve(q, block.layout))
        if pair.variable.family.precision == "number":
            joint = block.rescaled(joint, before[:, 0], q)
        else:
            joint, _ = block.solve(q)  # the same means, with the new expected precision
        for name, natural in block.marginals(joint, means):
            yield Change(name, np.arange(len(natural)), natural, 0)
        set_joint(q, joint)

    @staticmethod
    def _change(q: Beliefs, rows: Draw, rho: StepRule, name: str, natural: Array) -> Change:
        elements = np.arange(len(natural))
        read = rows.read(name, elements)
        step = rho(q, name, elements, read, natural)
        noted = (None, None) if name in rows.locals else (step, read)
        return Change(name, elements, natural, int(read.sum()), *noted)

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        return {name: self.block.network.bound_term(q, name) for name in self.names}


def set_joint(q: Beliefs, joint: JointNormal) -> None:
    """Replace q of a block."""
    others = (b for b in q.blocks if b.layout.names != joint.layout.names)
    q.blocks = (*others, joint)
    q.version += 1


def holds(covariance: Covariances, block: JointBlock, precision: Array) -> TypeGuard[Factor]:
    """Return whether covariances are those of a precision matrix, which need no second factor."""
    return (
        isinstance(covariance, Factor)
        and covariance.analysis is block.system.analysis
        and covariance.scale is None
        and np.array_equal(covariance.values, precision)
    )


def layout_of(variables: Sequence[Variable]) -> Layout:
    """Number the unknowns of some variables."""
    sizes = {v.name: v.size for v in variables}
    return Layout.of(sizes, {v.name: dimension(v) for v in variables})


def tables_of(network: Network, variables: Sequence[Variable]) -> list[Conditional]:
    """Return the densities of some variables, and of those that depend on them."""
    found = {v.conditional: None for v in variables}
    found |= {e.conditional: None for v in variables for e in network.edges[v.name]}
    return list(found)


def fixed_moments(network: Network) -> Beliefs:
    """Return the moments of observed parents, which are coefficients."""
    q = Beliefs()
    for name, variable in network.observed_parents.items():
        q.moments[name] = variable.conditional.child(q, variable.rows)
    return q


def quoted(names: Sequence[str]) -> str:
    """Return names in quotes, with commas.

    >>> quoted(["a", "b"])
    "'a', 'b'"
    """
    return ", ".join(f"'{name}'" for name in names)


class Factorised(Protocol):
    """Covariances of a block, without its rows."""

    @property
    def layout(self) -> Layout:
        """Where the unknowns of each variable are."""
        ...

    @property
    def covariance(self) -> Covariances:
        """The covariances."""
        ...

    @property
    def barren(self) -> float:
        """See `JointNormal`."""
        ...

    @property
    def pair(self) -> Paired | None:
        """See `JointNormal`."""
        ...

    def at_mean(self, q: Beliefs, families: Mapping[str, Family]) -> Factorised:
        """Return it at the expected precision, as it is during a run; change q in the same way."""
        ...


def joint_normals(
    network: Network, q: Beliefs, blocks: Sequence[Factorised]
) -> tuple[JointNormal, ...]:
    """Return q of the blocks of a fit, with the rows of a network of the same variables.

    The marginals of blocks that are joint with a precision are changed in q: see `at_mean`.
    """
    found, families = [], {name: v.family for name, v in network.hidden.items()}
    for known in (block.at_mean(q, families) for block in blocks):
        variables = [network.hidden[name] for name in known.layout.names]
        block = JointBlock.of(network, variables, known.covariance.precision)
        if known.pair is not None:
            block = block.with_precision(network.hidden[known.pair.name])
        scale = np.ones(block.layout.size)
        found.append(block.restored(known.covariance.precision, scale, known.barren, q))
    return tuple(found)
