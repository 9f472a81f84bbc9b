"""svmp.dot of any number of operands is the sum of their products over the axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import svmp
from svmp.network.means.linear import LinearTerm
from svmp.network.network import Network

from ..tools import anywhere, bound, fitted, optimum

ROWS, K = 12, 3


def network(mean: Any, vectors: bool = False) -> Network:
    """Declare three factors, and rows whose mean is built from them."""
    rng = np.random.default_rng(0)
    keys = rng.integers(4, size=(3, ROWS))
    with svmp.Model(coords={"a": 4, "b": 4, "c": 4, "k": K, "row": ROWS}) as model:
        factors = []
        for name, dim in zip("uvw", "abc", strict=True):
            if vectors:
                x: Any = svmp.MvNormal(name, mu=0, tau=np.eye(K), dims=(dim, "k"))
            else:
                x = svmp.Normal(name, mu=0, tau=1, dims=(dim, "k"))
            factors.append(x)
        read = [x[key] for x, key in zip(factors, keys, strict=True)]
        svmp.Normal("y", mu=mean(*read), tau=2, dims="row", observed=rng.normal(size=ROWS))
    return Network(model)


RNG = np.random.default_rng(1)
WEIGHTS, DESIGN = RNG.normal(size=K), RNG.normal(size=(ROWS, K))
NAMED = svmp.data(DESIGN, dims=("row", "k"))
LINE = svmp.data(WEIGHTS, dims="k")

CASES: dict[str, tuple[Any, Any]] = {
    "three": (svmp.dot, lambda u, v, w: (u * v * w).sum("k")),
    "the axis by name": (
        lambda u, v, w: svmp.dot(u, v, w, dim="k"), lambda u, v, w: (u * v * w).sum("k"),
    ),
    "the axis last": (
        lambda u, v, w: svmp.dot(u, v, w, "k"), lambda u, v, w: (u * v * w).sum("k"),
    ),
    "an array first": (
        lambda u, v, w: svmp.dot(WEIGHTS, u, v), lambda u, v, w: (LINE * u * v).sum("k"),
    ),
    "an array in the middle": (
        lambda u, v, w: svmp.dot(u, DESIGN, v), lambda u, v, w: (u * NAMED * v).sum("k"),
    ),
    "two arrays": (
        lambda u, v, w: svmp.dot(u, DESIGN, WEIGHTS, w),
        lambda u, v, w: (u * NAMED * LINE * w).sum("k"),
    ),
    "named data": (
        lambda u, v, w: svmp.dot(NAMED, u, v, w), lambda u, v, w: (NAMED * u * v * w).sum("k"),
    ),
    "a sparse design": (
        lambda u, v, w: svmp.dot(sparse.csr_array(DESIGN), u, v),
        lambda u, v, w: (NAMED * u * v).sum("k"),
    ),
    "expressions": (
        lambda u, v, w: svmp.dot(u + 1, 2 * v, w), lambda u, v, w: ((u * v + v) * w * 2).sum("k"),
    ),
    "a number times it": (
        lambda u, v, w: 3 * svmp.dot(u, v, w) - 1, lambda u, v, w: 3 * (u * v * w).sum("k") - 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("vectors", [False, True], ids=["Normals", "MvNormals"])
@pytest.mark.parametrize("case", CASES)
def test_dot_is_the_sum_of_products(case: str, vectors: bool) -> None:
    ours, plain = (network(mean, vectors) for mean in CASES[case])
    q = anywhere(ours, 3)
    assert bound(ours, q) == pytest.approx(bound(plain, q), rel=1e-12)
    for name in "uvw":
        one, other = optimum(ours, q, name), optimum(plain, q, name)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def mixed(case: str) -> Network:
    """Declare products of vectors and Normals, whose entries form a grid."""
    rng = np.random.default_rng(6)
    keys = rng.integers(4, size=(3, ROWS))
    with svmp.Model(coords={"a": 4, "b": 4, "c": 4, "k": K, "row": ROWS}) as model:
        x = svmp.MvNormal("x", mu=0, tau=np.eye(K), dims=("a", "k"))
        w = svmp.Normal("w", mu=0.2, tau=1, dims=("k", "b") if case == "axis first" else ("b", "k"))
        m = svmp.Normal("m", mu=0, tau=1, dims="b")
        read = (w[:, keys[1]] if case == "axis first" else w[keys[1]]) * x[keys[0]]
        if case == "three":
            read = read * svmp.Normal("v", mu=0, tau=1, dims=("c", "k"))[keys[2]]
        elif case == "two vectors":
            read = read * svmp.MvNormal("v", mu=0, tau=np.eye(K), dims=("c", "k"))[keys[2]]
        elif case == "numbers":
            read = read * NAMED * LINE
        elif case == "the same vector in all rows":
            read = w[keys[1]] * svmp.MvNormal("z", mu=0, tau=np.eye(K), dims="k")
        mean = read.sum("k") + m[keys[1]]
        svmp.Normal("y", mu=mean, tau=2, dims="row", observed=rng.normal(size=ROWS))
    return Network(model)


@pytest.mark.parametrize(
    "case",
    ["pair", "three", "two vectors", "numbers", "axis first", "the same vector in all rows"],
)
def test_products_of_vectors_and_normals_are_those_of_their_entries(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matrices of (rows, inner indices) have the moments and messages of lists of entries."""
    network = mixed(case)
    assert network.observed["y"].conditional.linear.terms[0].regular is not None
    q, names = anywhere(network, 3), list(network.hidden)
    found = bound(network, q), [optimum(network, q, name) for name in names]
    monkeypatch.setattr(LinearTerm, "regular", None)
    entries = mixed(case)
    assert bound(entries, q) == pytest.approx(found[0], rel=1e-12)
    for name, expected in zip(names, found[1], strict=True):
        np.testing.assert_allclose(optimum(entries, q, name), expected, rtol=1e-9, atol=1e-10)


