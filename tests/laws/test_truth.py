"""The exact answers that laws compare with, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, gammaln

from .spec import At, Column, Decl, Mul, Number, Ref, Spec, Values
from .truth import truth


def spec(sizes: dict[str, int], arrays: dict[str, Column], *declarations: Decl) -> Spec:
    return Spec(sizes, arrays, declarations)


def decl(kind: str, name: str, dims: tuple[str, ...], observed: str | None = None, **given: object):
    more = {k: given.pop(k) for k in ("component", "columns") if k in given}
    return Decl(kind, name, dims, tuple(given.items()), observed, **more)  # type: ignore[arg-type]


def test_coins_by_group() -> None:
    x, key = np.array([1, 1, 0, 1]), np.array([0, 1, 1, 0])
    network = spec(
        {"row": 4, "g": 2},
        {"x_": Column(x, ("row",)), "key": Column(key, ("row",), "g")},
        decl("Beta", "p", ("g",), alpha=Number(2.0), beta=Number(0.5)),
        decl("Bernoulli", "x", ("row",), "x_", p=At("p", ("key",))),
    )
    heads = np.bincount(key, x)
    tails = np.bincount(key, 1 - x)
    found = truth(network)
    assert found is not None
    expected = (betaln(2 + heads, 0.5 + tails) - betaln(2, 0.5)).sum()
    assert found.log_evidence == pytest.approx(expected, abs=1e-8)
    np.testing.assert_allclose(found.mean["p"], (2 + heads) / (2.5 + heads + tails), rtol=1e-7)


def test_a_rate() -> None:
    x = np.array([3, 0, 5])
    network = spec(
        {"row": 3},
        {"x_": Column(x, ("row",))},
        decl("Gamma", "g", (), alpha=Number(0.5), beta=Number(0.1)),
        decl("Poisson", "x", ("row",), "x_", mu=Mul((Number(2.0), Ref("g")))),
    )
    a, b = 0.5 + x.sum(), 0.1 + 2 * len(x)
    expected = 0.5 * np.log(0.1) - gammaln(0.5) + gammaln(a) - a * np.log(b)
    expected += (x * np.log(2) - gammaln(x + 1)).sum()
    found = truth(network)
    assert found is not None
    assert found.log_evidence == pytest.approx(expected, abs=1e-8)
    assert found.var["g"] == pytest.approx(a / b**2, rel=1e-7)


def test_a_student() -> None:
    """A Normal with a Gamma precision is a Student's t."""
    network = spec(
        {"row": 1},
        {"x_": Column(np.array([1.7]), ("row",))},
        decl("Gamma", "g", (), alpha=Number(1.5), beta=Number(0.8)),
        decl("Normal", "x", ("row",), "x_", mu=Number(0.3), tau=Ref("g")),
    )
    found = truth(network)
    assert found is not None
    expected = stats.t(3.0, 0.3, np.sqrt(0.8 / 1.5)).logpdf(1.7)
    assert found.log_evidence == pytest.approx(expected, abs=1e-8)


def test_a_random_walk_of_two_sequences() -> None:
    """A random walk is a multivariate Normal with the covariance of sums of steps."""
    y, sequence = np.array([0.5, 1.0, -2.0, 0.7, 0.1]), np.array([0, 1, 0, 0, 1])
    network = spec(
        {"row": 5},
        {"y_": Column(y, ("row",)), "s": Column(sequence, ("row",))},
        decl(
            "GaussianRandomWalk", "x", ("row",), component="Normal", columns=(("sequence", "s"),),
            tau=Number(2.0), init_mu=Number(0.3), init_tau=Number(0.5),
        ),
        decl("Normal", "y", ("row",), "y_", mu=Ref("x"), tau=Number(4.0)),
    )  # fmt: skip
    expected, means = 0.0, np.zeros(5)
    for some in (np.array([0, 2, 3]), np.array([1, 4])):
        time = np.arange(len(some))
        prior = 2.0 + 0.5 * np.minimum.outer(time, time)
        noisy = prior + 0.25 * np.eye(len(some))
        expected += stats.multivariate_normal(np.full(len(some), 0.3), noisy).logpdf(y[some])
        means[some] = 0.3 + prior @ np.linalg.solve(noisy, y[some] - 0.3)
    found = truth(network)
    assert found is not None
    assert found.log_evidence == pytest.approx(expected, abs=1e-10)
    np.testing.assert_allclose(found.mean["x"], means, rtol=1e-10)


def test_a_hidden_markov_model() -> None:
    """The forward algorithm."""
    y = np.array([0.1, 2.2, 1.9, -0.3])
    init, P, c = np.array([0.3, 0.7]), np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0.0, 2.0])
    network = spec(
        {"row": 4, "state": 2, "state_": 2},
        {
            "y_": Column(y, ("row",)), "init": Column(init, ("state",)),
            "P": Column(P, ("state", "state_")), "c": Column(c, ("state",)),
        },
        decl("DiscreteMarkovChain", "z", ("row",), init=Values("init"), P=Values("P")),
        decl(
            "Mixture", "y", ("row",), "y_", component="Normal", z=Ref("z"), mu=Values("c"),
            tau=Number(1.5),
        ),
    )  # fmt: skip
    density = stats.norm(c, 1.5**-0.5).pdf(y[:, None])
    forward = init * density[0]
    for row in density[1:]:
        forward = forward @ P * row
    found = truth(network)
    assert found is not None
    assert found.log_evidence == pytest.approx(np.log(forward.sum()), abs=1e-12)
    np.testing.assert_allclose(found.mean["z"][-1], forward / forward.sum(), rtol=1e-12)
