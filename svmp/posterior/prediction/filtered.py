"""States of a chain of vectors given the rows up to each of them: filtered and predicted values.

They are those of the Kalman filter on the expected dynamics, with the messages of the other
variables as evidence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.families.matrix import apply, cholesky, symmetric
from svmp.inference.methods.draw import AllRows
from svmp.inference.running.arguments import check_model
from svmp.inference.starts.start import start
from svmp.inference.updaters.linear_chain import expected
from svmp.inference.updaters.plain import PlainUpdater
from svmp.kernels.chains import plain_smoother
from svmp.network.chains.linear_chain import LinearChain
from svmp.network.model import Model
from svmp.network.network import Network
from svmp.posterior.marginals.vector_chain_posterior import VectorChainPosterior
from svmp.posterior.record.run_record import RunRecord


class Filtered(NamedTuple):
    """Means (rows, K) and covariances (rows, K, K) of states.

    Attributes
    ----------
    mean, cov
        Given the observations of all rows up to the row itself.
    predicted_mean, predicted_cov
        Given those of the rows before it.
    """

    mean: Array
    cov: Array
    predicted_mean: Array
    predicted_cov: Array


def filtered(fit: RunRecord, model: Model, name: str) -> Filtered:
    """Return the filtered and predicted states of a chain of vectors under the q of a fit."""
    check_model(model)
    known = fit.posteriors.get(name)
    on = known.continued if isinstance(known, VectorChainPosterior) else None
    network = Network(model, continued={} if on is None else {name: on})
    chain = network.chains.get(name)
    if not isinstance(chain, LinearChain):
        raise ModelError(f"'{name}' is not a LinearGaussianChain of the model")
    if sorted(network.hidden) != sorted(fit.posteriors):
        raise ModelError("the model is not the one that was fitted")
    q = start(network, 0, dict(fit.posteriors))
    live = chain.sequences.live(network.present[name])
    every, size = chain.sequences.spans(None, live), chain.size
    rows = every.rows
    messages, _ = PlainUpdater.of(network, name).message_sum(q, AllRows(network), rows)
    found = expected(chain, q, every, messages)
    mean, cov, sound = plain_smoother.predict(*found)
    if not sound.all():
        raise ModelError(f"the filtered states of '{name}' are not finite")
    lower, seen = cholesky(cov), -2 * symmetric(messages[:, size:], size)
    turned = np.swapaxes(lower, 1, 2)
    root = np.linalg.solve(cholesky(np.eye(size) + turned @ seen @ lower), turned)
    given = np.swapaxes(root, 1, 2) @ root
    after = mean + apply(given, messages[:, :size] - apply(seen, mean))
    parts = (after, given, mean, cov)
    placed = []
    for part in parts:
        place = np.empty_like(part)
        place[rows] = part
        placed.append(place)
    return Filtered(*placed)
