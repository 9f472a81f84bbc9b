"""Terms of entries of one vector that are joined, against lists of entries and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.network.means import entry_terms
from svmp.network.network import Network
from tests.network.tools import anywhere, bound, optimum

A, B, GROUPS, SIZE = 5, 6, 3, 3
RNG = np.random.default_rng(0)
KEY, OTHER = RNG.integers(GROUPS, size=(2, A, B))
X, Z = RNG.normal(size=(A, B)), svmp.data(RNG.normal(size=B), dims="b")
LINE = svmp.data(RNG.normal(size=A), dims="a")

CASES: dict[str, tuple[Any, int]] = {
    # mean of vectors w by group, a vector u, and Normals v by group; and its terms when joined
    "a line by group": (lambda w, u, v: w[KEY, 0] + w[KEY, 1] * X, 1),
    "numbers that do not vary": (lambda w, u, v: 2 * w[KEY, 0] - w[KEY, 2], 1),
    "numbers along other axes": (lambda w, u, v: w[KEY, 0] * LINE + 3 * w[KEY, 1] * Z * X, 1),
    "the same entry twice": (lambda w, u, v: w[KEY, 1] * X + w[KEY, 1] * Z + w[KEY, 0], 1),
    "two vectors": (lambda w, u, v: w[KEY, 0] + u[0] * X + w[KEY, 1] * Z + u[2] + v[KEY], 3),
    "by an axis": (lambda w, u, v: w[svmp.data(KEY[0], dims="b"), 0] + w[KEY, 1], 2),
    "other elements": (lambda w, u, v: w[KEY, 0] + w[OTHER, 1], 2),
    "times a Normal": (lambda w, u, v: w[KEY, 0] + w[KEY, 1] * v[KEY], 2),
    "one entry": (lambda w, u, v: w[KEY, 0] + v[KEY], 2),
    "a key of entries": (lambda w, u, v: w[KEY, 0] + w[KEY, OTHER], 2),
}


def network(mean: Any) -> Network:
    with svmp.Model(coords={"a": A, "b": B, "g": GROUPS, "e": SIZE}) as model:
        w = svmp.MvNormal("w", mu=0, tau=np.eye(SIZE), dims=("g", "e"))
        u = svmp.MvNormal("u", mu=0, tau=np.eye(SIZE), dims="e")
        v = svmp.Normal("v", mu=0, tau=1, dims="g")
        y = np.random.default_rng(1).normal(size=(A, B))
        svmp.Normal("y", mu=mean(w, u, v), tau=2.0, dims=("a", "b"), observed=y)
    return Network(model)


@pytest.mark.parametrize("case", CASES)
def test_joined_terms_are_those_of_their_entries(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mean, count = CASES[case]
    ours = network(mean)
    assert len(ours.observed["y"].conditional.linear.terms) == count
    monkeypatch.setattr("svmp.network.binding.joined", tuple)
    entries = network(mean)
    q = anywhere(ours, 2)
    assert bound(ours, q) == pytest.approx(bound(entries, q), rel=1e-12)
    for name in ours.hidden:
        one, other = optimum(ours, q, name), optimum(entries, q, name)
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("most", "count"), [(A * B * SIZE, 1), (A * B * SIZE - 1, 2)])
def test_matrices_that_are_kept_are_bounded(
    most: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_terms, "KEPT", most)
    ours = network(CASES["a line by group"][0])
    assert len(ours.observed["y"].conditional.linear.terms) == count


def test_vectors_of_which_few_entries_are_read_stay_apart() -> None:
    with svmp.Model(coords={"e": 9}) as model:
        w = svmp.MvNormal("w", mu=0, tau=np.eye(9), dims="e")
        svmp.Normal("y", mu=w[0] + w[1] * X[0], tau=1, observed=X[1])
    assert len(Network(model).observed["y"].conditional.linear.terms) == 2


def test_posterior_of_a_line() -> None:
    x, y = RNG.normal(size=(2, 40))
    with svmp.Model(coords={"e": 2}) as model:
        w = svmp.MvNormal("w", mu=0, tau=np.eye(2), dims="e")
        svmp.Normal("y", mu=w[0] + w[1] * x, tau=2.0, observed=y)
    fit = svmp.fit(model, svmp.FullVB())
    design = np.stack([np.ones(40), x], axis=1)
    precision = np.eye(2) + 2 * design.T @ design
    np.testing.assert_allclose(fit["w"].mean, np.linalg.solve(precision, 2 * design.T @ y))
    np.testing.assert_allclose(fit["w"].cov, np.linalg.inv(precision))


def test_rows_whose_keys_happen_to_agree_are_predicted() -> None:
    """Terms that were apart in the fit may be joined in the rows that are predicted."""

    def model(keys: Any, others: Any, y: Any, missing: bool) -> svmp.Model:
        with svmp.Model(coords={"g": GROUPS, "e": 2}) as declared:
            w = svmp.MvNormal("w", mu=0, tau=np.eye(2), dims=("g", "e"))
            mean = w[keys, 0] + w[others, 1]
            svmp.Normal("y", mu=mean, tau=1.0, observed=y, missing=missing)
        return declared

    fit = svmp.fit(model(KEY[0], OTHER[0], X[0], False), svmp.FullVB())
    new = model(KEY[1], KEY[1], np.full(B, np.nan), True)
    assert len(new["y"].conditional.linear.terms) == 1
    mean = np.asarray(fit["w"].mean)[KEY[1]].sum(axis=1)
    np.testing.assert_allclose(fit.predict(new, "y").mean, mean)
