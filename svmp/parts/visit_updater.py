"""The updater of a visit: parts are visited, and shared variables updated from their sums.

sums_i        = sum over parts, in their order, of the part's sums for x_i
lambda_i_temp = solve(sums_i, eta_i)
lambda_i     <- (1 - rho_i) lambda_i + rho_i lambda_i_temp

After the last visit of a sweep, the bound needs no other one: parts return their terms at the q
with which they made the sums, and the sums say how much the terms of their tables rise from there
to lambda_temp (`LineSolver.gains`). One part that has all rows returns its terms at the new q.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from svmp.families.family import Array
from svmp.inference.acceleration.relaxation import means_of, relax
from svmp.inference.methods.division import PASSES
from svmp.inference.methods.draw import AllRows, Draw, Reading
from svmp.inference.program.program import Program
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.domain import check_domain
from svmp.inference.updaters.updater import Change, Updater, blend
from svmp.network.beliefs import Beliefs
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.parts.context import Visited
from svmp.parts.schedule import Visit
from svmp.parts.solution import Solution
from svmp.parts.workspace import Workspace, terms_of_all


@dataclass(frozen=True, eq=False)
class DrawnParts(Draw):
    """The parts that one iteration visits.

    Attributes
    ----------
    parts
        Their numbers.
    count
        Number of all parts.
    scaled
        Whether sums are scaled as if all parts had been visited (Algorithm 2).
    share
        Share of the observations that lie in the visited parts.
    restart, begins
        Where sums are kept: whether own variables start anew, and whether a sweep begins.
    first
        Where sums are kept: the step of a stochastic first visit; None if a visit is exact.
    """

    parts: Ints
    count: int
    scaled: bool
    share: float
    restart: bool = False
    begins: bool = False
    first: float | None = None

    @property
    def whole(self) -> bool:
        return len(self.parts) == self.count

    @property
    def batch_share(self) -> float | None:
        return self.share if self.scaled else None

    def groups(self, name: str) -> list[Ints]:
        return self.network.groups[name]

    def rows(self, edge: Edge, elements: Ints) -> Reading:
        return Reading(*edge.rows_of(elements), np.ones(len(elements)))

    def read(self, name: str, elements: Ints) -> Ints:
        return self.network.child_counts[name][elements]


@dataclass(frozen=True, eq=False)
class VisitUpdater(Updater):
    """Visits parts, and updates the shared variables whose sums they were asked for."""

    space: Workspace
    visit: Visit
    shared: Program
    label = "from sums over parts"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for names, _ in self.visit.shared for name in names)

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        assert isinstance(rows, DrawnParts)
        if rho.memo.exact:  # each variable is updated from all parts, at the end of the sweep
            if not self.space.ends_sweep(rho.iteration):
                return
            rows = replace(rows, parts=np.array(self.space.numbers), begins=True)
        first, exact = None, rows.whole and not (rows.scaled or rho.memo.sums)
        exact = exact and self.visit.gives_bound and bool(rho.measured)
        gains: list[dict[str, float]] = []
        if self.visit.own or self.visit.asked:
            if not (rows.scaled or rho.memo.sums):
                first = self._first(q, exact)
            found = self._visited(q, rows, rho, first, exact)
            yield Change.of_rows_read(self.space.any_name, found.accesses)
        for names, number in self.visit.shared:
            if number is None:
                yield from self._within(names[0], q, rho)
                continue
            children = {n: found.children[n] for n in names} if rows.scaled else {}
            known = first is not None and first.number == number
            solution = first if first is not None and known else self._solution(q, number, exact)
            if len(found.totals[number]):
                sums = self._scaled(number, found.totals[number], children)
                solution.take(slice(0, len(sums)), sums)
            network = self.shared.network
            before = means_of(q, network, names) if rho.relaxes(names) else {}
            yield from self._changes(number, solution.target, children, q, rho, rows.first or 1.0)
            relax(q, network, before, rho.omega)
            gains.append({self.visit.asked[number].table: float(solution.gains.sum())})
            exact = exact and self._is_solved(q, number, solution)
        if exact:
            self.space.known.set(q, terms_of_all([*found.terms.values(), *gains]))

    def _is_solved(self, q: Beliefs, number: int, solution: Solution) -> bool:
        """Return whether q is the solution: it has taken a unit step, and was not moved on."""
        elements = self.visit.asked[number].elements
        some = slice(None) if elements is None else elements
        return all(np.array_equal(q.natural[n][some], new) for n, new in solution.target.items())

    def _first(self, q: Beliefs, measures: bool) -> Solution | None:
        """Return the solution that is needed first, and depends on no other of this visit."""
        number = self.visit.shared[0][1] if self.visit.shared else None
        return None if number is None else self._solution(q, number, measures)

    def _solution(self, q: Beliefs, number: int, measures: bool) -> Solution:
        """Return the solution of shared variables given the current q, before it has any sums."""
        asked = self.visit.asked[number]
        natural = {
            name: q.natural[name] if asked.elements is None else q.natural[name][asked.elements]
            for name in asked.names
        }
        prior = {name: self._prior(q, name, asked.elements) for name in asked.names}
        return Solution.of(number, asked, prior, natural, measures)

    def _scaled(self, number: int, sums: Array, children: Mapping[str, Ints]) -> Array:
        """Return sums times N_i / |rows_i|, where parts are drawn."""
        if not children:
            return sums
        asked, remote = self.visit.asked[number], self.shared.network.remote
        some = slice(None) if asked.elements is None else asked.elements
        scale = {n: (remote[n] / np.maximum(read, 1))[some] for n, read in children.items()}
        return asked.solver.scaled(sums, scale)

    def _visited(
        self, q: Beliefs, rows: DrawnParts, rho: StepRule, first: Solution | None, measures: bool
    ) -> Visited:
        """Visit parts; with sums that are kept, return totals with those of the other parts."""
        memo, before = rho.memo, rows.memory["before"] if self.visit.late else None
        if not memo.sums:
            visit = replace(self.visit, omega=rho.omega, relaxed=rho.relaxed, measures=measures)
            return self.space.visit(q, rows.parts, visit, before, rows.scaled, first)
        own = bool(self.visit.own)
        means = rows.first is not None and own
        visit = replace(self.visit, passes=PASSES, restart=rows.restart and own, means=means)
        kept = [memo.sums[key] for key in self.visit.labels()]
        accesses = 0
        for sums in kept if rows.begins else ():
            sums.add_up()
        for part in rows.parts:  # one, or in an exact sweep all
            found = self.space.visit(q, np.array([part]), visit, before)
            for sums, mine in zip(kept, found.totals, strict=True):
                sums.replace(self.space.numbers.index(int(part)), mine)
            accesses += found.accesses
        if rows.first is not None:  # as if all parts were like this one
            return Visited([sums / rows.share for sums in found.totals], {}, {}, accesses, {})
        return Visited([sums.total for sums in kept], {}, {}, accesses, {})

    def _within(self, name: str, q: Beliefs, rho: StepRule) -> Iterator[Change]:
        """Update a shared variable that has no children in parts."""
        updater = next(u for u in self.shared.updaters if name in u.names)
        yield from self.shared.changes(updater, q, AllRows(self.shared.network), rho)

    def _changes(
        self,
        number: int,
        targets: Mapping[str, Array],
        children: Mapping[str, Ints],
        q: Beliefs,
        rho: StepRule,
        factor: float,
    ) -> Iterator[Change]:
        """Yield the changes of shared variables to lambda_temp, or some way towards it.

        Steps are multiplied by the factor.
        """
        network, asked = self.shared.network, self.visit.asked[number]
        for name, target in targets.items():
            counts = network.child_counts[name]
            read = children.get(name, counts)
            elements = np.arange(len(counts)) if asked.elements is None else asked.elements
            if asked.elements is None and not children:
                step = rho(q, name, elements, read, target) * factor
                if (step == 1).all():
                    yield self._replaced(q, name, target, step, read)
                else:
                    natural = blend(q.natural[name], target, step)
                    yield Change(name, elements, natural, int(read.sum()), step, read)
                continue
            if children:  # elements without children in these parts do not move
                moves = (read[elements] > 0) | (counts[elements] == 0)
                elements, target = elements[moves], target[moves]
            read = read[elements]
            step = rho(q, name, elements, read, target) * factor
            natural = blend(q.natural[name][elements], target, step)
            yield Change(name, elements, natural, int(read.sum()), step, read)

    def _prior(self, q: Beliefs, name: str, elements: Ints | None) -> Array:
        """Return the messages to a shared variable from all but the rows of parts."""
        network = self.shared.network
        if not network.edges[name] and elements is None:
            return network.priors(q, name)
        some = np.arange(network.hidden[name].size) if elements is None else elements
        within, _ = self.shared.setup.plain(name).message_sum(q, AllRows(network), some)
        return network.prior(q, name, some) + within

    def _replaced(self, q: Beliefs, name: str, target: Array, step: Array, read: Ints) -> Change:
        """Replace the q of all elements of a variable, which a unit step does."""
        variable = self.shared.network.hidden[name]
        check_domain(variable, np.arange(len(target)), target)
        q.natural[name][:] = target
        q.moments[name][:] = variable.family.moments(target)
        none = np.zeros(0, dtype=np.int64)
        return Change(name, none, target[:0], int(read.sum()), step, read, applied=True)

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        return {n: self.shared.network.bound_term(q, n) for n in self.names}
