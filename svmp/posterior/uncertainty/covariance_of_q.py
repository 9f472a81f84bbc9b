"""The covariance matrix of some variables under q, whose joint blocks have covariances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.gaussian.joint_posterior import JointPosterior
from svmp.network.grid import Ints
from svmp.posterior.marginals.posterior import Posterior

LARGEST = 5000
"""Most rows of a covariance matrix that is returned."""


def covariance_of(
    blocks: Sequence[JointPosterior], marginals: Mapping[str, Posterior], names: Sequence[str]
) -> Array:
    """Return the covariance matrix of some variables under q.

    The rows are the entries of the variables in the order of the names, each flattened. Variables
    in different blocks are independent under q, and so are elements that are in none.
    """
    sizes = [int(np.size(marginals[name].mean)) for name in names]
    if sum(sizes) > LARGEST:
        raise ModelError(
            f"the covariance matrix of {list(names)} has {sum(sizes):,} rows, and at most "
            f"{LARGEST:,} are computed; give fewer variables"
        )
    starts = np.cumsum([0, *sizes])
    found = np.zeros((starts[-1], starts[-1]))
    for block in blocks:
        rows, unknowns = [], list[Ints]()
        for name, start in zip(names, starts, strict=False):
            if name in block.layout.starts:
                places = block.layout.places(name).ravel()
                unknowns.append(places)
                rows.append(start + np.arange(len(places)))
        if rows:
            at: Ints = np.concatenate(rows)
            found[np.ix_(at, at)] = block.dense(np.concatenate(unknowns))
    joined = {name for block in blocks for name in block.layout.names}
    for name, start, size in zip(names, starts, sizes, strict=False):
        if name not in joined and size:
            width = size // max(len(marginals[name].natural), 1)
            for element, matrix in enumerate(marginals[name].cov.reshape(-1, width, width)):
                at = start + element * width + np.arange(width)
                found[np.ix_(at, at)] = matrix
    return found
