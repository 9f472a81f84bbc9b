"""Special cases of a family agree with it; trials and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svmp import families
from svmp.families.family import Family
from tests.examples import natural_of


@pytest.mark.parametrize(
    ("general", "special", "general_standard", "special_standard"),
    [
        (
            families.MvNormal(1),
            families.Normal(),
            {"mu": [0.3], "tau": [[2.0]]},
            {"mu": 0.3, "tau": 2.0},
        ),
        (
            families.Wishart(1),
            families.Gamma(),
            {"nu": 5.0, "V": [[0.25]]},
            {"alpha": 2.5, "beta": 2.0},
        ),
        (
            families.Dirichlet(2),
            families.Beta(),
            {"a": [0.7, 3.0]},
            {"alpha": 0.7, "beta": 3.0},
        ),
        (families.Gamma(), families.Exponential(), {"alpha": 1.0, "beta": 3.0}, {"lam": 3.0}),
        (families.Binomial(1), families.Bernoulli(), {"p": 0.3}, {"p": 0.3}),
        (families.Multinomial(2, 6), families.Binomial(6), {"p": [0.3, 0.7]}, {"p": 0.3}),
        (families.Multinomial(3), families.Categorical(3), {"p": [0.2, 0.3, 0.5]}, None),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "size") else "",
)
def test_special_cases_agree(
    general: Family,
    special: Family,
    general_standard: dict[str, Any],
    special_standard: dict[str, Any] | None,
) -> None:
    wide = general.natural(**general_standard)
    narrow = special.natural(**(special_standard or general_standard))
    assert general.entropy(wide) == pytest.approx(float(special.entropy(narrow)), rel=1e-12)
    np.testing.assert_allclose(
        np.ravel(general.mean(wide))[: special.mean(narrow).size],
        np.ravel(special.mean(narrow)),
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        np.ravel(general.var(wide))[: special.var(narrow).size],
        np.ravel(special.var(narrow)),
        rtol=1e-12,
    )


def test_trials_are_broadcast_along_leading_axes() -> None:
    family = families.Binomial(trials=np.array([2, 5, 9]))
    natural = np.zeros((4, 3, 1))
    flat = family.at(np.arange(12)).mean(natural.reshape(12, 1))
    np.testing.assert_array_equal(flat, family.mean(natural).ravel())


def test_a_different_number_of_trials_is_refused() -> None:
    for family in (families.Binomial(3), families.Multinomial(2, 3)):
        with pytest.raises(ValueError, match="trials"):
            family.natural(n=4, p=[0.5, 0.5])


def test_matrices_that_are_not_positive_definite_do_not_affect_others() -> None:
    family = families.MvNormal(2)
    natural = natural_of(family, np.random.default_rng(0), 3)
    broken = natural.copy()
    broken[1, 2:] *= -1
    with np.errstate(invalid="ignore"):
        moments = family.moments(broken)
    np.testing.assert_allclose(moments[[0, 2]], family.moments(natural)[[0, 2]], rtol=1e-12)
    assert np.isnan(moments[1]).any()
