"""Draws of the parents of some rows: from q where the fit knows them, else from their prior.

A draw is a `Beliefs` whose moments are the statistics of the drawn values, so that every slot gives
a density the parameters of that draw. Some variables are not drawn but integrated over: they have
their moments given the drawn ones. Means, variances and distribution functions of a row are then
averages over draws of conditional ones (Rao-Blackwell), which few draws suffice for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array, Family
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.partly_known import base_of
from svmp.network.variable import Variable
from svmp.posterior.prediction.blocks import known_in_rows, without_variance
from svmp.posterior.prediction.chains import chain_of, forecast, in_turn, mark_earlier
from svmp.posterior.prediction.joint import draw_known, strata
from svmp.posterior.prediction.known import Known

AT_ONCE = 1 << 22
"""Most numbers that are drawn at once."""


@dataclass(frozen=True, eq=False)
class Needed:
    """The elements that some rows depend on, by variable, parents first.

    Attributes
    ----------
    known, new
        Elements that are drawn from q, and from their prior given drawn parents.
    """

    known: Mapping[str, Ints]
    new: Mapping[str, Ints]

    @property
    def numbers(self) -> int:
        """Number of elements."""
        return sum(len(e) for part in (self.known, self.new) for e in part.values())

    def with_hidden_parents(self, variables: Mapping[str, Variable]) -> dict[str, list[str]]:
        """Return by variable with new elements the variables that these depend on."""
        return {
            name: [parent.name for parent in variables[name].conditional.parents()]
            for name, elements in self.new.items()
            if len(elements)
        }


def needed(known: Known, target: str, rows: Ints) -> Needed:
    """Return the elements that rows of a variable depend on."""
    marks = {
        name: np.zeros(variable.size, dtype=bool)
        for name, variable in known.variables.items()
        if name != target and name not in known.given
    }
    mark_parents(known.variables[target], rows, marks)
    found_known, found_new = {}, {}
    for name in reversed(marks):
        chain = chain_of(known.variables[name])
        if chain is not None:
            mark_earlier(chain, marks[name], known.known.get(name, np.zeros_like(marks[name])))
        old, new = known.split(name, np.flatnonzero(marks[name]))
        if len(old):
            found_known[name] = old
        if len(new):
            found_new[name] = new
            mark_parents(known.variables[name], new, marks)
    order = [name for name in marks if name in found_known or name in found_new]
    return Needed(
        {n: found_known[n] for n in order if n in found_known},
        {n: found_new[n] for n in order if n in found_new},
    )


def mark_parents(variable: Variable, rows: Ints, marks: Mapping[str, Array]) -> None:
    """Mark the elements of hidden parents that some rows depend on."""
    given = variable.conditional
    if chain_of(variable) is not None:
        for parent in given.parents():
            if parent.name in marks:
                marks[parent.name][:] = True
        return
    step = given.chunk(1)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        for slot in given.all_slots():
            where = part if slot is given.selector else given.subrows(part)
            for parent in slot.variables:
                if parent.name in marks and not marks[parent.name].all():
                    marks[parent.name][slot.pairs(parent, where)[0]] = True


@dataclass(frozen=True, eq=False)
class Simulation:
    """Draws of what some rows depend on.

    Attributes
    ----------
    known, needed
        What the fit knows, and the elements to draw.
    integrated
        Variables that are not drawn: they have their moments, and natural parameters, given the
        drawn ones.
    stratified
        Whether draws are in strata instead of independent.
    """

    known: Known
    needed: Needed
    integrated: Collection[str] = ()
    stratified: bool = False

    @property
    def varying(self) -> set[str]:
        """Variables whose moments differ between draws."""
        found = {n for n in (*self.needed.known, *self.needed.new) if n not in self.integrated}
        parents = self.needed.with_hidden_parents(self.known.variables)
        for name, above in parents.items():
            if found & set(above):
                found.add(name)
        return found

    def draws(self, size: int, rng: np.random.Generator) -> Iterator[Beliefs]:
        """Yield draws, all in the same arrays."""
        q = self._start()
        drawn = {n: e for n, e in self.needed.known.items() if n not in self.integrated}
        families = {n: family_of(self.known.variables[n], e) for n, e in drawn.items()}
        natural = {n: self.known.natural[n][e] for n, e in drawn.items()}
        uniform = self._strata(size, rng)
        chains = {n: chain_of(self.known.variables[n]) for n in self.needed.new}
        turns = {n: in_turn(c, self.needed.new[n]) for n, c in chains.items() if c is not None}
        step = max(1, AT_ONCE // max(1, sum(a.size for a in natural.values())))
        step = size if self.stratified and step < size and size else step
        for start in range(0, size, step):
            count = min(step, size - start)
            joint: dict[str, Array] = {}
            for block in self.known.blocks:
                joint |= block.draw(drawn, count, rng, self.stratified)
            values = draw_known(families, natural, count, rng, self.stratified, joint)
            statistics = {n: families[n].statistics(x) for n, x in values.items()}
            for place in range(count):
                for name, elements in drawn.items():
                    q.moments[name][elements] = statistics[name][place]
                for name, elements in self.needed.new.items():
                    if name in turns:
                        self._forecast(q, name, turns[name], rng)
                        continue
                    given = uniform.get(name)
                    self._add_new(q, name, elements, rng, None if given is None else given[place])
                q.version += 1
                yield q

    def _strata(self, size: int, rng: np.random.Generator) -> dict[str, Array]:
        """Return uniform numbers for the new elements that are drawn in strata."""
        found = {}
        for name, elements in self.needed.new.items() if self.stratified else ():
            variable = self.known.variables[name]
            if name not in self.integrated and chain_of(variable) is None:
                each = strata(base_of(variable.family), len(elements), size, rng)
                if each is not None:
                    found[name] = each
        return found

    def _start(self) -> Beliefs:
        """Return beliefs with what is the same in every draw."""
        whole = known_in_rows(self.known.blocks, self.needed.known, self.integrated)
        q = Beliefs()
        for name in self.known.given:
            variable = self.known.variables[name]
            q.moments[name] = variable.conditional.child(q, variable.rows)
        for name in (*self.needed.known, *self.needed.new):
            variable = self.known.variables[name]
            shape = (variable.size, variable.family.size)
            q.moments[name] = np.full(shape, np.nan)
            if name not in self.integrated:
                continue
            q.natural[name] = np.full(shape, np.nan)
            elements = self.needed.known.get(name)
            if elements is not None:
                natural = self.known.natural[name][elements]
                q.natural[name][elements] = natural
                family = family_of(variable, elements)
                q.moments[name][elements] = integrated_moments(family, natural)
                if name in whole:
                    some = q.moments[name][elements]
                    q.moments[name][elements] = without_variance(natural, some)
        set_values(q, self.known)
        return q

    def _forecast(self, q: Beliefs, name: str, turns: list[Ints], rng: np.random.Generator) -> None:
        """Add new rows of a chain, one after the other."""
        variable = self.known.variables[name]
        chain = chain_of(variable)
        assert chain is not None
        for rows in turns:
            self._add(q, variable, rows, forecast(chain, q, rows), rng, None)

    def _add_new(
        self, q: Beliefs, name: str, elements: Ints, rng: np.random.Generator, uniform: Array | None
    ) -> None:
        """Add new elements, given a draw of their parents."""
        variable = self.known.variables[name]
        self._add(q, variable, elements, variable.conditional.to_child(q, elements), rng, uniform)

    def _add(
        self,
        q: Beliefs,
        variable: Variable,
        elements: Ints,
        natural: Array,
        rng: np.random.Generator,
        uniform: Array | None,
    ) -> None:
        """Draw elements, or set their moments if they are integrated over."""
        family, name = family_of(variable, elements), variable.name
        if name in self.integrated:
            q.natural[name][elements] = natural
            q.moments[name][elements] = integrated_moments(family, natural)
        else:
            x = draw(family, natural, rng) if uniform is None else family.quantile(natural, uniform)
            q.moments[name][elements] = family.statistics(x)


def family_of(variable: Variable, elements: Ints) -> Family:
    """Return the family of some elements without observed values."""
    return base_of(variable.family).at(elements)


def set_values(q: Beliefs, known: Known) -> None:
    """Set the moments of the observed elements of variables that are observed in part."""
    for name, variable in known.variables.items():
        observed = known.values(name)
        if observed is None or name in known.given:
            continue
        if name not in q.moments:
            q.moments[name] = np.full((variable.size, variable.family.size), np.nan)
        some = np.flatnonzero(observed.known)
        q.moments[name][some] = observed.statistics(observed.values[some])


def integrated_moments(family: Family, natural: Array) -> Array:
    """Return the moments of elements that are integrated over.

    Of a Dirichlet they are log E[p] instead of E[log p]: a category chosen by it, and nothing else,
    then has its exact probabilities E[p].
    """
    if family.simplex:
        return family.log_mean(natural)
    return family.moments(natural)


def draw(family: Family, natural: Array, rng: np.random.Generator) -> Array:
    """Return one draw of each element."""
    return np.asarray(family.draw(natural, rng, 1)[0])


def check_finite(name: str, values: Array) -> None:
    """Refuse draws that are not finite."""
    if not np.isfinite(values).all():
        raise ModelError(
            f"draws of '{name}' are too large for 64-bit floats: a prior above it is too vague, as "
            "that of a Gamma with a small alpha; give it more information"
        )
