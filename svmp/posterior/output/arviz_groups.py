"""The groups of `fit.to_arviz()` that need the model: data, log likelihoods and predictions.

A draw of the hidden variables is a q without spread, `JointDensity.at`, under which every density
gives log p(y_r | draw), and from which a row can be drawn. Both belong to the draw of the same
number in the group `posterior`, as ArviZ expects.

    log_likelihood          log p(y_r | draw); a Categorical that only chooses components is summed
                            out, so that the rows of a mixture have the density of the mixture
    posterior_predictive    a draw of each row given the draw of its parents
    observed_data           the values, NaN where they are missing
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.running.seeds import Seed, generator
from svmp.network.beliefs import Beliefs
from svmp.network.model import Model
from svmp.network.partly_known import base_of
from svmp.network.variable import Variable
from svmp.posterior.checks.leave_one_out import MOST
from svmp.posterior.output.predictive_plot import observed_values
from svmp.posterior.prediction.simulation import check_finite, draw, family_of
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.tables.entries import Dim
from svmp.posterior.uncertainty.fitted import network_and_q
from svmp.posterior.uncertainty.joint_density import JointDensity, base_measure

Arrays = dict[str, tuple[Sequence[Dim], Array]]
"""By variable, the dims of an array without those of draws, and the array."""


def fits_into_memory(model: Model, draws: int) -> bool:
    """Return whether a number for each draw and observed entry fits into memory."""
    observed = (v for v in model.variables.values() if not v.hidden)
    return draws * sum(int(np.prod(v.shape)) for v in observed) <= MOST


def model_groups(
    fit: RunRecord, model: Model, draws: Mapping[str, Array], seed: Seed
) -> dict[str, Arrays]:
    """Return the groups of draws by name.

    Parameters
    ----------
    fit, model
        The model is the one that was fitted.
    draws
        Draws of all hidden variables, (draws, *shape of the variable).
    seed
        Seed of the draws of rows.
    """
    count = len(next(iter(draws.values())))
    if not fits_into_memory(model, count):
        raise ModelError(
            f"log likelihoods of {count:,} draws take more than {MOST:,} numbers; give fewer "
            "draws=, or leave out model="
        )
    network, q = network_and_q(fit, model, partly_known=True, chains=True)
    density, rng = JointDensity(network, q), generator(seed, "posterior_predictive")
    statistics = {
        name: base_of(variable.family).statistics(
            draws[name].reshape(count * variable.size, *variable.shape[len(variable.plate.shape) :])
        )
        for name, variable in network.hidden.items()
    }
    tables = network.observed
    likelihood = np.empty((count, sum(v.count for v in tables.values())))
    predicted = {name: np.empty((count, v.size, *_events(v))) for name, v in tables.items()}
    observed = {name: q.moments[name] for name in network.observed_parents}
    with np.errstate(all="ignore"):
        for place in range(count):
            moments = {
                name: some.reshape(count, -1, some.shape[-1])[place]
                for name, some in statistics.items()
            }
            point = Beliefs(moments={**observed, **moments})
            likelihood[place] = _log_likelihood(density, point)
            for name, variable in tables.items():
                predicted[name][place] = _drawn(variable, point, rng)
    for name, values in predicted.items():
        check_finite(name, values)
    starts = np.cumsum([v.count for v in tables.values()])[:-1]
    each = dict(zip(tables, np.split(likelihood, starts, axis=1), strict=True))
    return {
        "log_likelihood": {n: _of_rows(model, v, each[n]) for n, v in tables.items()},
        "posterior_predictive": {
            n: (_dims(model, v), predicted[n].reshape(count, *v.shape)) for n, v in tables.items()
        },
        "observed_data": {n: (_dims(model, v), observed_values(v)) for n, v in tables.items()},
    }


def _events(variable: Variable) -> tuple[int, ...]:
    """Return the shape of one row."""
    return variable.shape[len(variable.plate.shape) :]


def _log_likelihood(density: JointDensity, point: Beliefs) -> Array:
    """Return log p(y_r | draw) of every observed row, one table after the other."""
    if not density.network.chains:
        return density.log_likelihood(point)
    tables = density.network.observed.values()
    found = [v.conditional.log_density(point, v.rows) + base_measure(v) for v in tables]
    return np.concatenate([np.zeros(0), *found])


def _drawn(variable: Variable, point: Beliefs, rng: np.random.Generator) -> Array:
    """Draw all rows of a table given a draw of their parents."""
    values = np.empty((variable.size, *_events(variable)))
    step = variable.conditional.chunk(variable.family.size)
    for start in range(0, variable.size, step):
        rows = np.arange(start, min(start + step, variable.size))
        natural = variable.conditional.to_child(point, rows)
        values[rows] = draw(family_of(variable, rows), natural, rng)
    return values


def _dims(model: Model, variable: Variable) -> list[Dim]:
    """Return the dims of the values of an observed variable; a dim's second use is `dim_2`."""
    found: list[Dim] = []
    for name, size in zip(variable.dims, variable.shape, strict=True):
        labels = model.labels.get(name)
        twice = any(dim.name == name for dim in found)
        kept = None if labels is None else list(labels)
        found.append(Dim(f"{name}_2" if twice else name, size, kept))
    return found


def _of_rows(model: Model, variable: Variable, values: Array) -> tuple[Sequence[Dim], Array]:
    """Return a number for each draw and row, along one dim where some rows are missing."""
    dims = _dims(model, variable)[: len(variable.plate.shape)]
    if variable.count == variable.size:
        return dims, values.reshape(len(values), *variable.plate.shape)
    return [Dim(f"{variable.name}_observed", variable.count, variable.rows.tolist())], values
