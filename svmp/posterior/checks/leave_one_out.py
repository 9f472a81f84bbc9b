"""Leave-one-out scores from draws of q: PSIS-LOO (Vehtari, Gelman & Gabry 2017).

The score of a row is log p(y_r | all other rows). Draws of q stand for the posterior without the
row if they have the weights

    p(data, draw) / (q(draw) p(y_r | draw)),

which repair q as well as they leave the row out (Magnusson et al. 2019). They are smoothed by PSIS,
whose k-hat says for each row whether its score can be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.posterior.checks.psis import USABLE, Importance, smooth

MOST = 20_000_000
"""Most numbers of draws times rows."""


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Leave-one-out scores.

    Attributes
    ----------
    scores
        log p(y_r | other rows) of each row, in nats.
    khat
        Of each row.
    """

    scores: Array
    khat: Array

    @property
    def unreliable(self) -> int:
        """Number of rows with a k-hat above 0.7."""
        return int((self.khat > USABLE).sum())


def leave_one_out(found: Importance, name: str) -> LeaveOneOut:
    """Return the leave-one-out scores of the observed rows, one table after the other."""
    density, count = found.density, len(found.log_ratios)
    rows = sum(v.count for v in density.network.observed.values())
    if rows * count > MOST:
        raise ModelError(
            f"leave-one-out scores of '{name}' take {rows:,} rows times {count:,} draws, but at "
            f"most {MOST:,}; give fewer draws=, or loo=False and held_out="
        )
    likelihood = np.empty((rows, count))
    with np.errstate(all="ignore"):
        for i in range(count):
            likelihood[:, i] = density.log_likelihood(density.at(found.draws, i))
    weights, khat = smooth(found.log_ratios - likelihood)
    return LeaveOneOut(np.asarray(logsumexp(weights + likelihood, axis=1)), khat)
