"""The program of a fit over parts: the updaters that the engine runs, one for each visit.

Own variables are updated where their part is; their q is in the state of the run, part after part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from svmp.families.family import Array
from svmp.inference.acceleration import Accelerator
from svmp.inference.acceleration.relaxation import OverRelaxation
from svmp.inference.methods.division import RESTARTS, first_step
from svmp.inference.methods.draw import Draw
from svmp.inference.methods.sums_by_part import Memo, SumsByPart
from svmp.inference.program.program import Program
from svmp.inference.program.program_summary import ProgramSummary
from svmp.inference.steps import Policy
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.categorical import ImplicitUpdater
from svmp.inference.updaters.updater import Change, Updater
from svmp.network.beliefs import Beliefs
from svmp.network.variable import Variable
from svmp.parts.schedule import Visit
from svmp.parts.visit_updater import DrawnParts, VisitUpdater
from svmp.parts.workspace import Local, Workspace


@dataclass(frozen=True, eq=False)
class PartsProgram(Program):
    """The program of a fit over parts.

    Attributes
    ----------
    space
        The parts, and the executor that processes them.
    summary
        The updater of each variable.
    about
        Description of the network and of the parts, for checkpoints.
    blocks
        The blocks of variables whose means may be over-relaxed; the last of them is shared.
    """

    space: Workspace = field(kw_only=True)
    summary: ProgramSummary = field(kw_only=True)
    about: dict[str, dict[str, str]] = field(kw_only=True)
    blocks: tuple[tuple[str, ...], ...] = field(kw_only=True, default=())

    def under(self, policy: Policy) -> PartsProgram:
        return replace(self, setup=replace(self.setup, policy=policy))

    @property
    def visible(self) -> None:
        return None

    @property
    def description(self) -> dict[str, dict[str, str]]:
        return self.about

    def implicit_natural(self, q: Beliefs, name: str) -> Array:
        """Return the natural parameters of an own variable; its parts are loaded again here."""
        return replace(self.space, executor=Local()).implicit(q, name)

    def chain_parts(self, q: Beliefs, name: str) -> list[tuple[Variable, Beliefs]]:
        """Return a chain and its q in each part; the parts are loaded again here."""
        return replace(self.space, executor=Local()).chain_parts(q, name)

    def follow_parents(self, q: Beliefs) -> None:
        shared, present = self.space.context.sharing.shared, self.network.present
        self.network.follow_parents(
            q, [name for name in shared if not self.safe or present[name] is not None]
        )
        self.space.finish(q)

    @property
    def observations(self) -> int:
        return int(self.space.sizes.sum())

    @property
    def implicit(self) -> dict[str, ImplicitUpdater]:
        return {}

    def attach(self, q: Beliefs) -> Beliefs:
        return q

    def collect(self, q: Beliefs) -> None:
        self.space.collect(q)

    def draw(self, iteration: int) -> Draw:
        method, sizes = self.policy.method_at(self.method, iteration), self.space.sizes
        parts = method.visited_parts(sizes, self.seed, iteration)
        share = float(sizes[parts].sum() / max(sizes.sum(), 1))
        count = len(self.space.numbers)
        kept = method.keeps_sums
        restart = kept and iteration <= RESTARTS * count
        return DrawnParts(
            self.network,
            parts,
            len(sizes),
            not method.unit_steps,
            share,
            restart=restart,
            begins=kept and (iteration - 1) % count == 0,
            first=first_step(iteration) if restart and self.starts_with_steps else None,
        )

    @cached_property
    def starts_with_steps(self) -> bool:
        """Whether the first visits are stochastic steps: one variable alone has sums over parts."""
        asked = [a for u in self.updaters if isinstance(u, VisitUpdater) for a in u.visit.asked]
        return len(asked) == 1 and len(asked[0].names) == 1

    def ends_sweep(self, iteration: int) -> bool:
        return not self.method.keeps_sums or self.space.ends_sweep(iteration)

    def is_within_first_sweep(self, iteration: int) -> bool:
        return self.method.keeps_sums and iteration < len(self.space.numbers)

    def is_early(self, iteration: int) -> bool:
        return self.method.keeps_sums and iteration + 1 <= RESTARTS * len(self.space.numbers)

    def memo(self) -> Memo:
        if not self.method.keeps_sums:
            return Memo()
        count = len(self.space.numbers)
        sizes = {n: v.size for n, v in self.network.hidden.items()}
        found: dict[str, SumsByPart] = {}
        for updater in self.updaters:
            assert isinstance(updater, VisitUpdater)
            for key, asked in zip(updater.visit.labels(), updater.visit.asked, strict=True):
                few = asked.elements
                lengths = {n: sizes[n] if few is None else len(few) for n in asked.names}
                found[key] = SumsByPart.empty(asked.solver.empty(lengths).shape, [None] * count)
        return Memo(found, exact=0 if self.starts_with_steps else 1)

    @property
    def relaxed(self) -> tuple[tuple[str, ...], ...]:
        """The blocks that are over-relaxed, if the q of own variables is kept between visits."""
        return self.blocks if self.may_accelerate and self.space.context.keeps else ()

    @cached_property
    def accelerators(self) -> tuple[Accelerator, ...]:
        """Over-relaxation alone: the others read own variables, which are not here."""
        found = OverRelaxation.of(self.setup, self.relaxed, rotates=False)
        return () if found is None else (found,)

    def changes(self, updater: Updater, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        """Yield the changes of a visit, in which means are moved beyond their solution."""
        return updater.update(q, rows, rho)

    def begin(self, q: Beliefs, rows: Draw) -> None:
        q.means.clear()
        if any(u.visit.late for u in self.updaters if isinstance(u, VisitUpdater)):
            rows.memory["before"] = self.space.shared_q(q).copy()

    def optimise_locals(self, q: Beliefs) -> int:
        """Update the own variables of all parts; return the number of rows read."""
        own = [
            name
            for updater in self.updaters
            if isinstance(updater, VisitUpdater)
            for name in updater.visit.own
        ]
        everything = np.arange(len(self.space.sizes))
        return self.space.visit(q, everything, Visit(own=own)).accesses

    def measured(self, bound: bool) -> frozenset[str]:
        """Return the variables after whose updates the bound needs no visit of its own."""
        if not (bound and self.space.context.keeps):
            return frozenset()
        every = [
            u.visit for u in self.updaters if isinstance(u, VisitUpdater) and u.visit.gives_bound
        ]
        shared = (name for visit in every for names, _ in visit.shared for name in names)
        return frozenset([*shared, *(name for visit in every for name in visit.own)])

    def bound(self, q: Beliefs) -> dict[str, float]:
        terms = self.space.bound(q)
        for updater in self.updaters:
            terms |= updater.bound_term(q)
        return terms

    @property
    def note(self) -> str:
        return self.space.executor.note

    def explain(self) -> ProgramSummary:
        return self.summary
