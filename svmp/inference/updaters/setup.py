"""The inputs of the choice of updaters: the network, the method, and the compiled loops."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.inference.methods import Method
from svmp.inference.methods.division import Division
from svmp.inference.steps.policy import Policy
from svmp.inference.updaters.categorical import ImplicitMessages, ImplicitUpdater
from svmp.inference.updaters.chains import ChainUpdater, EmissionMessages, TransitionMessages
from svmp.inference.updaters.joint_block import JointBlock
from svmp.inference.updaters.mixture_products import MixtureProducts
from svmp.inference.updaters.multilinear import NoiseMessages, VectorMessages
from svmp.inference.updaters.plain import Messages, PlainUpdater, RowMessages
from svmp.inference.updaters.updater import Term
from svmp.kernels.categorical.mixture_sums import Mixtures
from svmp.kernels.categorical.topics_sums import Topics
from svmp.kernels.categorical.updater import ImplicitCategorical
from svmp.kernels.chains.emissions import Emissions
from svmp.kernels.multilinear.prior import HiddenNormals
from svmp.kernels.multilinear.updater import Multilinear
from svmp.kernels.vectors.prior import HiddenVectors
from svmp.kernels.vectors.updater import Vectors
from svmp.network.chains.chain import ChainEdge
from svmp.network.edge import Edge
from svmp.network.network import Network


def find_loops(network: Network) -> dict[str, Multilinear]:
    """Return the compiled loops by table; they are cached in the network."""
    if "loops" not in network.derived:
        found = {}
        for variable in (*network.hidden.values(), *network.observed.values()):
            table = variable.conditional, network.present[variable.name]
            loops = Multilinear.of(*table) or Vectors.of(*table)
            if loops is not None:
                found[variable.name] = loops
        network.derived["loops"] = found
    loops_by_table: dict[str, Multilinear] = network.derived["loops"]
    return loops_by_table


def implicit_loops(network: Network, name: str) -> ImplicitCategorical | None:
    """Return the loops of a Categorical that need not be stored; None if there are none."""
    if name in network.chains:
        return None
    compiled = Topics.of(network, name) or Mixtures.of(network, name)
    return compiled or MixtureProducts.of(network, name)


def share_sorted_rows(network: Network, other: Network) -> None:
    """Use the sorted rows of another network whose tables have the same keys and values."""
    known = find_loops(other)
    for name, loops in find_loops(network).items():
        if name in known:
            loops.share_sorted(known[name])


def replace_observed(network: Network, name: str, values: NDArray[Any]) -> None:
    """Replace the observed values of a variable without missing rows; rows are not sorted again."""
    variable = network.observed[name]
    if variable.present is not None or variable.observed is None:
        raise ModelError(f"'{name}' has missing values, so they cannot be replaced")
    if values.shape != variable.shape or not np.isfinite(values).all():
        raise ModelError(f"the new values of '{name}' are not finite, or not as many as before")
    variable.observed = np.array(values, variable.observed.dtype)  # loops need writable arrays
    variable.conditional.reread()
    loops = find_loops(network)
    network.derived.clear()
    network.derived["loops"] = loops
    if name in loops:
        loops[name].reread()


@dataclass(frozen=True, eq=False)
class Setup:
    """The inputs of the choice of updaters.

    Attributes
    ----------
    kernels
        Whether compiled loops may be used.
    stored
        Variables whose q must be stored, because the user gave their starting values.
    apart
        Variables that are not solved jointly with others: those that are own to a part of the rows.
    division
        The parts whose sums are kept, if the method keeps sums.
    joint
        Blocks of variables with a joint q.
    """

    network: Network
    method: Method
    policy: Policy
    kernels: bool = True
    stored: Collection[str] = ()
    apart: frozenset[str] = frozenset()
    division: Division | None = None
    joint: tuple[JointBlock, ...] = ()

    @cached_property
    def loops(self) -> dict[str, Multilinear]:
        """Compiled loops, by table. They read marginals, and so serve no rows of joint blocks."""
        found = find_loops(self.network) if self.kernels else {}
        others = self.joint_tables | self.summarised
        return {name: loops for name, loops in found.items() if name not in others}

    @cached_property
    def summarised(self) -> set[str]:
        """Tables whose mean statistics suffice: loops would read all rows again in every sweep."""
        if not self.method.reads_all(1) or self.method.keeps_sums:
            return set()
        observed = self.network.observed.items()
        return {name for name, variable in observed if variable.conditional.summarised}

    @cached_property
    def joined(self) -> dict[str, JointBlock]:
        """The joint block of each variable that is in one."""
        return {name: block for block in self.joint for name in block.names}

    @cached_property
    def joint_tables(self) -> set[str]:
        """Tables in which a row depends on several elements of a joint block."""
        return {table for block in self.joint for table in block.pairs}

    @cached_property
    def implicit(self) -> dict[str, ImplicitUpdater]:
        """Local Categoricals that need not be stored.

        Where every element draws its own rows, they are read at different times, so that the q of
        every local variable is stored.
        """
        network, grouping = self.network, self.method.grouping(self.network)
        if not self.kernels or not self.method.shares_rows:
            return {}
        found = {}
        for name in network.hidden:
            loops = implicit_loops(network, name)
            whole = name in network.locals or self.method.reads_all(1)  # rows are read together
            kept = name in self.stored or name in network.learned
            if loops is not None and whole and not kept:
                found[name] = ImplicitUpdater(network, loops)
        if grouping is not None and not all(
            isinstance(u.loops, Topics) and u.loops.divides(grouping) for u in found.values()
        ):
            return {}
        return found

    @cached_property
    def emissions(self) -> dict[str, Emissions]:
        """Compiled loops of the emissions of chains, by table."""
        names = self.network.observed if self.kernels and self.network.chains else ()
        found = {name: Emissions.of(self.network, name) for name in names}
        served = (name for name in found if name not in self.joint_tables)
        return {n: loops for n in served if (loops := found[n]) is not None}

    def sums_emissions(self, emissions: Emissions) -> bool:
        """Return whether all values of a row of the chain are read together, by all elements."""
        together = emissions.one_by_row or self.method.over is not None or self.method.reads_all(1)
        return self.method.shares_rows and together

    def implicit_of(self, table: str) -> ImplicitUpdater | None:
        """Return the updater whose sums give the messages of a table, if there is one."""
        return next((u for u in self.implicit.values() if table in u.loops.tables), None)

    def term(self, name: str) -> Term:
        """Return the term of a variable in the bound."""
        network = self.network
        variable, loops = network.variable(name), self.loops.get(name)
        compiled: Term | None = None
        if name in self.emissions:
            compiled = self.emissions[name].likelihood
        elif loops is not None:
            compiled = None if loops.noise is None else loops.bound_term
        elif self.kernels and name not in self.joint_tables:
            table = variable.conditional, network.present[name]
            prior = HiddenNormals.of(*table) or HiddenVectors.of(*table)
            compiled = None if prior is None else prior.bound_term
        if compiled is None:
            return lambda q: network.bound_term(q, name)
        if name not in network.learned and name not in network.baseline:
            return compiled
        return lambda q: compiled(q) + network.learned_term(q, name)

    def messages(self, edge: Edge) -> Messages:
        """Return the messages of a table to a variable, compiled where they can be."""
        table = edge.conditional.variable.name
        implicit = self.implicit_of(table)
        if implicit is not None:
            return ImplicitMessages(implicit, edge)
        emissions = self.emissions.get(table)
        if emissions is not None and (edge.choosing or self.sums_emissions(emissions)):
            return EmissionMessages(emissions, edge)
        if self.method.over is not None and isinstance(edge, ChainEdge) and edge.transitional:
            return TransitionMessages(edge, self.kernels)
        if self.method.shares_rows and self.method.over is None:
            noise = NoiseMessages.of(self.loops.get(table), edge)
            if noise is not None:
                return noise
            vectors = VectorMessages.of(self.loops.get(table), edge)
            if vectors is not None and edge.parent.name in self.network.chains:
                return vectors
        return RowMessages(edge)

    def chain(self, name: str) -> ChainUpdater:
        """Return the updater of a chain."""
        return ChainUpdater.of(self.network, self.plain(name), self.kernels)

    def plain(self, name: str) -> PlainUpdater:
        """Return the plain updater of a variable."""
        messages = tuple(map(self.messages, self.network.edges[name]))
        return PlainUpdater(self.network, name, messages, self.term(name))
