"""A fit together with its model, which a fit does not store: q as arrays, checked."""

from __future__ import annotations

import numpy as np

from svmp.errors import ModelError
from svmp.inference.running.arguments import check_model
from svmp.inference.starts.start import start
from svmp.inference.updaters.joint_block import joint_normals
from svmp.network.beliefs import Beliefs
from svmp.network.model import Model
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.uncertainty.message_map import solve_chains

APART = 1e-6
"""Largest relative difference of a bound from that of the fit."""


def network_and_q(
    fit: RunRecord, model: Model, partly_known: bool = False, chains: bool = False
) -> tuple[Network, Beliefs]:
    """Return the network of a model and the q of a fit to it, with all variables stored.

    Parameters
    ----------
    fit, model
        The model must be the one that was fitted: q has the same bound under it.
    partly_known
        Whether variables that are observed in part are allowed.
    chains
        Whether chains are allowed, whose q is then the optimum given the other variables.
    """
    check_model(model)
    network, posteriors = Network(model), fit.posteriors
    if not partly_known:
        check_no_partly_known(network, "PSIS is not available")
    if network.chains and not chains:
        raise ModelError(
            f"'{next(iter(network.chains))}' is a chain, for which PSIS is not available; "
            "check the fit by fit.covariance, by svmp.calibrate or by held-out scores"
        )
    if sorted(network.hidden) != sorted(posteriors):
        raise ModelError(
            f"the fit has q of {list(posteriors)}, but the model hides {list(network.hidden)}; "
            "give the model that was fitted"
        )
    try:
        q = start(network, 0, dict(posteriors))
        q.blocks = joint_normals(network, q, fit.joint)
        solve_chains(network, q)
    except ModelError as error:
        raise ModelError(
            f"the model is not the one that was fitted: {error}; give the model that was fitted"
        ) from None
    check_same_model(network, q, fit.bound)
    return network, q


def check_no_partly_known(network: Network, fact: str) -> None:
    """Refuse a variable of which some elements are observed and others are missing."""
    for name, variable in network.hidden.items():
        if isinstance(variable.family, PartlyKnown):
            raise ModelError(
                f"'{name}' is a parent that is observed in part, for which {fact}; check the fit "
                "by held-out scores, or leave out the rows where it is missing"
            )


def check_same_model(network: Network, q: Beliefs, bound: float) -> None:
    """Refuse a model under which q has another bound than in its fit."""
    with np.errstate(all="ignore"):
        found = sum(network.bound(q).values())
    if not abs(found - bound) <= APART * max(1.0, abs(bound)):
        raise ModelError(
            f"q has the bound {found:,.6g} under this model, but {bound:,.6g} in the fit; give the "
            "model that was fitted, with the same data (after fit.update there is no such model)"
        )
