"""Survival: closed forms given the ratio, Kaplan-Meier, and the hazards of the simulation."""

from __future__ import annotations

import numpy as np
import pytest

import svmp


@pytest.fixture(scope="module")
def study(script):
    time, event, treated = script.data()
    rows = script.table(time, event)
    fit = svmp.fit(script.model(*rows, treated), svmp.FullVB(), tol=1e-14)
    return time, event, treated, rows, fit


def test_rows_add_up_to_what_was_observed(study):
    time, event, _, (patient, _, months, events), _ = study
    np.testing.assert_allclose(np.bincount(patient, months), time)
    np.testing.assert_array_equal(np.bincount(patient, events), event)


def test_gammas_count_events_and_months(script, study):
    _, _, treated, (patient, period, months, events), fit = study
    ratio, hazard = fit["ratio"], fit["hazard"]
    factor = np.where(treated[patient] == 1, ratio.mean, 1)
    np.testing.assert_allclose(hazard.alpha, 1 + np.bincount(period, events), rtol=1e-10)
    np.testing.assert_allclose(hazard.beta, 10 + np.bincount(period, months * factor), rtol=1e-6)
    with_it = treated[patient] == 1
    assert ratio.alpha == pytest.approx(2 + events[with_it].sum())
    expected = (hazard.mean[period] * months)[with_it].sum()
    assert ratio.beta == pytest.approx(2 + expected, rel=1e-6)
    assert ratio.mean == pytest.approx(script.RATIO, rel=0.25)
    np.testing.assert_allclose(hazard.mean, script.HAZARD, rtol=0.4)


def test_curves_agree_with_kaplan_and_meier(script, study):
    time, event, treated, _, fit = study
    for side in (0, 1):
        here = treated == side
        times, share = script.kaplan_meier(time[here], event[here])
        curve = script.survival(fit, side, times[times < 24]).mean(0)
        assert np.abs(curve - share[: len(curve)]).max() < 0.06


def test_kaplan_meier_by_hand(script):
    """Events at 1 and 3, one patient censored at 2: (1 - 1/4), then (1 - 1/2)."""
    times, share = script.kaplan_meier(
        np.array([1.0, 2, 3, 4]), np.array([True, False, True, False])
    )
    np.testing.assert_array_equal(times, [1, 3])
    np.testing.assert_allclose(share, [0.75, 0.375])
