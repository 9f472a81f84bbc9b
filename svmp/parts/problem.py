"""A fit over parts: the network of all hidden variables, the program and the start of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.acceleration.relaxation import relaxed_blocks
from svmp.inference.methods import FullVB, Growing, Method
from svmp.inference.methods.method import check_order
from svmp.inference.program.default import LARGEST
from svmp.inference.program.program import Program
from svmp.inference.program.program_summary import ProgramSummary, VariableUpdater
from svmp.inference.running.estimate import Estimator
from svmp.inference.running.held_out import Scorer
from svmp.inference.running.problem import HeldOutArgument, Problem
from svmp.inference.starts.start import Init
from svmp.inference.steps import Constant, Nodewise, Policy
from svmp.inference.updaters.setup import Setup
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.validation import shown
from svmp.parts.cache import can_merge, load_part
from svmp.parts.context import Context, Job, SharedQ, Unit, declared
from svmp.parts.description import PartDims, VariableShape
from svmp.parts.held_out import HeldOutValues, PartsScorer, summary_of
from svmp.parts.program import PartsProgram
from svmp.parts.schedule import part_method, schedule
from svmp.parts.shared import SharedNetwork, declare_all, dividing_axis, size
from svmp.parts.sharing import Sharing, element_places
from svmp.parts.sources import Source
from svmp.parts.start import start_q
from svmp.parts.tasks import summarise_held_out
from svmp.parts.visit_updater import VisitUpdater
from svmp.parts.workspace import Executor, Workspace
from svmp.saving.fingerprint import describe

FEW = 4
"""Fewest parts of which a sample pays."""
FIRST = 1 / 32
"""Share of the parts in the first sample."""


@dataclass(frozen=True, eq=False)
class PartsProblem(Problem):
    """A network whose rows lie in parts.

    Attributes
    ----------
    network
        All hidden variables, with the elements of all parts.
    fingerprint
        By name of a part, a hash of its data.
    context
        How to load parts; its method is that of the run once the program is made.
    executor, groups
        Where tasks are run, and the group of each part.
    sizes, shapes
        Number of rows of each part, and the plates of own variables by part.
    largest
        Number of the part with most rows.
    observed
        The observed variables.
    empty
        Makes an array of zeros for the q of own variables, in memory or on disk.
    """

    network: SharedNetwork
    fingerprint: Mapping[str, str]
    context: Context
    executor: Executor
    groups: Ints
    sizes: Ints
    shapes: dict[int, dict[str, tuple[int, ...]]]
    largest: int
    observed: Mapping[str, VariableShape]
    empty: Callable[[tuple[int, ...]], Array]

    @property
    def natural_only(self) -> Collection[str]:  # type: ignore[override]
        """The own variables."""
        return self.context.sharing.own

    def check(self) -> None:
        """Do nothing: parts were checked when they were described."""

    @property
    def description(self) -> dict[str, dict[str, str]]:
        return describe_all(self.network, self.observed, self.fingerprint)

    @classmethod
    def of(
        cls,
        declare: Any,
        source: Source,
        dims: Mapping[int, PartDims],
        sharing: Sharing,
        executor: Executor,
        groups: Ints,
        resident: int,
        keeps: bool,
        token: str,
        empty: Callable[[tuple[int, ...]], Array],
    ) -> PartsProblem:
        """Make the network of all parts from their descriptions."""
        sizes = np.zeros(len(groups), dtype=np.int64)
        for number, part in dims.items():
            sizes[number] = part.observations
        largest = int(sizes.argmax())
        model = declared(declare, source, largest)
        assert model is not None
        places = dict(zip(dims, sharing.places, strict=True))
        shapes = {number: {n: part.shapes[n] for n in sharing.own} for number, part in dims.items()}
        whole = declare_all(
            model, sharing, {n: [shape[n] for shape in shapes.values()] for n in sharing.own}
        )
        lengths = {dim: size(labels) for dim, labels in sharing.labels.items()}
        remote = {n: np.zeros(whole.variables[n].size, dtype=np.int64) for n in sharing.shared}
        accesses = 0
        for number, part in dims.items():
            for (name, table), children in part.children.items():
                if table in sharing.shared:
                    continue
                accesses += children.total
                if name in remote:
                    plate = whole.variables[name].plate
                    shape = part.shapes[name]
                    at = element_places(plate.labels, shape, plate.shape, places[number])
                    remote[name][slice(None) if at is None else at] += children.unpacked()
        network = SharedNetwork(whole, sharing, remote, int(sizes.sum()), accesses)
        context = Context(
            declare,
            source,
            replace(sharing, places=tuple(places.get(i, {}) for i in range(len(groups)))),
            lengths,
            FullVB(),
            True,
            resident,
            keeps,
            token,
            frozenset(n for n in sharing.own if any(n not in p.implicit for p in dims.values())),
            prints=tuple(dims[i].prints if i in dims else {} for i in range(len(groups))),
        )
        prints = {source.name(i): source.fingerprint(i) for i in range(len(groups))}
        observed = next(iter(dims.values())).observed
        return cls(
            network, prints, context, executor, groups, sizes, shapes, largest, observed, empty
        )

    def choose(self, method: Method | None, policy: Policy | None) -> tuple[Method, Policy, bool]:
        if method is None and policy is None:
            few = len(self.shapes) < FEW
            method = Growing(1.0 if few else max(FIRST, min(1 / len(self.shapes), LARGEST)))
        if method is None:
            assert policy is not None
            method = policy.default_method()
        if method.over is not None:
            raise ModelError(
                f"the rows lie in parts already: leave out over={method.over!r} of "
                f"{type(method).__name__}"
            )
        method.visited_parts(self.sizes, 0, 1)  # refuses methods that cannot visit parts
        if policy is None:
            policy = Constant(1.0) if method.unit_steps else Nodewise()
            return method, policy, True
        return method, policy, policy.adaptive

    def program(
        self, method: Method, policy: Policy, kernels: bool, seed: int, stored: Collection[str]
    ) -> PartsProgram:
        token = f"{self.context.token}-{kernels:d}{method.joint:d}{method.keeps_sums:d}"
        context = replace(self.context, method=method, kernels=kernels, token=token)
        part = load_part(context, self.largest)
        own = context.sharing.own
        check_order(part.network, method.order)
        kept = tuple(part.stored()) if context.keeps else ()
        space = Workspace(context, self.executor, self.sizes, self.shapes, kept, self.groups)
        parents = [p for n in kept for p in part.network.hidden[n].conditional.parents()]
        follow = any(parent.hidden for parent in parents)
        leaves = policy.is_safe(method) and not method.keeps_sums
        space = replace(
            space, merged=self._merged(context), follow=follow, leaves=leaves, axes=self._axes()
        )
        within = Program.of(
            self.network, part_method(method), False, policy=policy, seed=seed, apart=own
        )
        visits = schedule(part.program, self.network, method, own)
        updaters = tuple(VisitUpdater(space, visit, within) for visit in visits)
        labels = {n: u.label for u in part.program.updaters for n in u.names}
        summary = ProgramSummary(
            type(method).__name__,
            tuple(
                VariableUpdater(n, f"{labels[n]}; {self._place(n, visits)}", "")
                for n in self.network.hidden
            ),
        )
        whole = Setup(self.network, method, policy, kernels)
        blocks = relaxed_blocks(part.program.updaters, part.network, self.network)
        order = [names for visit in visits for names, _ in visit.shared if names in blocks]
        return PartsProgram(
            whole,
            seed,
            updaters,
            {},
            space=space,
            summary=summary,
            about=self.description,
            blocks=(*(b for b in blocks if b != order[-1]), order[-1]) if order else (),
        )

    def _axes(self) -> dict[str, int]:
        """Return the axis along which own variables are divided, where it is not the first."""
        sharing, found = self.context.sharing, {}
        for name in sharing.own:
            dims = self.network.hidden[name].plate.labels
            shapes = [every[name] for every in self.shapes.values()]
            listed = len(dims) != len(shapes[0])
            if not listed and (axis := dividing_axis(dims, sharing, shapes)):
                found[name] = axis
        return found

    def _merged(self, context: Context) -> frozenset[Unit]:
        """Return the groups of parts in memory that can be put together."""
        if not context.source.in_memory or context.resident < len(self.shapes):
            return frozenset()
        groups = [
            tuple(n for n in self.shapes if self.groups[n] == group)
            for group in np.unique(self.groups)
        ]
        return frozenset(unit for unit in groups if len(unit) > 1 and can_merge(context, unit))

    def _place(self, name: str, visits: list[Any]) -> str:
        if name in self.context.sharing.own:
            return "own to a part"
        at = [i + 1 for i, v in enumerate(visits) if any(name in names for names, _ in v.shared)]
        return f"shared, after visit {', '.join(map(str, at))} of {len(visits)}"

    def start(self, program: Program, init: Init | None) -> Beliefs:
        assert isinstance(program, PartsProgram)
        return start_q(program.space, self.network, self.largest, program.seed, init, self.empty)

    def with_held_out(self, values: HeldOutArgument) -> tuple[PartsProblem, Scorer]:
        """Read the held-out values of all parts once, for their number and a hash."""
        if not callable(values):
            raise ModelError(
                "the rows lie in parts, so held_out must be a function from the rows of a part to "
                f"its held-out values by variable, not {shown(values)}"
            )
        jobs = [
            Job(tuple((n,) for n in self.shapes if self.groups[n] == group))
            for group in np.unique(self.groups)
        ]
        found = self.executor.run(
            summarise_held_out, self.context, SharedQ({}, {}), [j for j in jobs if j.units], values
        )
        summary = [part for group in found for part in group]
        count, code, local = summary_of(summary)
        context = replace(self.context, held_out=HeldOutValues(values, local))
        return replace(self, context=context), PartsScorer(count, code, held_out_totals)

    def estimator(self, method: Method) -> Estimator | None:
        return None


def held_out_totals(program: Program, q: Beliefs) -> Iterator[float]:
    """Yield what the held-out rows of each part would add to the bound, in part order."""
    assert isinstance(program, PartsProgram)
    return program.space.held_out_totals(q)


def describe_all(
    network: SharedNetwork, observed: Mapping[str, VariableShape], fingerprint: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return a description of each variable, and a hash of the data of each part."""
    tables = {
        name: {
            "density": shape.density,
            "dims": ", ".join(shape.dims),
            "parents": ", ".join(shape.parents),
        }
        for name, shape in observed.items()
    }
    return {**describe(network), **tables, "rows in parts": dict(fingerprint)}
