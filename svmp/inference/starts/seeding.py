"""Starting values of mixture components and topics: each sees different rows of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from svmp.inference.earlier import EarlierQ
from svmp.inference.starts.chain_seeds import Seeds
from svmp.inference.starts.clusters import centres_of, members
from svmp.inference.starts.row_features import row_features
from svmp.inference.updaters.domain import check_domain
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import CHUNK, Conditional
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints
from svmp.network.lookup import Lookup
from svmp.network.means.linear import scatter
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.slot import Single
from svmp.network.variable import Variable

SAMPLE = 2000
"""Most elements of a Categorical that are clustered."""
NUMBERS = 1 << 19
"""Most numbers that are clustered."""
FEW = 5
"""Fewest elements for each component for which only half of them are clustered."""


def seed_components(
    network: Network,
    q: Beliefs,
    conditional: Conditional,
    init: Mapping[str, Any],
    rng: np.random.Generator,
    chains: Mapping[str, Seeds] | None = None,
) -> None:
    """Initialise each component of a mixture with some rows, chosen by the user or at random.

    `chains` has by chain the rows at which its states start.
    """
    (selected,) = conditional.selector.variables  # type: ignore[union-attr]
    if not selected.hidden:
        return
    chooser = network.hidden[selected.name]
    if chooser.name in init:
        seed_from_choices(network, q, conditional, chooser, init)
    elif (
        isinstance(conditional, Lookup)
        and chooser.name in network.locals
        and not isinstance(chooser.family, PartlyKnown)
    ):
        seed_topics(network, q, conditional, chooser, init, rng)
    else:
        chosen = (chains or {}).get(chooser.name)
        seed_from_elements(network, q, conditional, chooser, init, rng, chosen)


def seed_from_choices(
    network: Network,
    q: Beliefs,
    conditional: Conditional,
    chooser: Variable,
    init: Mapping[str, Any],
) -> None:
    """Initialise the components and their weights with all rows, by the choices in `init`.

    Choices are updated first, and would otherwise be lost before the components are updated.
    """
    for table in (conditional, chooser.conditional):
        for parent in (p for slot in table.slots.values() for p in slot.variables):
            if parent.hidden and parent.name not in init:
                read_rows(network, q, parent, [table])


def read_rows(
    network: Network, q: Beliefs, variable: Symbol, tables: list[Conditional] | None = None
) -> None:
    """Set a variable to its optimum given q of all others and the rows of some or all tables."""
    elements = np.arange(variable.size)
    natural = np.array(network.prior(q, variable.name, elements))
    for edge in network.edges[variable.name]:
        if tables is None or edge.conditional in tables:
            natural += edge.message(q, elements, *edge.rows_of(elements))
    check_domain(variable, elements, natural)
    network.move(q, variable.name, elements, natural)


def seed_topics(
    network: Network,
    q: Beliefs,
    conditional: Lookup,
    chooser: Variable,
    init: Mapping[str, Any],
    rng: np.random.Generator,
) -> None:
    """Initialise each topic with the words of random documents, each of which goes to one topic.

    Topics that start with realistic word frequencies and co-occurrences end far better than topics
    that start nearly alike.
    """
    weights, slot = chooser.conditional.slots["p"], conditional.slots["p"]
    if not isinstance(weights, Single) or not isinstance(slot, Single):
        return  # the rows belong to no groups, or the topics are known
    topics, document = slot.reader.variable, weights.reader
    few = document.variable.size < conditional.components
    if few or not topics.hidden or topics.name in init:
        return
    topic_of = rng.permutation(document.variable.size) % conditional.components
    shape, rows = q.natural[topics.name].shape, network.rows(conditional.variable)
    natural = q.natural[topics.name].copy()
    for first in range(0, len(rows), CHUNK):
        some = rows[first : first + CHUNK]
        choice = conditional.selector.pairs(chooser, some)[0]  # type: ignore[union-attr]
        topic = topic_of[document.element(choice, choice)]
        elements, _ = slot.pairs(topics, some * conditional.components + topic)
        natural += scatter(np.ones(len(some)), elements, conditional.categories(some), shape)
    network.move(q, topics.name, np.arange(len(natural)), natural)


def seed_from_elements(
    network: Network,
    q: Beliefs,
    conditional: Conditional,
    chooser: Variable,
    init: Mapping[str, Any],
    rng: np.random.Generator,
    given: Seeds | None = None,
) -> None:
    """Initialise each component with the rows of some elements of the Categorical.

    These are the elements of a cluster (row_features.py); one element drawn at random where rows
    have no distances; all elements that are known to have chosen the component. `given` are
    elements and their components that were found before. Where `init` has the locations of
    components, these are the elements that each fits best.

    Components that start at different rows divide the data among them at the first update; of
    components that start at a vague prior, all but one may stay empty.
    """
    edge = next(e for e in network.edges[chooser.name] if e.conditional is conditional)
    located, clustered = set[str](), best_fitting(network, q, chooser, init, rng)
    if clustered is not None:
        located = locations(conditional, init)
        chosen, component = clustered
    elif given is None:
        candidates = np.flatnonzero(edge.children)
        clustered = clusters(network, q, chooser, candidates, rng)
        chosen, component = clustered or chosen_elements(chooser, candidates, rng)
    else:
        chosen, component = given
    count = len(np.unique(component))
    owner, rows = edge.rows_of(chosen)
    subrows = rows * conditional.components + component[owner]
    sure = np.zeros((chooser.size, conditional.components))  # takes memory only where written
    sure[chosen, component] = 1.0
    certain = Beliefs(q.natural, {**q.moments, chooser.name: sure}, row_moments=q.row_moments)
    for slot in conditional.slots.values():
        for parent in slot.variables:
            if parent.hidden and (parent.name not in init or parent.name in located):
                elements, where = slot.pairs(parent, subrows)
                if clustered or len(np.unique(elements)) >= count:
                    _add_rows(network, certain, parent, conditional, elements, where)


def locations(conditional: Conditional, init: Mapping[str, Any]) -> set[str]:
    """Return the variables that differ by component and of which `init` has only different means.

    Their variances are those of the prior. With such variances, a row would choose whichever
    component has the smallest precision. So they start with rows too, unless `init` has all
    parameters.
    """
    slots, axis = conditional.slots.values(), conditional.component_axis
    if all(p.name in init for slot in slots for p in slot.variables if p.hidden):
        return set()
    return {
        p.name
        for slot in slots
        for p in slot.variables
        if p.hidden and axis in slot.labels(p) and has_different_means(p, init.get(p.name))
    }


def has_different_means(variable: Symbol, value: Any) -> bool:
    """Return whether a starting value has the means of Normals, not all the same, and no more."""
    means = value.get("mu") if isinstance(value, Mapping) and "tau" not in value else value
    if variable.family.gaussian is None or isinstance(means, Mapping | EarlierQ):
        return False
    return means is not None and np.ndim(means) > 0 and bool(np.ptp(means, axis=0).any())


def best_fitting(
    network: Network,
    q: Beliefs,
    chooser: Variable,
    init: Mapping[str, Any],
    rng: np.random.Generator,
) -> Seeds | None:
    """Return elements of a Categorical, and the component of each whose given location fits best.

    Returns None if `init` has no locations of components, or none that divide the rows among all of
    them.
    """
    choosing = [edge for edge in network.edges[chooser.name] if edge.choosing]
    edges = [edge for edge in choosing if locations(edge.conditional, init)]
    if not edges:
        return None
    elements = np.flatnonzero(np.logical_or.reduce([edge.children > 0 for edge in edges]))
    if len(elements) > SAMPLE:
        elements = np.sort(rng.choice(elements, SAMPLE, replace=False))
    known = {}
    for name in (name for edge in edges for name in locations(edge.conditional, init)):
        family = network.hidden[name].family
        known[name] = family.statistics(family.mean(q.natural[name]))
    at_means = Beliefs(q.natural, {**q.moments, **known}, row_moments=q.row_moments)
    log = sum(edge.message(at_means, elements, *edge.rows_of(elements)) for edge in edges)
    component = np.argmax(log, axis=1)
    if isinstance(chooser.family, PartlyKnown):
        own = chooser.family.at(elements)
        component = np.where(own.known, own.values, component).astype(np.int64)
    whole = len(np.unique(component)) == chooser.family.size
    return Seeds(elements, component) if whole else None


def clusters(
    network: Network, q: Beliefs, chooser: Variable, candidates: Ints, rng: np.random.Generator
) -> Seeds | None:
    """Return elements of a Categorical and the cluster of each; None if they have no distances."""
    count = chooser.family.size
    if isinstance(chooser.family, PartlyKnown) or len(candidates) <= count:
        return None
    half = len(candidates) // 2  # so that other seeds start elsewhere
    size = min(SAMPLE, half) if half >= FEW * count else len(candidates)
    candidates = np.sort(rng.choice(candidates, size, replace=False))
    values = row_features(network, q, chooser.name, candidates)
    if not values.shape[1]:
        return None
    size = max(FEW * count, NUMBERS // values.shape[1])
    if len(values) > size:
        some = np.sort(rng.choice(len(values), size, replace=False))
        candidates, values = candidates[some], values[some]
    places, component = members(values, centres_of(values, count, rng))
    return Seeds(candidates[places], component)


def chosen_elements(
    chooser: Variable, candidates: Ints, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return some elements of a Categorical, and the component that each starts.

    These are the known elements, and one for each component that no known element has chosen.
    """
    components, family = chooser.family.size, chooser.family
    first: tuple[Ints, Ints] = (candidates[:0], candidates[:0])
    if isinstance(family, PartlyKnown):
        mine = candidates[family.known[candidates]]
        candidates = candidates[~family.known[candidates]]
        first = mine, family.values[mine].astype(np.int64)
    rest = np.setdiff1d(np.arange(components), first[1])
    count = min(len(rest), len(candidates))
    chosen = rng.choice(candidates, count, replace=False)
    return np.concatenate([first[0], chosen]), np.concatenate([first[1], rest[:count]])


def _add_rows(
    network: Network,
    q: Beliefs,
    parent: Symbol,
    conditional: Conditional,
    elements: Ints,
    rows: Ints,
) -> None:
    order = np.argsort(elements, kind="stable")
    distinct, owner = np.unique(elements[order], return_inverse=True)
    message = conditional.message_sum(q, parent, distinct, owner, rows[order])
    natural = q.natural[parent.name][distinct] + message
    check_domain(parent, distinct, natural)
    network.move(q, parent.name, distinct, natural)
