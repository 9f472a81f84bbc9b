"""The score of values that were left out of training.

The score is what the held-out rows would add to the bound, with their local variables optimised
and q of all other variables fixed: for a row without local variables, E[log p(y | parents)]; for
one with a local Categorical z, log sum_z exp(E[log p(z)] + E[log p(y | z)]). By Jensen's inequality
both are at most the predictive log density, log E[p(y | parents)]; so is the bound of a logit.

The held-out rows are a network of their own: the same hidden variables, with other rows observed.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.program.program import Program
from svmp.inference.running.scratch import NONE, ChosenElements, locals_of, optimise, scratch_copy
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.validation import shown
from svmp.network.variable import Variable
from svmp.saving.fingerprint import fingerprint

PASSES = 100
"""Most passes over the local variables, where one is not enough for them to converge."""
TOLERANCE = 1e-10
"""A score has converged when it changes by at most this, or this share of its size."""


class Scorer(ABC):
    """Computes the column `held_out` of the trace.

    Attributes
    ----------
    count
        Number of held-out rows.
    fingerprint
        A short hash of the values.
    """

    count: int
    fingerprint: str

    @abstractmethod
    def score(self, program: Program, q: Beliefs) -> float:
        """Return the mean over held-out rows of what they would add to the bound of q."""


@dataclass(frozen=True)
class HeldOut(Scorer):
    """Values of one table that were left out of training.

    Attributes
    ----------
    rows
        The hidden variables of training, observed through the held-out rows only.
    elements, own
        By local variable: its elements in the held-out rows; those of them with no row in training.
    """

    rows: Network
    elements: Mapping[str, Ints]
    own: Mapping[str, Ints]

    @classmethod
    def of(cls, network: Network, values: Any) -> HeldOut:
        """Check held-out values by variable, NaN or masked where nothing is held out."""
        if not isinstance(values, Mapping) or not values:
            raise ModelError(f"held_out must be values by variable, not {shown(values)}")
        variables = network.model.variables
        held = {name: held_out_of(variables, name, given) for name, given in values.items()}
        return cls.between(network, held)

    @classmethod
    def between(
        cls, network: Network, held: Mapping[str, Variable], names: Collection[str] | None = None
    ) -> HeldOut:
        """Return the held-out variables of a network, of which `names` or all locals are local."""
        model = copy.copy(network.model)
        model.variables = {**network.hidden, **held}
        rows = Network(model, network.learned, continued=network.continued)
        # Local or not is decided in training.
        rows.locals = [n for n in network.locals if names is None or n in names]
        elements, own = {}, {}
        for local in rows.locals:
            found = [locals_of(rows, local, name, v.rows)[0] for name, v in held.items()]
            elements[local] = np.unique(np.concatenate([NONE, *found]))
            own[local] = elements[local][network.child_counts[local][elements[local]] == 0]
        return cls(rows, elements, own)

    @property
    def count(self) -> int:  # type: ignore[override]
        """Number of held-out rows."""
        return sum(v.count for v in self.rows.observed.values())

    @property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A short hash of the values."""
        arrays: list[Any] = []
        for name, variable in sorted(self.rows.observed.items()):
            assert variable.observed is not None
            code = np.frombuffer(name.encode(), np.uint8)
            arrays += [code, variable.rows, variable.observed[variable.rows]]
        return fingerprint(arrays)

    def score(self, program: Program, q: Beliefs) -> float:
        return self.mean(q)

    def mean(self, q: Beliefs) -> float:
        """Return the mean over held-out rows of what they would add to the bound of q."""
        return self._mean(self._optimised(q))

    def _optimised(self, q: Beliefs) -> Beliefs:
        """Return a copy of q with the local variables of the held-out rows optimised."""
        q = scratch_copy(self.rows, q, self.elements)
        q.blocks = tuple(block.without(self.own) for block in q.blocks)
        chosen = ChosenElements(self.rows, self.own)
        sets = sum(len(chosen.groups(name)) for name in self.own)
        tangents = any(e.conditional.factor.convex for n in self.own for e in self.rows.edges[n])
        score = -np.inf
        for _ in range(PASSES):
            optimise(self.rows, q, self.own)
            if not (sets > 1 or tangents):
                break
            before, score = score, self._mean(q)
            if abs(score - before) <= TOLERANCE * max(1.0, abs(score)):
                break
        return q

    def _mean(self, q: Beliefs) -> float:
        rows = {name: v.rows for name, v in self.rows.observed.items()}
        tables = {**self.own, **rows}
        total = sum(float(self._terms(q, name, some).sum()) for name, some in tables.items())
        return total / self.count

    def _terms(self, q: Beliefs, name: str, rows: Ints) -> Array:
        """Return what some rows of a table add to the bound.

        A row whose component a chain of states chooses adds log sum_k q(z = k) exp(E[log p(x | k)])
        to the normaliser of its sequence.
        """
        variable = self.rows.variable(name)
        given = variable.conditional
        chosen = [] if given.selector is None else given.selector.variables
        if variable.hidden or not any(z.name in self.rows.chains for z in chosen):
            return self.rows.terms(q, name, rows)
        assert given.selector is not None
        assert variable.observed is not None
        weights, base = given.selector.moments(q, rows), variable.family.at(rows).log_base
        found = logsumexp(given.densities(q, rows), axis=1, b=weights)
        return np.asarray(found + base(variable.observed[rows]))

    def pointwise(self, q: Beliefs) -> Array:
        """Return what each held-out row would add to the bound of q, one table after the other."""
        q = self._optimised(q)
        left = {name: self.rows.terms(q, name, some) for name, some in self.own.items()}
        found = []
        for table, variable in self.rows.observed.items():
            terms = self._terms(q, table, variable.rows)
            for local, own in self.own.items():
                elements, rows = locals_of(self.rows, local, table, variable.rows)
                _, at, of = np.intersect1d(own, elements, return_indices=True)
                np.add.at(terms, np.searchsorted(variable.rows, rows[of]), left[local][at])
                left[local][at] = 0.0  # one that two tables share counts for the first
            found.append(terms)
        return np.concatenate(found)


def held_out_of(variables: Mapping[str, Variable], name: str, values: Any) -> Variable:
    """Return an observed variable with the held-out values instead of those of training."""
    observed = {n: variable for n, variable in variables.items() if not variable.hidden}
    if name not in observed:
        raise ModelError(
            f"held_out names {shown(name)}, which is not an observed variable; there are "
            f"{list(observed)}"
        )
    variable = observed[name]
    try:
        held = variable.observing(values)
    except ModelError as error:
        raise ModelError(f"held_out: {error}") from None
    both = np.intersect1d(held.rows, variable.rows)
    if len(both):
        where = variable.plate.locate(int(both[0]))
        raise ModelError(
            f"held_out has a value of '{name}' at {where}, which is observed in training; leave it "
            "out of one of the two"
        )
    return held
