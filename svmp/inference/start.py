"""Where inference starts: near the prior, moved at random so that no two factors are alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.engine import check_domain
from svmp.inference.posterior import Posterior
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.grid import Ints
from svmp.network.lookup import Lookup
from svmp.network.network import Edge, Network
from svmp.network.variable import Variable

Init = Mapping[str, Any]
"""By variable: its mean (or probabilities), standard parameters by name, or a Posterior.

An earlier Fit serves as a whole.
"""


def start(network: Network, seed: int, init: Init | None = None) -> Beliefs:
    """Return a starting point for q, the same for the same seed."""
    init = dict(getattr(init, "posteriors", init) or {})
    unknown = set(init) - set(network.hidden)
    if unknown:
        raise ModelError(f"init names {sorted(unknown)}, which are not hidden variables")
    q = Beliefs()
    for name, variable in network.observed_parents.items():  # their moments never change
        q.moments[name] = variable.conditional.child(q, variable.rows)
    for index, (name, variable) in enumerate(network.hidden.items()):
        rng = np.random.default_rng([seed, index])
        everything = np.arange(variable.size)
        prior = np.array(network.prior(q, name, everything))
        check_domain(variable, everything, prior)
        natural = variable.family.start(prior, rng)
        if name in init:
            natural = given(variable, natural, init[name])
            sound = variable.family.in_domain(natural)
            if not sound.all():
                where = variable.plate.locate(int(np.argmin(sound)))
                raise ModelError(f"init of '{name}' is not a proper distribution at {where}")
        q.natural[name] = natural
        q.moments[name] = variable.family.moments(natural)
    for index, variable in enumerate((*network.hidden.values(), *network.observed.values())):
        if variable.conditional.selector is not None:
            seed_components(
                network, q, variable.conditional, init, np.random.default_rng([seed, index, 1])
            )
    return q


def given(variable: Variable, natural: Array, value: Any) -> Array:
    """Return the natural parameter that the user gave for a start."""
    family, name = variable.family, variable.name
    if isinstance(value, Posterior):
        if value.natural.shape != natural.shape or type(value.family) is not type(family):
            raise ModelError(f"init of '{name}' is the posterior of another kind of variable")
        return value.natural.copy()
    if not isinstance(value, Mapping):
        main = next((p for p in family.parameters if p in ("mu", "p")), None)
        if main is None:
            raise ModelError(
                f"init of '{name}' must give its parameters, as dict({family.parameters[0]}=...)"
            )
        value = {main: value}
    standard = family.standard(natural)
    unknown = set(value) - set(standard)
    if unknown:
        raise ModelError(f"init of '{name}' has {sorted(unknown)}; expected {sorted(standard)}")
    for parameter, array in value.items():
        events = standard[parameter].shape[1:]
        try:
            full = np.broadcast_to(
                np.asarray(array, dtype=np.float64), (*variable.plate.shape, *events)
            )
        except ValueError:
            raise ModelError(
                f"init of '{name}' has {parameter} of shape {np.shape(array)} instead of "
                f"{(*variable.plate.shape, *events)}"
            ) from None
        standard[parameter] = full.reshape(-1, *events)
    return family.natural(**standard)


def seed_components(
    network: Network, q: Beliefs, conditional: Conditional, init: Init, rng: np.random.Generator
) -> None:
    """Let each component of a mixture see the rows of one choice, drawn at random.

    Components that start at the data, each at another place, share them out at the first update;
    those that start at a vague prior may all be left empty but one.
    """
    (chooser,) = conditional.selector.variables  # type: ignore[union-attr]
    words = isinstance(conditional, Lookup) and chooser.name in network.locals
    if words or not chooser.hidden or chooser.name in init:  # one word says little of a topic
        return
    edge = next(e for e in network.edges[chooser.name] if e.conditional is conditional)
    candidates = np.flatnonzero(edge.children)
    count = min(conditional.components, len(candidates))
    chosen = rng.choice(candidates, count, replace=False)
    component, rows = edge.rows_of(chosen)
    subrows = rows * conditional.components + component
    sure = np.zeros((count, conditional.components))
    sure[np.arange(count), np.arange(count)] = 1.0
    unsure = q.moments[chooser.name][chosen]
    q.moments[chooser.name][chosen] = sure
    for slot in conditional.slots.values():
        for parent in slot.variables:
            if parent.hidden and parent.name not in init:
                elements, where = slot.pairs(parent, subrows)
                if len(np.unique(elements)) >= count:
                    _add_rows(network, q, Edge(parent, conditional), elements, where)
    q.moments[chooser.name][chosen] = unsure


def _add_rows(network: Network, q: Beliefs, edge: Edge, elements: Ints, rows: Ints) -> None:
    order = np.argsort(elements, kind="stable")
    distinct, owner = np.unique(elements[order], return_inverse=True)
    message = edge.message(q, distinct, owner, rows[order])
    natural = q.natural[edge.parent.name][distinct] + message
    check_domain(edge.parent, distinct, natural)
    network.move(q, edge.parent.name, distinct, natural)
