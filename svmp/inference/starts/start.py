"""The start of inference: near the prior, with random perturbations to break symmetries.

Where the whole mean of a table is a product of two variables, one of their factors starts at the
level of the data (products.py); longer products, and those of small tables, start at rank-one fits
(fitted_products.py). States of chains start at clusters of rows (chain_seeds.py), vectors of chains
at principal components (vector_chain_start.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.families.matrix import is_symmetric
from svmp.inference.earlier import EarlierQ
from svmp.inference.starts.chain_init import check_states
from svmp.inference.starts.chain_seeds import seed_rows
from svmp.inference.starts.fitted_products import start_at_fits
from svmp.inference.starts.products import products, start_at_level
from svmp.inference.starts.seeding import read_rows, seed_components
from svmp.inference.starts.vector_chain_start import start_vectors
from svmp.inference.updaters.domain import check_domain
from svmp.network.beliefs import Beliefs, Implicit
from svmp.network.chains.discrete_chain import DiscreteChain
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.partly_known import base_of
from svmp.network.validation import shown
from svmp.network.variable import Variable

UNSURE = 1e-6
"""Total probability that is spread over all categories where a start has probabilities of 0."""
Init = Mapping[str, Any]
"""By variable: its mean (or probabilities), standard parameters by name, or a Posterior."""


def start(
    network: Network,
    seed: int,
    init: Init | None = None,
    implicit: Mapping[str, Implicit] | None = None,
    but: Collection[str] = (),
) -> Beliefs:
    """Return a starting point for q, the same for the same seed.

    Implicit variables need none, and those of `but` start elsewhere.
    """
    init = {} if init is None else init
    if not isinstance(init, Mapping):
        raise ModelError(f"init must be a dict by variable or a Fit, not {type(init).__name__}")
    unknown = [name for name in init if name not in network.hidden]
    if unknown:
        raise ModelError(
            f"init names {shown(unknown)}, which are not hidden variables; there are "
            f"{list(network.hidden)}"
        )
    q = Beliefs(implicit=dict(implicit or {}))
    for name, variable in network.observed_parents.items():  # their moments never change
        q.moments[name] = variable.conditional.child(q, variable.rows)
    for index, (name, variable) in enumerate(network.hidden.items()):
        if name in q.implicit or name in but:
            continue
        value = init.get(name)
        if isinstance(value, EarlierQ):
            natural = from_posterior(variable, value)
        else:
            prior = np.array(network.priors(q, name))
            check_domain(variable, np.arange(variable.size), prior)
            family, rng = variable.family, np.random.default_rng([seed, index])
            whole = isinstance(value, Mapping) and set(value) == set(family.parameters)
            natural = prior if whole else family.start(prior, rng)
            natural = from_values(variable, natural, value) if name in init else natural
        # Sums over an axis depend on the order in memory, and a saved q has that of C.
        q.natural[name] = natural = np.ascontiguousarray(natural)
        q.moments[name] = moments = variable.family.moments(natural)
        if name in network.chains:
            q.joint[name] = network.unlinked(name, natural)
        if name in init:
            sound = variable.family.in_domain(natural)
            if not np.isfinite(moments).all():  # by element only if needed: that is slow
                sound = sound & np.isfinite(moments).all(axis=-1)
            if not sound.all():
                where = variable.plate.locate(int(np.argmin(sound)))
                raise ModelError(f"init of '{name}' is not a proper distribution at {where}")
    for name, chain in network.chains.items():
        if name in init and name not in but and isinstance(chain, DiscreteChain):
            check_states(chain, q)
    begun = {
        name
        for i, name in enumerate(network.hidden)
        if name in network.chains
        and start_vectors(network, q, name, {*init, *but}, np.random.default_rng([seed, i, 3]))
    }
    for product in products(network):
        if not set(product.operands) & {*init, *but, *begun}:
            start_at_level(network, q, product.starts(), product.width)
    start_at_fits(network, q, np.random.default_rng([seed, 5]), {*init, *but})
    seeds = {
        name: seed_rows(network, name, variable.family.size, np.random.default_rng([seed, i, 2]))
        for i, (name, variable) in enumerate(network.hidden.items())
        if name in network.chains and variable.family.nominal and name not in but
    }
    for index, variable in enumerate((*network.hidden.values(), *network.observed.values())):
        given = variable.conditional
        if given.selector is not None and variable.name not in {*but, *network.chains}:
            if variable.hidden and variable.name not in init:
                # Near the prior its elements are all alike, and its components would become so too.
                read_rows(network, q, variable)
            rng = np.random.default_rng([seed, index, 1])
            seed_components(network, q, variable.conditional, init, rng, seeds)
    return q


def from_posterior(variable: Variable, value: EarlierQ) -> Array:
    """Return the natural parameter of the posterior of an earlier fit."""
    family, name = variable.family, variable.name
    same = type(value.family) is type(family) and value.plate == variable.plate.shape
    if not same or value.natural.shape != (variable.size, family.size):
        raise ModelError(f"init of '{name}' is the posterior of another kind of variable")
    if value.natural.dtype.kind not in "iuf":
        raise ModelError(f"init of '{name}' is a posterior whose parameters are not real numbers")
    return value.natural.astype(np.float64, order="C")


def from_values(variable: Variable, natural: Array, value: Any) -> Array:
    """Return the natural parameter of starting values that the user gave."""
    family, name = base_of(variable.family), variable.name
    if not isinstance(value, Mapping):
        main = next((p for p in family.parameters if p in ("mu", "p")), None)
        if main is None:
            raise ModelError(
                f"init of '{name}' must give its parameters, as dict({family.parameters[0]}=...)"
            )
        value = {main: value}
    whole = set(value) == set(family.parameters)  # then only the shapes of the others are needed
    standard = family.standard(natural[:1] if whole else natural)
    standard.pop("n", None)  # a part of the model
    unknown = [parameter for parameter in value if parameter not in standard]
    if unknown:
        raise ModelError(f"init of '{name}' has {shown(unknown)}; expected {list(standard)}")
    for parameter, array in value.items():
        standard[parameter] = numbers(variable, parameter, array, standard[parameter].shape[1:])
    with np.errstate(all="ignore"):  # improper distributions are refused later
        return family.natural(**standard)


def numbers(variable: Variable, parameter: str, value: Any, events: tuple[int, ...]) -> Array:
    """Return one parameter of the start as an array with a row for each element."""
    what = f"init of '{variable.name}' has {parameter}"
    try:
        array = np.asarray(value)
    except ValueError:
        raise ModelError(f"{what} with rows of different lengths") from None
    if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise ModelError(f"{what} that is not all finite real numbers")
    shape = (*variable.plate.shape, *events)
    matrix = len(events) == 2
    try:
        if matrix and array.shape[-2:] != events:  # a number repeated is not positive definite
            raise ValueError
        full = np.broadcast_to(array.astype(np.float64), shape).reshape(-1, *events)
    except ValueError:
        raise ModelError(f"{what} of shape {array.shape} instead of {shape}") from None
    if matrix and not is_symmetric(full).all():
        raise ModelError(f"{what} that is not symmetric")
    if parameter == "p":
        total = full.sum(axis=1) if events else full  # the other outcome has 1 - p
        apart = np.isclose(total, 1, rtol=1e-6) if events else (total > 0) & (total < 1)
        if not (np.all(full >= 0) and np.all(apart)):
            rule = "at least 0 with sum 1" if events else "between 0 and 1, both excluded"
            raise ModelError(f"{what} that is not {rule}")
        if np.any(full == 0):
            full = (1 - UNSURE) * full + UNSURE / events[0]
    return full


def check_finite(network: Network, q: Beliefs, rows: Mapping[str, Ints]) -> None:
    """Refuse a start at which an expected log density is not finite."""
    for name, some in rows.items():
        variable = network.observed[name]
        sound = np.isfinite(variable.conditional.log_density(q, some))
        if not sound.all():
            where = variable.plate.locate(int(some[np.argmin(sound)]))
            raise ModelError(
                f"the log density of '{name}' at {where} is not finite where the run starts: its "
                "value or its parameters are too large to compute with"
            )
