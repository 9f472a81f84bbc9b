"""The order of a sweep over parts: which variables are updated in which visit.

A sweep is coordinate ascent: each update uses the newest q of all other variables. Own variables of
a part are updated when it is visited. A shared variable is updated after a visit of all parts, from
the sum of what they returned. Two shared variables that are parents of the same rows need a visit
each, since the sums for one depend on the q of the other; any others are updated after the same
visit. Shared variables without children in parts need no visit at all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array, Family
from svmp.inference.methods import FullVB, Growing, Method
from svmp.inference.methods.method import check_order
from svmp.inference.program.program import Program
from svmp.inference.updaters.plain import PlainUpdater
from svmp.inference.updaters.solver import LineSolver, MultilinearSolver, PlainSolver, Solver
from svmp.inference.updaters.updater import SummingUpdater, Updater
from svmp.network.grid import Ints
from svmp.network.network import Network, by_value

NORMAL = 2
"""Number of natural parameters of a Normal."""
MOST_COLOURS = 64
"""Most visits for the elements of one variable that share rows."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Sums that parts are asked for.

    Attributes
    ----------
    names, solver
        The shared variables that are updated from them, and how.
    elements
        The elements that are updated, ascending; None for all.
    family, table
        The family of the variable, and the one table that depends on it, if the change of that
        table's term in the bound follows from the sums; else None and an empty string.
    """

    names: tuple[str, ...]
    solver: Solver
    elements: Ints | None = None
    family: Family | None = None
    table: str = ""


@dataclass
class Visit:
    """What parts do when they are visited.

    Attributes
    ----------
    own
        Own variables to update, in this order; of those that are updated together, the first.
    asked
        The sums to return.
    shared
        Shared variables that are updated afterwards, in this order: (names, index in `asked`, or
        None for those without children in parts).
    late
        Whether local choices or chains that are not stored were updated in an earlier visit of the
        same sweep. Their q is then computed from the shared q at the beginning of the sweep.
    passes
        Most updates of the own variables, until they have converged.
    restart
        Whether own variables start near their prior.
    means
        Whether own variables read log E[p] of shared Dirichlets, in place of E[log p].
    omega, relaxed
        Factor of over-relaxation, and the blocks of variables to which it is applied.
    gives_bound
        Whether it is the last of a sweep, and the bound after it follows from the terms of parts at
        the q that they have then, and from the sums.
    measures
        Whether parts return these terms.
    """

    own: list[str] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    shared: list[tuple[tuple[str, ...], int | None]] = field(default_factory=list)
    late: bool = False
    passes: int = 1
    restart: bool = False
    means: bool = False
    omega: float = 1.0
    relaxed: tuple[tuple[str, ...], ...] = ()
    gives_bound: bool = False
    measures: bool = False

    @property
    def changes_own(self) -> bool:
        """Whether q of own variables is another one after the visit."""
        return bool(self.own) or self.restart

    def labels(self) -> list[str]:
        """Return a name for each of the sums that are asked for."""
        return [
            ",".join(asked.names) + ("" if asked.elements is None else f"[{asked.elements[0]}]")
            for asked in self.asked
        ]


def part_method(method: Method) -> Method:
    """Return the method by which a part updates its own variables: all rows, unit steps."""
    return Growing(1.0) if method.joint or method.keeps_sums else FullVB()


def order_of(network: Network, method: Method, own: Collection[str]) -> list[str]:
    """Return the hidden variables in the order of their updates: by default own ones first."""
    if method.order is not None:
        return check_order(network, method.order)
    return sorted(network.default_order, key=lambda name: name not in own)


def schedule(program: Program, whole: Network, method: Method, own: Collection[str]) -> list[Visit]:
    """Return the visits of a sweep.

    Parameters
    ----------
    program
        The program of one part.
    whole
        The network of the shared variables.
    method
        The method of the run.
    own
        The variables that belong to one part.
    """
    network = program.network
    served = {name: updater for updater in program.updaters for name in updater.names}
    visits: list[Visit] = []
    placed: list[tuple[set[str], set[str], int, bool]] = []
    seen: set[str] = set()

    def place(tables: set[str], above: set[str], is_own: bool) -> Visit:
        """Find the first visit in which an update sees the newest q of all others."""
        number = 0
        for others, others_above, at, was_own in placed:
            if tables & others:
                number = max(number, at if was_own else at + 1)
            elif above & others_above:
                number = max(number, at)
        placed.append((tables, above, number, is_own))
        while len(visits) <= number:
            visits.append(Visit())
        return visits[number]

    for name in order_of(network, method, own):
        if name in seen:
            continue
        updater = served[name]
        names = updater.names
        seen.update(names)
        tables = {e.conditional.variable.name for n in names for e in network.edges[n]}
        if name in own:
            place(tables | set(names), set(), True).own.append(name)
            continue
        above = set(names) | {e.conditional.variable.name for n in names for e in whole.edges[n]}
        above |= {p.name for n in names for p in whole.hidden[n].conditional.parents()}
        if not tables:
            place(set(), above, False).shared.append((names, None))
            continue
        for wanted in _asked(program, updater, whole):
            visit, asked = place(tables, above, False), _measured(wanted, network, tables)
            visit.shared.append((asked.names, len(visit.asked)))
            visit.asked.append(asked)
    kept = {*network.chains} if set(own) <= set(visits[0].own) & set(network.chains) else set()
    for earlier, visit in pairwise(visits):
        visit.late = earlier.late or any(n in program.implicit or n in kept for n in earlier.own)
    last = [visit for visit in visits if visit.own or visit.asked][-1]
    solved_anew = program.implicit or set(network.chains) - kept  # whenever the bound is computed
    last.gives_bound = not solved_anew and all(asked.family is not None for asked in last.asked)
    return visits


def _measured(asked: Asked, network: Network, tables: set[str]) -> Asked:
    """Note the table whose term in the bound changes with an update, where sums say by how much."""
    (name, *others), (table, *more) = asked.names, tables
    family = network.hidden[name].family
    edges = [edge for edge in network.edges[name] if edge.conditional.factor.convex]
    alike = family.at(slice(0, 1)) is family  # the same for all elements
    if others or more or edges or not alike or not isinstance(asked.solver, LineSolver):
        return asked
    return replace(asked, family=family, table=table)


def common_solver(updater: SummingUpdater) -> Solver:
    """Return the solver of a variable in all parts, which may have different updaters.

    Where rows read one element at a time, all updaters can return the sum of their messages.
    """
    solver = updater.solver
    if isinstance(solver, MultilinearSolver) and solver.width == 1:
        return PlainSolver.of(solver.name, NORMAL)
    return solver


def in_layout(updater: Updater, solver: Solver, sums: Array) -> Array:
    """Return the sums of an updater in the layout of a solver."""
    if not isinstance(updater, SummingUpdater) or common_solver(updater) != solver:
        raise ModelError(
            f"parts compute '{solver.names[0]}' in different ways, because some are very small; "
            "use kernels=False, or put small parts together"
        )
    if updater.solver == solver:
        return sums
    _, linear, square = sums.T
    return np.stack([linear, -0.5 * square], axis=1)


def colours_of_all(part: Network, whole: Network, name: str) -> Ints:
    """Return the colour of each element of a variable, of which a part may have some only."""
    mine, every = part.hidden[name].plate, whole.hidden[name].plate
    colour = part.colours[name].reshape(mine.shape)
    for axis, dim in enumerate(mine.labels):
        if mine.shape[axis] != every.shape[axis]:
            if (colour != colour.take([0], axis)).any():
                raise ModelError(
                    f"the elements of '{name}' along '{dim}' share rows, and its labels differ "
                    "between parts; give every part all labels in coords"
                )
            colour = colour.take([0], axis)
    return np.array(np.broadcast_to(colour, every.shape)).ravel()


def _asked(program: Program, updater: Updater, whole: Network) -> Sequence[Asked]:
    """Return the sums from which a shared variable is updated: one for each set of elements."""
    network, names = program.network, updater.names
    colours = max(len(whole.groups[name]) for name in names)
    if isinstance(updater, SummingUpdater) and not isinstance(updater, PlainUpdater):
        if colours > 1:
            raise ModelError(
                f"'{names[0]}' cannot be divided: its elements share rows of a shared variable"
            )
        return [Asked(names, common_solver(updater))]
    (name,) = names
    plain = program.setup.plain(name)
    if len(network.groups[name]) <= 1 and colours <= 1:
        return [Asked(names, plain.solver)]
    colour = colours_of_all(network, whole, name)
    sets = by_value(colour * colours + whole.colours[name])
    if len(sets) > MOST_COLOURS:
        raise ModelError(
            f"'{name}' has {len(sets)} elements that share rows, each of which would need a visit "
            f"of all parts (at most {MOST_COLOURS}); leave out the method, so that they are solved "
            "together"
        )
    return [Asked(names, plain.solver, elements) for elements in sets]
