"""One part of the data: its network, and what it computes from the shared q.

A visit gives a part the q of the shared variables. The part updates its own variables, exactly as a
sweep over one table would, and adds its sums for shared variables to a total.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import finalize

import numpy as np

from svmp.families.family import Array
from svmp.inference.methods.draw import AllRows
from svmp.inference.program.program import Program
from svmp.inference.running.held_out import HeldOut
from svmp.inference.starts.start import start
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.categorical import at_means
from svmp.inference.updaters.chains import ChainUpdater
from svmp.inference.updaters.updater import LineAdder, SummingUpdater, Updater
from svmp.network.beliefs import Beliefs
from svmp.network.declaration import Declaration
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.variable import Variable
from svmp.parts.context import Context, Job, Own, SharedQ, Unit
from svmp.parts.schedule import Asked, Visit, in_layout, part_method
from svmp.parts.sharing import element_places

TOLERANCE, MOST_PASSES = 1e-4, 100
"""Where own variables are optimised anew: largest change of their q in a pass, in nats an element,
and most passes."""


@dataclass(eq=False)
class Part:
    """A part that is in memory.

    Attributes
    ----------
    network, program
        Its network, in which shared variables send no messages to their parents, and the updaters.
    places
        By shared variable, the place of each of its elements among those of all parts; None if
        they are the same.
    rows
        All of its rows.
    fixed
        Moments of observed parents.
    held_out
        Its held-out values, if there are any.
    """

    network: Network
    program: Program
    own: tuple[str, ...]
    places: dict[str, Ints | None]
    rows: AllRows
    fixed: dict[str, Array] = field(default_factory=dict)
    held_out: HeldOut | None = None

    @classmethod
    def of(
        cls,
        model: Declaration,
        context: Context,
        number: int,
        held: Mapping[str, Variable] | None = None,
    ) -> Part:
        """Prepare the network that was declared for a part, and its held-out variables."""
        sharing = context.sharing
        network = Network(model, elsewhere=sharing.shared)
        program = Program.of(
            network,
            part_method(context.method),
            context.kernels,
            stored=context.stored,
            apart=frozenset(sharing.own),
        )
        places: dict[str, Ints | None] = {}
        for name in sharing.shared:
            variable, noted = network.hidden[name], sharing.places[number]
            dims = variable.plate.labels
            whole = [context.sizes[dim] for dim in dims]
            places[name] = element_places(dims, variable.plate.shape, whole, noted)
        part = cls(network, program, sharing.own, places, AllRows(network))
        for name, parent in network.observed_parents.items():
            part.fixed[name] = parent.conditional.child(Beliefs(), parent.rows)
        if held and context.held_out is not None:
            part.held_out = HeldOut.between(network, held, context.held_out.locals)
        finalize(part, network.release).atexit = False
        return part

    def updater(self, name: str) -> Updater:
        """Return the updater of a variable."""
        return next(u for u in self.program.updaters if name in u.names)

    def stored(self) -> list[str]:
        """Return the own variables whose q is stored."""
        computed = {*self.program.implicit, *self.network.chains}
        return [name for name in self.own if name not in computed]

    def beliefs(
        self, shared: SharedQ, own: Mapping[str, Array], later: Collection[str] = ()
    ) -> Beliefs:
        """Return q of this part's network.

        Chains are not stored, but solved for the q of all others; those of `later` are solved next.
        """
        q = self._shared_beliefs(shared)
        for name in self.stored():
            q.natural[name] = own[name]
            q.moments[name] = self.network.hidden[name].family.moments(own[name])
        self.program.attach(q)
        for name in self.network.chains:
            self._unlink(q, name)
        for name in (n for n in self.network.chains if n not in later):
            updater = self.updater(name)
            assert isinstance(updater, ChainUpdater)
            updater.optimise(q, None)
        return q

    def _shared_beliefs(self, shared: SharedQ) -> Beliefs:
        """Return q of the shared variables that this part reads."""
        q = Beliefs(moments=dict(self.fixed))
        for name, places in self.places.items():
            natural, moments = shared.natural[name], shared.moments[name]
            q.natural[name] = natural if places is None else natural[places]
            q.moments[name] = moments if places is None else moments[places]
        return q

    def _unlink(self, q: Beliefs, name: str) -> None:
        """Give the states of a chain their prior, independent of each other."""
        natural = np.array(self.network.priors(q, name))
        q.natural[name], q.joint[name] = natural, self.network.chains[name].unlinked(natural)
        q.moments[name] = self.network.hidden[name].family.moments(natural)

    def start(self, shared: SharedQ, pieces: Sequence[tuple[int, Mapping[str, int]]] = ()) -> Own:
        """Return a start of the own variables, near their prior.

        `pieces` are the parts that were put together: a seed, and the number of elements of each
        own variable. So a part starts at the same values, alone or together with others.
        """
        pieces = pieces or [(0, {n: self.network.hidden[n].size for n in self.own})]
        q, stored = self.program.attach(self._shared_beliefs(shared)), self.stored()
        found: Own = {}
        for index, name in enumerate(self.network.hidden):
            if name in self.network.chains:
                self._unlink(q, name)
            elif name in stored:
                variable = self.network.hidden[name]
                prior = np.array(self.network.priors(q, name))
                cuts = np.cumsum([sizes[name] for _, sizes in pieces])[:-1]
                natural = np.concatenate(
                    [
                        variable.family.start(some, np.random.default_rng([seed, index]))
                        for (seed, _), some in zip(pieces, np.split(prior, cuts), strict=True)
                    ]
                )
                found[name] = q.natural[name] = natural
                q.moments[name] = variable.family.moments(natural)
        return found

    def own_q(self, shared: SharedQ, job: Job, unit: Unit) -> Own:
        """Return the q of the own variables: as it was kept, or optimised from the start."""
        if job.own is not None:
            return job.own[unit]
        own = self.start(shared)
        names = list(dict.fromkeys(self.updater(n).names[0] for n in self.own))
        return self.own_of(self.update(shared, own, Visit(own=names, passes=MOST_PASSES))[0])

    def _moved(self, before: Own, after: Own) -> float:
        """Return the symmetrised KL between two q of the own variables, in nats an element."""
        moved, count = 0.0, 0
        for name, natural in after.items():
            family = self.network.hidden[name].family
            apart = family.moments(natural) - family.moments(before[name])
            moved += float(np.sum((natural - before[name]) * apart))
            count += len(natural)
        return moved / max(count, 1)

    def seeded(self, seed: int, init: Mapping[str, Any]) -> dict[str, Array]:
        """Return a start of the shared variables that has seen some rows of this part.

        Components of mixtures and topics must start at different rows.
        """
        implicit = {name: updater.loops for name, updater in self.program.implicit.items()}
        q = start(self.network, seed, init, implicit)
        return {name: q.natural[name] for name in self.places}

    def update(
        self, shared: SharedQ, own: Own, visit: Visit, before: SharedQ | None = None
    ) -> tuple[Beliefs, int]:
        """Update own variables; return q of this part's network, and the number of rows read.

        The arrays of `own` may be changed in place. `before` is the shared q at the beginning of
        the sweep, for which choices and chains that are not stored were optimised.
        """
        if visit.restart:
            own = self.start(shared)
        chains = self.network.chains if set(self.own) <= set(self.network.chains) else {}
        later = visit.own if chains and before is None else chains
        q, rows = self.beliefs(shared, own, later), self.rows
        if visit.means and not self.network.chains:
            q = at_means(self.network, q, self.own)
        rho = replace(StepRule.unit(rows), omega=visit.omega, relaxed=visit.relaxed)
        self.program.begin(q, rows)
        if before is not None:
            then = self.beliefs(before, own)
            for implicit in self.program.implicit.values():
                implicit.keep(q, None, implicit.loops.sums(then, None))
            for name in chains:
                q.natural[name], q.moments[name] = then.natural[name], then.moments[name]
                q.joint[name] = then.joint[name]
                self.network.refresh_means(q, name)
        accesses = 0
        for _ in range(visit.passes):
            last = {n: a.copy() for n, a in self.own_of(q).items()} if visit.passes > 1 else {}
            for name in visit.own:
                for change in self.program.changes(self.updater(name), q, rows, rho):
                    self.program.check(change)
                    self.program.apply(q, change)
                    accesses += change.accesses
            if visit.passes > 1 and self._moved(last, self.own_of(q)) <= TOLERANCE:
                break
        return q, accesses

    def own_of(self, q: Beliefs) -> Own:
        """Return the q of the own variables."""
        return {name: q.natural[name] for name in self.stored()}

    def line_adder(self, q: Beliefs, asked: Asked) -> LineAdder | None:
        """Return a function that adds sums to some lines of a total, if there is one."""
        updater = self.updater(asked.names[0])
        if asked.elements is not None or not isinstance(updater, SummingUpdater):
            return None
        if updater.solver != asked.solver:
            return None
        return updater.line_adder(q, self.rows, self.places)

    def solve(
        self, q: Beliefs, asked: Asked, prior: Mapping[str, Array], measures: bool
    ) -> Array | None:
        """Return lambda_temp of a shared variable, if this part has all rows and elements of it.

        If the bound is measured, q then has the new parameters.
        """
        updater, name = self.updater(asked.names[0]), asked.names[0]
        if asked.elements is not None or not isinstance(updater, SummingUpdater):
            return None
        if updater.names != (name,) or self.places[name] is not None:
            return None
        solved = updater.solve_rows(q, self.rows, prior[name], measures)
        if solved is None:
            return None
        if measures:
            family = self.network.hidden[name].family
            q.natural[name], q.moments[name] = solved.natural, family.moments(solved.natural)
            q.means.clear()
            self.program.apply(q, solved)
        return solved.natural

    def add_sums(self, q: Beliefs, asked: Asked, total: Array) -> None:
        """Add the sums of this part for a shared variable, or for some elements of it."""
        updater = self.updater(asked.names[0])
        if asked.elements is None:
            if isinstance(updater, SummingUpdater) and updater.solver == asked.solver:
                updater.add_sums(q, self.rows, total, self.places)
                return
            sums = updater.sums(q, self.rows) if isinstance(updater, SummingUpdater) else total[:0]
            asked.solver.add(total, in_layout(updater, asked.solver, sums), self.places)
            return
        name, places = asked.names[0], self.places[asked.names[0]]
        plain = self.program.setup.plain(name)
        whole = np.arange(self.network.hidden[name].size) if places is None else places
        mine = np.flatnonzero(np.isin(whole, asked.elements))
        if len(mine):
            at = np.searchsorted(asked.elements, whole[mine])
            total[at] += plain.sums(q, self.rows, mine)

    def terms(self, q: Beliefs) -> dict[str, float]:
        """Return the terms of the own and of the observed variables in the bound."""
        terms: dict[str, float] = {}
        for updater in self.program.updaters:
            if set(updater.names) <= set(self.own):
                terms |= updater.bound_term(q)
        return terms | {name: term(q) for name, term in self.program.likelihoods.items()}

    def held_out_total(self, shared: SharedQ, own: Own) -> float:
        """Return what the held-out rows would add to the bound."""
        held = self.held_out
        return 0.0 if held is None else held.mean(self.beliefs(shared, own)) * held.count

    def finish(self, shared: SharedQ, own: Own) -> Own:
        """Set own elements without observed descendants to the prior given their parents' q."""
        q = self.beliefs(shared, own)
        late = [n for n in self.stored() if self.network.present[n] is not None]
        self.network.follow_parents(q, late)
        return self.own_of(q)

    def implicit(self, shared: SharedQ, own: Own, name: str) -> Array:
        """Return the natural parameters of an own variable that is not stored."""
        q = self.beliefs(shared, own)
        return q.natural_at(name, np.arange(self.network.hidden[name].size))

    def chain(self, shared: SharedQ, own: Own, name: str) -> tuple[Variable, Beliefs]:
        """Return an own chain, and q of its rows alone."""
        q = self.beliefs(shared, own)
        return self.network.hidden[name], Beliefs(
            {name: q.natural[name]}, joint={name: q.joint[name]}
        )
