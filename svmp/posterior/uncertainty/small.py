"""Which fits have the covariances of linear response by default: those of small networks.

A column of H costs two sweeps in plain code at most, so that all of them cost at most about

    2 x (statistics of the hidden variables) x (rows read in a sweep)

accesses. A network is small where that is at most a second. Its fit keeps a reference to its model,
and computes the covariances when they are first needed.
"""

from __future__ import annotations

from svmp.network.model import Model
from svmp.network.network import Network

LARGEST = 300
"""Most statistics of a network that is small: their covariances are found within a second."""
ACCESSES = 1_000_000
"""Most accesses of one difference of all statistics; at half a microsecond each, half a second."""


def is_small(network: Network) -> bool:
    """Return whether predictions and summaries have the covariances of linear response."""
    statistics = sum(v.size * v.family.size for v in network.hidden.values())
    few = statistics <= LARGEST and statistics * network.sweep_accesses <= ACCESSES
    return few and not network.chains and not network.learned


def kept(network: Network) -> Model | None:
    """Return the model that the fit of a network keeps; None if it is large."""
    model = network.model
    return model if isinstance(model, Model) and is_small(network) else None
