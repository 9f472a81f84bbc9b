"""Chains of states against the enumeration of all paths."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import psi

import svmp
from tests.network.enumeration import enumerate_paths

STATES = 3
RNG = np.random.default_rng(4)
INIT, MOVE = RNG.dirichlet(np.ones(STATES)), RNG.dirichlet(np.ones(STATES), STATES)
MEANS = np.array([-1.0, 0.5, 2.0])
LENGTHS = (5, 1, 3, 4)
NIGHT = np.repeat(["c", "a", "d", "b"], LENGTHS)
Y = RNG.normal(0.5, 2, len(NIGHT))


def model(
    y: Any = Y, night: Any = NIGHT, init: Any = INIT, move: Any = MOVE, **options: Any
) -> Any:
    """A hidden Markov model whose emissions are known."""
    with svmp.Model(coords={"state": STATES, "to": STATES, "row": len(y)}) as hmm:
        if init is None:
            init = svmp.Dirichlet("start", a=[1, 2, 1.5], dims="state")
        else:
            init = svmp.data(init, dims="state")
        if move is None:
            move = svmp.Dirichlet("move", a=[1, 0.7, 2], dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", init, move, sequence=night, dims="row", **options)
        means = svmp.data(MEANS, dims="state")
        emission = svmp.Normal.dist(mu=means, tau=1)
        svmp.Mixture("y", z, emission, dims="row", observed=y, missing=True)
    return hmm


def densities(y: np.ndarray) -> np.ndarray:
    found = stats.norm.logpdf(y[:, None], MEANS)
    return np.where(np.isnan(y)[:, None], 0.0, found)


def enumerated(y: np.ndarray, init: np.ndarray = INIT, move: np.ndarray = MOVE) -> Any:
    with np.errstate(divide="ignore"):
        return enumerate_paths(np.log(init), [np.log(move)] * len(y), densities(y))


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_known_parameters_give_the_posterior_and_the_evidence(kernels: bool, zeros: bool) -> None:
    move = np.array([[0.6, 0.4, 0], [0, 0.5, 0.5], [0.1, 0, 0.9]]) if zeros else MOVE
    init = np.array([1.0, 0, 0]) if zeros else INIT
    fit = svmp.fit(model(init=init, move=move), svmp.FullVB(), kernels=kernels)
    evidence = 0.0
    for night in np.unique(NIGHT):
        rows = np.flatnonzero(night == NIGHT)
        truth = enumerated(Y[rows], init, move)
        evidence += truth.log_evidence
        np.testing.assert_allclose(fit.mean("z")[rows], truth.marginals, atol=1e-12)
    assert fit.bound == pytest.approx(evidence, abs=1e-10)


def test_unknown_parameters_give_the_optimum_and_its_exact_bound() -> None:
    fit = svmp.fit(model(init=None, move=None), svmp.FullVB(), max_sweeps=1, tol=0)
    start, move = fit["start"].a, fit["move"].a
    prior, before = np.array([1, 2, 1.5]), np.tile([1, 0.7, 2], (STATES, 1))
    # z is updated first, at the start; both Dirichlets then hold its expected counts.
    assert (start - prior).sum() == pytest.approx(len(LENGTHS))
    assert (move - before).sum() == pytest.approx(len(Y) - len(LENGTHS))
    again = svmp.fit(model(init=None, move=None), svmp.FullVB(), tol=1e-13)
    initial = psi(again["start"].a) - psi(again["start"].a.sum())
    transition = psi(again["move"].a) - psi(again["move"].a.sum(axis=1, keepdims=True))
    first, counts, bound = np.zeros(STATES), np.zeros((STATES, STATES)), 0.0
    for night in np.unique(NIGHT):
        rows = np.flatnonzero(night == NIGHT)
        truth = enumerate_paths(initial, [transition] * len(rows), densities(Y[rows]))
        np.testing.assert_allclose(again.mean("z")[rows], truth.marginals, atol=1e-5)
        first, counts = first + truth.marginals[0], counts + truth.pairs.sum(axis=0)
        bound += truth.log_evidence
    np.testing.assert_allclose(again["start"].a, prior + first, atol=1e-5)
    np.testing.assert_allclose(again["move"].a, before + counts, atol=1e-5)
    for a, b in ((prior[None], again["start"].a[None]), (before, again["move"].a)):
        for p, q in zip(a, b, strict=True):
            bound -= dirichlet_divergence(q, p)
    assert again.bound == pytest.approx(bound, abs=1e-8)


def dirichlet_divergence(q: np.ndarray, p: np.ndarray) -> float:
    """KL(Dirichlet(q) || Dirichlet(p))."""
    from scipy.special import gammaln

    def log_partition(a: np.ndarray) -> float:
        return float(gammaln(a).sum() - gammaln(a.sum()))

    return log_partition(p) - log_partition(q) + float((q - p) @ (psi(q) - psi(q.sum())))


def test_order_of_the_table_does_not_matter() -> None:
    mixed = np.random.default_rng(0).permutation(len(Y))
    place = np.arange(len(Y))
    fit = svmp.fit(model())
    again = svmp.fit(model(Y[mixed], NIGHT[mixed], order=place[mixed]))
    assert again.bound == pytest.approx(fit.bound, abs=1e-11)
    np.testing.assert_allclose(again.mean("z"), fit.mean("z")[mixed], atol=1e-12)


def test_missing_observations_are_marginalised() -> None:
    y = Y.copy()
    y[[1, 4, 5, 6, 9, 12]] = np.nan  # in the middle, at ends, a whole sequence, at a beginning
    fit = svmp.fit(model(y), svmp.FullVB())
    evidence = 0.0
    for night in np.unique(NIGHT):
        rows = np.flatnonzero(night == NIGHT)
        truth = enumerated(y[rows])
        evidence += truth.log_evidence
        np.testing.assert_allclose(fit.mean("z")[rows], truth.marginals, atol=1e-12)
    assert fit.bound == pytest.approx(evidence, abs=1e-10)


def test_held_out_rows_score_what_they_add_to_the_evidence() -> None:
    y, held = Y.copy(), np.full(len(Y), np.nan)
    y[2], held[2] = np.nan, Y[2]
    fit = svmp.fit(model(y), svmp.FullVB(), held_out={"y": held})
    rows = np.flatnonzero(NIGHT[2] == NIGHT)
    added = enumerated(Y[rows]).log_evidence - enumerated(y[rows]).log_evidence
    assert fit.trace["held_out"][-1] == pytest.approx(added, abs=1e-10)


def test_rows_after_the_last_observation_change_nothing_that_is_learned() -> None:
    more = np.r_[Y, np.full(6, np.nan)]
    night = np.r_[NIGHT, np.repeat(["b", "e"], 3)]
    fit = svmp.fit(model(init=None, move=None), svmp.FullVB())
    again = svmp.fit(model(more, night, init=None, move=None), svmp.FullVB())
    np.testing.assert_allclose(again["move"].a, fit["move"].a, atol=1e-8)
    assert again.bound == pytest.approx(fit.bound, abs=1e-8)


BAD = {
    "row 2 has no sequence": ({"sequence": [0.0, 0, np.nan, 1, 1, 1]}, "missing at row 2"),
    "too short": ({"sequence": [0, 1]}, r"shape \(2,\) instead of \(6,\)"),
    "objects": ({"sequence": [object()] * 6}, "numbers, texts or times"),
    "same place": ({"order": [0, 1, 2, 2, 4, 5]}, "the same value at the rows 2 and 3"),
    "infinite place": ({"order": [0, 1, np.inf, 3, 4, 5]}, "'z' is inf at row 2, and not finite"),
    "row of zeros": ({"P": [[0, 0], [0.5, 0.5]]}, "add up to 1"),
    "not square": ({"P": [[0.5, 0.5]]}, "square matrix"),
    "other states": ({"init": [0.2, 0.3, 0.5]}, "each of the 2 states"),
    "own dim": ({"sequence_dim": "row"}, "the dimension of its rows"),
    "two dims": ({"dims": ("row", "state")}, "must have one dimension"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case: str) -> None:
    wrong, message = BAD[case]
    given: dict[str, Any] = {"init": [0.5, 0.5], "P": [[0.9, 0.1], [0.2, 0.8]], "dims": "row"}
    with svmp.Model(coords={"state": 2, "row": 6}), pytest.raises(svmp.ModelError, match=message):
        svmp.DiscreteMarkovChain("z", **(given | wrong))


def test_rows_are_ordered_by_times_of_python() -> None:
    """A column of pandas with a time zone is an array of such times."""
    hours = RNG.permutation(len(Y)) * 5
    times = [datetime(2024, 3, 29, tzinfo=UTC) + timedelta(hours=int(h)) for h in hours]
    days = [date(2024, 3, 1) + timedelta(days=int(h)) for h in hours]
    known = svmp.fit(model(order=hours), svmp.FullVB()).bound
    for column in (times, days, np.array(times)):
        assert svmp.fit(model(order=column), svmp.FullVB()).bound == known


def test_sequences_that_a_group_divides_are_refused() -> None:
    with svmp.Model(coords={"state": 2, "row": 4, "user": 2}) as hmm:
        z = svmp.DiscreteMarkovChain(
            "z", svmp.data([0.5, 0.5], dims="state"), np.full((2, 2), 0.5), dims="row"
        )
        mu = svmp.Normal("mu", mu=0, tau=1, dims=("user", "state"))
        emission = svmp.Normal.dist(mu=mu[[0, 0, 1, 1]], tau=1)
        svmp.Mixture("y", z, emission, dims="row", observed=[0.0, 1, 2, 3])
    with pytest.raises(svmp.ModelError, match="follow each other"):
        svmp.fit(hmm, svmp.Batch(1, over="user"))
