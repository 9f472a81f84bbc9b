"""A program: the updater of each hidden variable, chosen once, before the run.

`updaters/offers.py` lists the updaters in order of preference. The engine runs the program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from svmp.families.family import Array
from svmp.inference.acceleration import ACCELERATORS, Accelerator
from svmp.inference.acceleration.relaxation import relaxed_blocks, relaxed_update
from svmp.inference.methods import Method
from svmp.inference.methods.draw import AllRows, Draw
from svmp.inference.methods.groups import DrawnGroups
from svmp.inference.methods.method import check_order
from svmp.inference.methods.sums_by_part import Memo, SumsByPart
from svmp.inference.program.default import uses_loops
from svmp.inference.program.measuring import measuring_updates
from svmp.inference.program.program_summary import ProgramSummary, VariableUpdater
from svmp.inference.state.relaxation import Relaxation
from svmp.inference.state.state import State
from svmp.inference.state.visible import Visible
from svmp.inference.steps import Constant, Policy
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters import offers
from svmp.inference.updaters.categorical import ImplicitUpdater
from svmp.inference.updaters.domain import check_domain
from svmp.inference.updaters.joint_block import JointBlock
from svmp.inference.updaters.setup import Setup
from svmp.inference.updaters.updater import Change, Term, Updater
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network
from svmp.network.variable import Variable
from svmp.saving.fingerprint import describe

UNIT = Constant(1.0)


@dataclass(frozen=True, eq=False)
class Program:
    """The updaters of all hidden variables, in the order of the updates.

    Attributes
    ----------
    network, method, policy, seed
        The network, the algorithm, its steps, and the seed of its draws.
    kernels
        Whether compiled loops are used.
    updaters
        In the order of the updates. One may serve several variables.
    likelihoods
        By observed variable, its term in the bound, unless an updater computes it.
    setup
        The inputs of the choice of updaters.
    """

    setup: Setup
    seed: int
    updaters: tuple[Updater, ...]
    likelihoods: dict[str, Term] = field(repr=False)

    @classmethod
    def of(
        cls,
        network: Network,
        method: Method,
        kernels: bool = True,
        *,
        policy: Policy = UNIT,
        seed: int = 0,
        stored: Collection[str] = (),
        apart: Collection[str] = (),
        joint: tuple[JointBlock, ...] = (),
    ) -> Program:
        """Choose the updater of each hidden variable.

        Parameters
        ----------
        network, method
            The network, and the algorithm that runs on it.
        kernels
            Whether compiled loops may be used.
        policy, seed
            The steps, and the seed of the rows that are drawn.
        stored
            Variables whose q must be stored, because the user gave their starting values.
        apart
            Variables that are own to a part of the rows: they are not solved jointly with others.
        joint
            Blocks of variables with a joint q.
        """
        division = method.division(network, seed)
        setup = Setup(network, method, policy, kernels, stored, frozenset(apart), division, joint)
        chosen: dict[str, Updater] = {}
        for name in turns(network, method):
            if name not in chosen:
                found = (offer(setup, name) for offer in offers.UPDATERS)
                updater = next(u for u in found if isinstance(u, Updater))
                chosen |= dict.fromkeys(updater.names, updater)
        tables = {table for u in setup.implicit.values() for table in u.loops.tables}
        likelihoods = {name: setup.term(name) for name in network.observed if name not in tables}
        return cls(setup, seed, tuple(dict.fromkeys(chosen.values())), likelihoods)

    def under(self, policy: Policy) -> Program:
        """Return the same program with another step policy."""
        s = self.setup
        return Program.of(
            s.network,
            s.method,
            s.kernels,
            policy=policy,
            seed=self.seed,
            stored=s.stored,
            apart=s.apart,
            joint=s.joint,
        )

    @cached_property
    def network(self) -> Network:
        """The network."""
        return self.setup.network

    @cached_property
    def method(self) -> Method:
        """The algorithm."""
        return self.setup.method

    @cached_property
    def policy(self) -> Policy:
        """The step policy."""
        return self.setup.policy

    @cached_property
    def safe(self) -> bool:
        """Whether no run can diverge."""
        return self.policy.is_safe(self.method)

    @property
    def visible(self) -> Visible | None:
        """What can be seen of q, by which runs are stopped; None if rows are not at hand."""
        return Visible(self.network)

    @property
    def description(self) -> dict[str, dict[str, str]]:
        """By variable, its density and a hash of its data, by which checkpoints are recognised."""
        return describe(self.network)

    def implicit_natural(self, q: Beliefs, name: str) -> Array:
        """Return the natural parameters of a variable that is not stored."""
        return q.implicit[name].natural(q, np.arange(self.network.hidden[name].size))

    def chain_parts(self, q: Beliefs, name: str) -> list[tuple[Variable, Beliefs]]:
        """Return a chain whose sequences lie in parts, and q of its rows, for each part."""
        raise AssertionError("the chains of one table are stored")

    @property
    def observations(self) -> int:
        """Number of observed rows."""
        return sum(v.count for v in self.network.observed.values())

    @cached_property
    def kernels(self) -> bool:
        """Whether compiled loops are used."""
        return self.setup.kernels

    @property
    def implicit(self) -> dict[str, ImplicitUpdater]:
        """The updaters of variables that are not stored."""
        return self.setup.implicit

    def attach(self, q: Beliefs) -> Beliefs:
        """Let q compute the variables that this program does not store; return q."""
        q.implicit = {name: updater.loops for name, updater in self.implicit.items()}
        q.row_moments = {table: loops.moments for table, loops in self.setup.loops.items()}
        return q

    @staticmethod
    def detach(q: Beliefs) -> None:
        """Let q forget the program, and so the rows that its loops have sorted."""
        q.implicit, q.row_moments, q.losses = {}, {}, {}

    def collect(self, q: Beliefs) -> None:
        """Fetch q from the workers, before it is read."""

    def prepare(self) -> None:
        """Begin to compile the loops that take longest, in another process."""
        if self.method.shares_rows:
            for updater in self.updaters:
                updater.prepare()

    def draw(self, iteration: int) -> Draw:
        """Choose the rows of one iteration."""
        method = self.policy.method_at(self.method, iteration)
        return method.draw(self.network, self.seed, iteration)

    @property
    def may_accelerate(self) -> bool:
        """Whether the method and its steps allow q to be moved between sweeps."""
        return self.method.relaxes and self.safe and self.method.option == "a"

    @cached_property
    def accelerators(self) -> tuple[Accelerator, ...]:
        """What moves q before a sweep, in turn."""
        if not self.may_accelerate:
            return ()
        found = (kind.find(self.setup, self.updaters) for kind in ACCELERATORS)
        return tuple(accelerator for accelerator in found if accelerator is not None)

    @cached_property
    def relaxed(self) -> tuple[tuple[str, ...], ...]:
        """The blocks of variables whose means are over-relaxed, in the order of their updates."""
        return relaxed_blocks(self.updaters, self.network) if self.may_accelerate else ()

    def accelerate(self, state: State) -> Relaxation:
        """Move q before an iteration; return what is kept until the next."""
        kept = state.relaxation
        for accelerator in self.accelerators:
            kept = accelerator.apply(state, kept, lambda q: sum(self.bound(q).values()))
        return kept

    def step_rule(
        self, state: State, rows: Draw, relaxation: Relaxation, measured: bool
    ) -> StepRule:
        """Return the steps of the iteration that follows `state`.

        `measured` says whether the exact bound is computed after it.
        """
        return StepRule(
            rows,
            self.policy,
            self.method.option,
            state.iteration + 1,
            state.safety.damping,
            state.statistics,
            state.memo,
            relaxation.omega,
            self.relaxed[:-1],  # the last block is moved on before the next iteration
            self.measured(measured),
        )

    def changes(self, updater: Updater, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        """Yield the changes of an updater, whose means may then be moved beyond their solution."""
        return relaxed_update(updater, q, rows, rho, self.network)

    def begin(self, q: Beliefs, rows: Draw) -> None:
        """Begin an iteration: refresh the variables that are not stored.

        E[mu] of every row is computed once where all rows will be read.
        """
        for updater in self.implicit.values():
            updater.refresh(q)
        q.means.clear()
        q.losses.clear()
        if rows.whole:
            self.network.remember_means(q, self._summed)

    @cached_property
    def _summed(self) -> set[str]:
        """Tables whose messages are computed from sums, without the mean of any row."""
        chosen = {n for n, e in self.setup.emissions.items() if self.setup.sums_emissions(e)}
        return chosen | {table for u in self.implicit.values() for table in u.loops.tables}

    def measured(self, bound: bool) -> frozenset[str]:
        """Return the variables whose updates also compute the losses of all rows of a table.

        `bound` says whether the exact bound is computed after the iteration.
        """
        return self._measuring[0 if bound else 1]

    @cached_property
    def _measuring(self) -> tuple[frozenset[str], frozenset[str]]:
        return measuring_updates(self.updaters, self.setup.loops.values())

    def check(self, change: Change) -> None:
        """Refuse new natural parameters outside their domain."""
        if not change.applied:  # else the loops have checked them
            check_domain(self.network.hidden[change.name], change.elements, change.natural)

    def apply(self, q: Beliefs, change: Change) -> None:
        """Write the new natural parameters of elements to q."""
        if change.applied:
            q.changed(change.name)
            if change.losses is not None:
                q.keep_losses(change.losses)
            return
        self.network.move(q, change.name, change.elements, change.natural)

    def follow_parents(self, q: Beliefs) -> None:
        """Set elements without observed descendants to the prior given their parents' q.

        With unit steps those without hidden parents are there already.
        """
        names = [
            n
            for n in self.network.hidden
            if not (self.safe and self.network.present[n] is None) and n not in self.setup.joined
        ]
        self.network.follow_parents(q, names)

    def ends_sweep(self, iteration: int) -> bool:
        """Return whether a sweep over all rows ends with an iteration, if it reads them in turn."""
        return self.method.ends_sweep(self.network, iteration)

    def is_within_first_sweep(self, iteration: int) -> bool:
        """Return whether there are parts that were not visited yet."""
        division = self.setup.division
        return division is not None and iteration < division.count

    def is_early(self, iteration: int) -> bool:
        """Return whether the next visits of parts are early ones.

        They start the variables of their groups near the prior again, or read means.
        """
        division, after = self.setup.division, iteration + 1
        return division is not None and (division.restarts(after) or division.reads_means(after))

    def memo(self) -> Memo:
        """Return the sums that are kept by part, before any part was read."""
        found: dict[str, SumsByPart] = {}
        division = self.setup.division
        if division is None:
            return Memo()
        for updater in self.updaters:
            found |= updater.sums_by_part()
        return Memo(found, exact=0 if division.starts_with_steps else 1)

    def optimise_locals(self, q: Beliefs) -> int:
        """Optimise the local variables of all rows; return the number of rows read.

        Methods that draw rows update only those of the drawn rows.
        """
        grouping = self.method.grouping(self.network)
        rows: Draw = AllRows(self.network)
        if grouping is not None:
            rows = DrawnGroups(self.network, grouping, np.arange(grouping.count))
        rho, accesses = StepRule.unit(rows), 0
        for updater in self.updaters:
            if set(updater.names) <= set(rows.locals):
                for change in updater.update(q, rows, rho):
                    self.check(change)
                    self.apply(q, change)
                    accesses += change.accesses
        return accesses

    def bound(self, q: Beliefs) -> dict[str, float]:
        """Return the exact bound as one term for each variable; their sum is the bound."""
        terms: dict[str, float] = {}
        for updater in self.updaters:
            terms |= updater.bound_term(q)
        terms |= {name: term(q) for name, term in self.likelihoods.items()}
        return {name: terms[name] for name in (*self.network.hidden, *self.network.observed)}

    @property
    def note(self) -> str:
        """What the progress line should add; "" if nothing."""
        return ""

    def explain(self) -> ProgramSummary:
        """Return the updater of each variable, and why it is not a compiled one."""
        notes = tuple(block.line for block in self.setup.joint)
        return ProgramSummary(type(self.method).__name__, tuple(self._variable_updaters()), notes)

    def _variable_updaters(self) -> Iterator[VariableUpdater]:
        large = uses_loops(self.network)
        off = "compiled loops are turned off" if large else "the network is small; see kernels="
        of = {name: updater for updater in self.updaters for name in updater.names}
        for name in self.network.hidden:
            label, reason = of[name].label, ""
            if name in self.setup.joined:
                reason = "joint blocks are computed in NumPy"
            elif not label.startswith("compiled"):
                chooses = any(edge.choosing for edge in self.network.edges[name])
                offer = offers.implicit if chooses else offers.multilinear
                found = offer(self.setup, name) if self.kernels else off
                reason = found if isinstance(found, str) else ""
            yield VariableUpdater(name, label, reason)


def turns(network: Network, method: Method) -> list[str]:
    """Return the hidden variables in the order of their updates, those of drawn groups first."""
    order = check_order(network, method.order)
    grouping = method.grouping(network)
    own = {} if grouping is None else grouping.group
    return sorted(order, key=lambda name: name not in own)
