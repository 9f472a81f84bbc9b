"""Several tables of emissions on one chain of states, against the sum over all paths."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import svmp

ROWS, STATES = 5, 2
FIRST, P = np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.2, 0.8]])
KINDS = ("Normal", "Normals", "Exponential", "Poisson", "Categorical")
PAIRS = list(combinations_with_replacement(KINDS, 2))


def emissions(kind: str, rng: np.random.Generator) -> tuple[Any, dict[str, Any], np.ndarray]:
    """Return a density with known parameters, what its table is given, and log p(y | state)."""
    here = svmp.data(np.array([0.5, 3.0]), dims="state")
    levels = np.array([0.5, 3.0])
    if kind == "Normal":
        y = np.where(rng.random(ROWS) < 0.3, np.nan, rng.normal(0, 2, ROWS))
        y[1] = 0.5
        logs = np.nan_to_num(stats.norm(levels, 1).logpdf(y[:, None]))
        return svmp.Normal.dist(here, 1.0), {"dims": "row", "observed": y, "missing": True}, logs
    if kind == "Normals":  # two sensors in a row of the chain
        y = rng.normal(0, 2, (ROWS, 2))
        logs = stats.norm(levels, 1).logpdf(y[:, :, None]).sum(axis=1)
        return svmp.Normal.dist(here, 1.0), {"dims": ("row", "sensor"), "observed": y}, logs
    if kind == "Exponential":
        y = rng.exponential(size=ROWS)
        logs = stats.expon(scale=1 / levels).logpdf(y[:, None])
        return svmp.Exponential.dist(here), {"dims": "row", "observed": y}, logs
    if kind == "Poisson":
        y = rng.poisson(2, ROWS)
        logs = stats.poisson(levels).logpmf(y[:, None])
        return svmp.Poisson.dist(here), {"dims": "row", "observed": y}, logs
    table, y = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), rng.integers(0, 3, ROWS)
    p = svmp.data(table, dims=("state", "word"))
    return svmp.Categorical.dist(p), {"dims": "row", "observed": y}, np.log(table[:, y]).T


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("kinds", PAIRS, ids=" ".join)
def test_known_emissions_give_the_evidence_of_all_paths(
    kinds: tuple[str, str], kernels: bool
) -> None:
    rng = np.random.default_rng(1)
    coords = {"state": STATES, "row": ROWS, "sensor": 2, "word": 3}
    logs = np.zeros((ROWS, STATES))
    with svmp.Model(coords=coords) as model:
        z = svmp.DiscreteMarkovChain("z", svmp.data(FIRST, dims="state"), P, dims="row")
        for number, kind in enumerate((*kinds, kinds[0])):
            density, table, found = emissions(kind, rng)
            svmp.Mixture(f"y{number}", z, density, **table)
            logs += found
    paths = np.array(list(product(range(STATES), repeat=ROWS)))
    each = np.log(FIRST)[paths[:, 0]] + logs[np.arange(ROWS), paths].sum(axis=1)
    each += np.log(P)[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    evidence = logsumexp(each)
    marginal = np.exp(each - evidence) @ paths.reshape(len(paths), -1)
    for method in (None, svmp.FullVB(), svmp.Batch(ROWS, over="row", length=1, tolerance=1e-12)):
        fit = svmp.fit(model, method, kernels=kernels)
        assert fit.bound == pytest.approx(evidence, abs=1e-9)
        np.testing.assert_allclose(fit.mean("z")[:, 1], marginal, atol=1e-9)


def test_learned_emissions_of_two_tables_are_those_of_one() -> None:
    """The same values in one table of two sensors, or in two tables that share the means."""
    rng = np.random.default_rng(2)
    y, coords = rng.normal(0, 3, (ROWS, 2)), {"state": STATES, "row": ROWS, "sensor": 2}
    bounds = []
    for tables in (1, 2):
        with svmp.Model(coords=coords) as model:
            z = svmp.DiscreteMarkovChain("z", svmp.data(FIRST, dims="state"), P, dims="row")
            mu = svmp.Normal("mu", mu=0, tau=0.1, dims="state")
            density = svmp.Normal.dist(mu, svmp.Gamma("tau", alpha=2, beta=2))
            if tables == 1:
                svmp.Mixture("y", z, density, dims=("row", "sensor"), observed=y)
            for k in range(2 if tables == 2 else 0):
                svmp.Mixture(f"y{k}", z, density, dims="row", observed=y[:, k])
        start = {"mu": np.array([-2.0, 2.0])}
        for kernels in (False, True):
            fit = svmp.fit(model, svmp.FullVB(), kernels=kernels, init=start, tol=1e-12)
            bounds.append(fit.bound)
    np.testing.assert_allclose(bounds, bounds[0], rtol=1e-9)


@pytest.mark.parametrize("kernels", [False, True])
def test_linear_response_reads_both_tables(kernels: bool) -> None:
    rng = np.random.default_rng(3)
    with svmp.Model(coords={"state": STATES, "row": 40}) as model:
        z = svmp.DiscreteMarkovChain("z", svmp.data(FIRST, dims="state"), P, dims="row")
        for name in ("y", "w"):
            rate = svmp.Gamma(f"rate {name}", alpha=2, beta=1, dims="state")
            density = svmp.Exponential.dist(rate)
            svmp.Mixture(name, z, density, dims="row", observed=rng.exponential(size=40))
    fit = svmp.fit(model, svmp.FullVB(), kernels=kernels, tol=1e-12)
    corrected = fit.corrected(model)
    for name in ("rate y", "rate w"):
        assert (corrected[name].std >= 0.999 * fit[name].std).all()
