"""Early stopping: when biases end, when factors are dropped, and how many sweeps are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from svmp.inference.running.stopping import Interrupt
from svmp.recommend.learn import VectorSearch
from svmp.recommend.network import FIRM, LOOSE
from svmp.recommend.stages import FIRST, HASTY, Search, Stage, ends, search_best

STAGES = ("first", "patient", "trial", "limit")


@dataclass
class Counter:
    """A run that only counts its sweeps."""

    factors: int
    iteration: int = 0

    @property
    def posteriors(self) -> dict[str, Any]:
        return {}

    def copy(self) -> Counter:
        return Counter(self.factors, self.iteration)


class Curves(Search[Counter]):
    """A search whose errors are given functions of the number of sweeps."""

    biases = 40
    tol = 1e-5
    progress = False

    def __init__(self, biases: Callable[[int], float], factors: Callable[[int], float]) -> None:
        super().__init__()
        self.curves = biases, factors
        self.sweeps = 0

    def begin(self, factors: int, init: Any) -> Counter:
        return Counter(factors)

    def sweep(
        self, run: Counter, factors: int, weight: float, sweeps: int, interrupt: Interrupt
    ) -> Stage:
        run.iteration += sweeps
        self.sweeps += sweeps
        error = self.curves[bool(factors)](run.iteration)
        return Stage({}, factors, weight, np.full(100, error))

    def kept(self, stage: Stage) -> Stage:
        return stage


def searched(search: Curves, factors: int, most: int) -> tuple[Stage, int]:
    return search_best(search, factors, {}, most, Interrupt())


def test_biases_that_have_converged_make_way_for_factors() -> None:
    search = Curves(lambda t: 1.0, lambda t: 0.9 - 1e-3 * min(t, 30))
    best, sweeps = searched(search, 5, 100)
    assert best.factors == 5
    assert sweeps == search.sweeps <= 100
    assert [r.sweeps for r in search.records if not r.factors] == [FIRST, HASTY]


def test_biases_go_on_while_they_improve() -> None:
    search = Curves(lambda t: 1.0 - 1e-2 * min(t, 20), lambda t: 0.5)
    searched(search, 5, 150)
    assert max(r.sweeps for r in search.records if not r.factors) >= 20


def test_dropped_factors_return_to_the_biases() -> None:
    search = Curves(lambda t: 1.0 + 1e-3 / t, lambda t: 1.5)
    best, sweeps = searched(search, 5, 120)
    assert best.factors == 0
    assert sweeps == search.sweeps <= 120
    kinds = [bool(r.factors) for r in search.records]
    assert kinds[0] is kinds[-1] is False
    assert any(kinds)
    assert best.error == min(r.rmse for r in search.records) ** 2


class Vectors(Curves):
    """The stages of a search with covariances."""

    first, patient, trial, limit = (getattr(VectorSearch, x) for x in STAGES)


def test_factors_that_have_not_moved_in_the_first_sweep_are_kept() -> None:
    search = Vectors(lambda t: 1.0, lambda t: 1.2 if t == 1 else 0.5)
    best, sweeps = searched(search, 5, 100)
    assert best.factors == 5
    assert sweeps == search.sweeps
    weights = [r.weight for r in search.records if r.factors]
    assert weights[:4] == [FIRM, FIRM, FIRM, LOOSE]


class Loose(Vectors):
    """Noisy errors that differ between the priors by much less than their standard error."""

    def __init__(self, loose: float) -> None:
        super().__init__(lambda t: 1.0, lambda t: 0.0)
        self.loose = loose

    def sweep(
        self, run: Counter, factors: int, weight: float, sweeps: int, interrupt: Interrupt
    ) -> Stage:
        stage = super().sweep(run, factors, weight, sweeps, interrupt)
        noise = np.random.default_rng([factors, weight == LOOSE]).standard_normal(100)
        errors = noise / np.sqrt(np.mean(noise**2))
        error = 1.0 if not factors else self.loose if weight == LOOSE else 0.5
        return stage._replace(errors=error * errors)


@pytest.mark.parametrize(("loose", "kept"), [(0.4999, LOOSE), (0.5001, FIRM)])
def test_the_prior_with_the_lower_error_is_kept(loose: float, kept: float) -> None:
    search = Loose(loose)
    best, sweeps = searched(search, 5, 100)
    assert (best.factors, best.weight) == (5, kept)
    assert sweeps == search.sweeps
    weights = [r.weight for r in search.records if r.factors]
    assert set(weights[weights.index(LOOSE) + 1 :]) == {kept}


class Overfitting(Vectors):
    """Errors that fall at first, and rise from the third sweep on under the firm prior."""

    def __init__(self, loose: float) -> None:
        super().__init__(lambda t: 1.0, lambda t: 0.0)
        self.loose = loose

    def sweep(
        self, run: Counter, factors: int, weight: float, sweeps: int, interrupt: Interrupt
    ) -> Stage:
        stage = super().sweep(run, factors, weight, sweeps, interrupt)
        t = run.iteration
        error = 1.0 if not factors else 0.9**t if t <= 3 else 1.0 if weight == FIRM else self.loose
        return stage._replace(errors=np.full(100, error))


def test_factors_that_overfit_go_on_with_a_loose_prior() -> None:
    search = Overfitting(0.5)
    best, sweeps = searched(search, 5, 100)
    assert (best.factors, best.weight, best.error) == (5, LOOSE, 0.25)
    assert sweeps == search.sweeps


def test_factors_that_overfit_with_both_priors_end_at_their_best() -> None:
    search = Overfitting(1.0)
    best, _ = searched(search, 5, 100)
    assert best.weight == FIRM
    assert best.error == pytest.approx(min(r.rmse for r in search.records) ** 2)
    assert max(r.sweeps for r in search.records) < VectorSearch.limit


def test_sweeps_with_covariances_are_limited() -> None:
    search = Vectors(lambda t: 1.0, lambda t: 0.9**t)
    searched(search, 5, 100)
    assert sum(r.factors > 0 for r in search.records)
    assert max(r.sweeps for r in search.records if r.factors) <= VectorSearch.limit


def test_without_factors_biases_are_fitted_to_the_end() -> None:
    search = Curves(lambda t: 1.0, lambda t: 0.0)
    best, sweeps = searched(search, 0, 150)
    assert best.factors == 0
    assert sweeps == search.sweeps >= 40


def test_the_number_of_sweeps_is_limited() -> None:
    for most in range(1, 40):
        search = Curves(lambda t: 2.0 / t, lambda t: 1.0 / t)
        _, sweeps = searched(search, 3, most)
        assert sweeps == search.sweeps <= most


def test_records_are_in_order_of_time() -> None:
    search = Curves(lambda t: 1.0 / t, lambda t: 0.5 / t)
    searched(search, 2, 30)
    seconds = [r.seconds for r in search.records]
    assert seconds == sorted(seconds)
    assert ends(30)[-1] == 30