def test_expectations_of_a_tensor_factorization() -> None:
    """E[sum_k u_k v_k w_k] and its square, for factors that are independent."""
    net = network(svmp.dot)
    q = anywhere(net, 5)
    mean, second = np.ones((ROWS, K)), np.ones((ROWS, K))
    keys = np.random.default_rng(0).integers(4, size=(3, ROWS))
    for name, key in zip("uvw", keys, strict=True):
        moments = q.moments[name].reshape(4, K, 2)[key]
        mean, second = mean * moments[..., 0], second * moments[..., 1]
    square = mean.sum(axis=1) ** 2 + (second - mean**2).sum(axis=1)
    found = net.model["y"].conditional.slots["mu"].moments(q, np.arange(ROWS))
    np.testing.assert_allclose(found, np.stack([mean.sum(axis=1), square], axis=1), rtol=1e-10)


@pytest.mark.slow
def test_a_tensor_is_recovered() -> None:
    rng = np.random.default_rng(2)
    u, v, w = (rng.normal(size=(n, 2)) for n in (6, 5, 4))
    truth = np.einsum("ak,bk,ck->abc", u, v, w)
    with svmp.Model(coords={"a": 6, "b": 5, "c": 4, "k": 2}) as model:
        factors = [
            svmp.Normal(n, mu=0, tau=1, dims=(d, "k")) for n, d in zip("uvw", "abc", strict=True)
        ]
        svmp.Normal("y", mu=svmp.dot(*factors), tau=1e4, dims=("a", "b", "c"), observed=truth)
    fits = [fitted(model, seed=seed, max_sweeps=200, kernels=False) for seed in range(2)]
    best = max(fits, key=lambda fit: fit.bound)
    found = np.einsum("ak,bk,ck->abc", *(best.mean(name) for name in "uvw"))
    assert np.abs(found - truth).max() < 0.05


@pytest.mark.parametrize(
    ("operands", "says"),
    [
        (lambda u, s: (), "two operands"),
        (lambda u, s: (u,), "two operands"),
        (lambda u, s: (u, s, u), "dim="),
        (lambda u, s: (u, u, u, "k"), "twice"),
        (lambda u, s: (u, 2.0, s), "axis"),
        (lambda u, s: (u, None, s, "k"), "None"),
        (lambda u, s: (u, "k"), "'k'"),
    ],
)
def test_wrong_operands_are_refused(operands: Any, says: str) -> None:
    with svmp.Model(coords={"k": 2}):
        u = svmp.Normal("u", mu=0, tau=1, dims="k")
        s = svmp.Normal("s", mu=0, tau=1)
        with pytest.raises(svmp.ModelError, match=says):
            svmp.dot(*operands(u, s))
