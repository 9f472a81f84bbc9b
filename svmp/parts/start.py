"""The start of a fit over parts: shared variables here, own variables where their part is.

Shared variables start as those of one table do. Components of mixtures and topics must start at
different rows, and take those of the largest part, as do the parameters of chains of vectors and
products that start at fits; other factors start at the mean of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.earlier import EarlierBeliefs, EarlierQ
from svmp.inference.starts.fitted_products import fitted_terms
from svmp.inference.starts.products import products, start_at_level
from svmp.inference.starts.seeding import locations
from svmp.inference.starts.start import Init, from_posterior, from_values, start
from svmp.network.beliefs import Beliefs
from svmp.network.chains.linear_chain import LinearChain
from svmp.parts import tasks
from svmp.parts.cache import load_part
from svmp.parts.context import Job
from svmp.parts.shared import SharedNetwork
from svmp.parts.workspace import Workspace


def start_q(
    space: Workspace,
    network: SharedNetwork,
    largest: int,
    seed: int,
    init: Init | None,
    empty: Callable[[tuple[int, ...]], Array],
) -> Beliefs:
    """Return a starting point of q.

    Parameters
    ----------
    space, network
        The parts, and the network of all hidden variables.
    largest
        Number of the part with most rows.
    seed, init
        As for `svmp.fit`. Values of own variables are those of all parts, one after the other.
    empty
        Makes an array of zeros for the q of an own variable, in memory or on disk.
    """
    own = space.context.sharing.own
    given = dict(init.stored if isinstance(init, EarlierBeliefs) else init or {})
    unknown = [name for name in given if name not in network.hidden]
    if unknown:
        raise ModelError(f"init names {unknown}, which are not hidden variables of the parts")
    shared = {name: value for name, value in given.items() if name not in own}
    q = start(network, seed, shared, but=own)
    for product in products(load_part(space.context, largest).network):
        if not set(product.operands) & given.keys():
            starts = {n: level for n, level in product.starts().items() if n not in own}
            start_at_level(network, q, starts, product.width)
    if _starts_at_rows(space, largest, given):
        _seed_shared(space, network, q, largest, seed, given)
    for name in space.stored:
        variable = network.hidden[name]
        q.natural[name] = empty((variable.size, variable.family.size))
    if space.stored:
        jobs = space.jobs(None, np.arange(len(space.sizes)))
        for found in space.run(tasks.start_parts, q, jobs, seed, space.element_counts()):
            space.keep(q, found)
    for name in (n for n in given if n in own):
        if name not in space.stored:
            raise ModelError(f"init names '{name}', whose q is not stored; give init of the others")
        variable, value = network.hidden[name], given[name]
        natural = (
            from_posterior(variable, value)
            if isinstance(value, EarlierQ)
            else from_values(variable, q.natural[name], value)
        )
        sound = variable.family.in_domain(natural)
        if not sound.all():
            where = variable.plate.locate(int(np.argmin(sound)))
            raise ModelError(f"init of '{name}' is not a proper distribution at {where}")
        q.natural[name][...] = natural
    return q


def _starts_at_rows(space: Workspace, number: int, given: Collection[str]) -> bool:
    """Whether the network has a mixture, topics, a chain of vectors, or products with fits."""
    network = load_part(space.context, number).network
    if fitted_terms(network, given):
        return True
    variables = (*network.hidden.values(), *network.observed.values())
    chains = (isinstance(chain, LinearChain) for chain in network.chains.values())
    return any(chains) or any(v.conditional.selector is not None for v in variables)


def _seed_shared(
    space: Workspace,
    network: SharedNetwork,
    q: Beliefs,
    largest: int,
    seed: int,
    given: Mapping[str, Any],
) -> None:
    """Start shared variables at rows of the largest part."""
    part = load_part(space.context, largest)
    init = {name: value for name, value in given.items() if part.places.get(name, ()) is None}
    variables = (*part.network.hidden.values(), *part.network.observed.values())
    mixtures = [v.conditional for v in variables if v.conditional.selector is not None]
    free = set(part.places) - given.keys() | {n for c in mixtures for n in locations(c, init)}
    for found in space.run(tasks.seed_from_part, q, [Job(((largest,),))], seed, init):
        for name in free & found.keys():
            at = part.places[name]
            q.natural[name][slice(None) if at is None else at] = found[name]
            q.moments[name] = network.hidden[name].family.moments(q.natural[name])
