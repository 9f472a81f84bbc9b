"""Prior predictive draws: every variable from its density given drawn parents, parents first."""

from __future__ import annotations

from typing import Any

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.running.seeds import Seed, generator
from svmp.network.beliefs import Beliefs
from svmp.network.keywords import known_keywords
from svmp.network.model import Model
from svmp.network.validation import shown
from svmp.network.variable import Variable
from svmp.posterior.marginals.posterior import draw_count
from svmp.posterior.prediction.chains import chain_of, forecast, in_turn
from svmp.posterior.prediction.simulation import check_finite, draw, family_of


@known_keywords
def prior_predictive(model: Model, size: int = 1, seed: Seed = None) -> dict[str, Array]:
    """Draw all variables of a model from the prior; observed values are not read.

    Parameters
    ----------
    model
        A declared network; it need not be fitted.
    size
        Number of joint draws.
    seed
        By default new random numbers in each call; a whole number gives the same draws each time.

    Returns
    -------
    dict
        By variable, its draws, with a new first axis. Missing values are drawn too.

    >>> import svmp
    >>> with svmp.Model() as model:
    ...     rate = svmp.Gamma("rate", alpha=2, beta=1)
    ...     svmp.Poisson("count", mu=rate, observed=[3, 4])
    <observed Poisson 'count' {'count_dim_0': 2}>
    >>> draws = svmp.prior_predictive(model, 1000, seed=1)
    >>> draws["rate"].shape, draws["count"].shape
    ((1000,), (1000, 2))
    """
    if not isinstance(model, Model):
        raise ModelError(f"prior_predictive needs a svmp.Model, not {shown(model)}")
    count, rng = draw_count(size), generator(seed, "prior")
    variables = model.variables
    out: dict[str, Any] = {n: np.empty((count, *v.shape)) for n, v in variables.items()}
    q = Beliefs()
    with np.errstate(all="ignore"):
        for place in range(count):
            for name, variable in variables.items():
                values = draw_rows(q, variable, rng)
                check_finite(name, values)
                out[name][place] = values.reshape(variable.shape)
            q.version += 1
    return out


def draw_rows(q: Beliefs, variable: Variable, rng: np.random.Generator) -> Array:
    """Draw all elements of a variable given drawn parents, and add them to the beliefs."""
    size, events = variable.size, variable.shape[len(variable.plate.shape) :]
    values, chain = np.empty((size, *events)), chain_of(variable)
    q.moments[variable.name] = np.empty((size, variable.family.size))
    step, every = variable.conditional.chunk(variable.family.size), np.arange(size)
    parts = [every[start : start + step] for start in range(0, size, step)]
    for rows in parts if chain is None else in_turn(chain, every):
        given = variable.conditional
        natural = given.to_child(q, rows) if chain is None else forecast(chain, q, rows)
        family = family_of(variable, rows)
        values[rows] = draw(family, natural, rng)
        q.moments[variable.name][rows] = family.statistics(values[rows])
    return values
