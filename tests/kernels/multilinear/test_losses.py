"""Losses that the last update of a mean computes: the bound that follows is the plain one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.engine import step
from svmp.inference.program.program import Program
from svmp.inference.starts.start import start
from svmp.inference.state.state import State
from svmp.kernels.machine.threads import use_threads
from svmp.network.network import Network

USERS, ITEMS = 6, 9
BIASED = (
    "biases",
    "level last",
    "missing",
    "coefficients",
    "vectors and biases",
    "two products",
)


def declare(kind: str, dtype: Any = np.float64, rows: int = 150) -> svmp.Model:
    """Declare a factorization of one kind, or a network with another mean."""
    rng = np.random.default_rng(1)
    user, item = rng.integers(USERS, size=rows), rng.integers(ITEMS, size=rows)
    values = rng.normal(2.5, 1.0, rows)
    missing = np.arange(rows) % 7 == 0 if kind == "missing" else False
    k = {"wide": 20, "one factor": 1}.get(kind, 3)
    with svmp.Model(coords={"user": USERS, "item": ITEMS, "k": k, "l": 2}) as model:
        tau: Any = 1.7
        if kind in ("biases", "level last", "vectors and biases", "missing"):
            tau = svmp.Gamma("tau", alpha=2, beta=1)
        elif kind == "noise by item":
            tau = svmp.Gamma("tau", alpha=2, beta=1, dims="item")[item]
        elif kind in ("noise by user", "vectors, noise by user"):
            tau = svmp.Gamma("tau", alpha=2, beta=1, dims="user")[user]
        a = svmp.Normal("a", mu=0, tau=1, dims="user")[user]
        b = svmp.Normal("b", mu=0, tau=2, dims="item")[item]
        before = svmp.Normal("before", mu=0, tau=1)
        if kind.startswith("vectors"):
            eye = np.eye(k)
            u = svmp.MvNormal("u", mu=np.zeros(k), tau=eye, dims=("user", "k"))[user]
            v = svmp.MvNormal("v", mu=np.zeros(k), tau=eye, dims=("item", "k"))[item]
        else:
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "k"))[user]
            v = svmp.Normal("v", mu=0, tau=1, dims=("item", "k"))[item]
        level = svmp.Normal("level", mu=0, tau=1) if kind == "level last" else before
        mu = svmp.dot(u, v)
        if kind == "three":
            w = svmp.Normal("w", mu=1, tau=1, dims=("user", "k"))[rng.integers(USERS, size=rows)]
            mu = svmp.dot(u, v, w)
        if kind in BIASED:
            mu = mu + level + a + b * (rng.normal(size=rows) if kind == "coefficients" else 1)
        if kind == "two products":
            x = svmp.Normal("x", mu=0, tau=1, dims=("user", "l"))[user]
            y = svmp.Normal("y", mu=0, tau=1, dims=("item", "l"))[item]
            mu = mu + svmp.dot(x, y)
        svmp.Normal("r", mu=mu, tau=tau, observed=values.astype(dtype), missing=missing)
    return model


FEW = ["plain", "missing", "noise by user", "vectors"]
MORE = ["wide", "one factor", "three", *(k for k in BIASED if k != "missing"), "noise by item"]
KINDS = [
    *FEW,
    *(pytest.param(k, marks=pytest.mark.slow) for k in (*MORE, "vectors, noise by user")),
]


def run(model: svmp.Model, method: Any, measured: bool, sweeps: int = 4) -> tuple[Program, State]:
    """Run some iterations by compiled loops."""
    network = Network(model)
    program = Program.of(network, method)
    state = State(program.attach(start(network, 3)))
    for _ in range(sweeps):
        state, _ = step(program, state, measured)
    return program, state


@pytest.mark.parametrize("method", [svmp.FullVB(), svmp.Growing(first=1)], ids=["full", "relaxed"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_from_the_last_update_is_exact(kind: str, method: Any) -> None:
    program, state = run(declare(kind), method, measured=True)
    assert state.q.known_losses("r") is not None
    exact = program.network.bound(state.q)
    for name, term in program.bound(state.q).items():
        assert term == pytest.approx(exact[name], rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(
    "kind", ["biases", pytest.param("vectors and biases", marks=pytest.mark.slow)]
)
def test_rows_in_single_precision_have_losses_in_double(kind: str) -> None:
    program, state = run(declare(kind, np.float32, 4000), svmp.FullVB(), measured=True)
    assert program.setup.loops["r"].precision is np.float32
    exact = sum(program.network.bound(state.q).values())
    assert sum(program.bound(state.q).values()) == pytest.approx(exact, rel=1e-9)


def test_rows_of_long_keys_are_added_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("multilinear", "vectors"):
        monkeypatch.setattr(f"svmp.kernels.{module}.updater.LONG", -1)
    for kind in ("biases", "vectors"):
        model = declare(kind)
        for order in (["v", "u"], ["u", "v"]):
            names = [n for n in Network(model).hidden if n not in ("u", "v")]
            program, state = run(model, svmp.FullVB(order=[*names, *order]), measured=True)
            exact = sum(program.network.bound(state.q).values())
            assert sum(program.bound(state.q).values()) == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize(
    "kind", ["biases", *(pytest.param(k, marks=pytest.mark.slow) for k in ("wide", "vectors"))]
)
def test_q_does_not_depend_on_whether_losses_are_asked_for(kind: str) -> None:
    found = []
    for threads, measured in ((1, False), (1, True), (2, True)):
        with use_threads(threads, tell=False):
            program, state = run(declare(kind, np.float32), svmp.Growing(first=1), measured)
            found.append((state.q.natural, program.bound(state.q)))
    assert all(np.array_equal(a, found[1][0][n]) for n, a in found[0][0].items())
    assert all(np.array_equal(a, found[2][0][n]) for n, a in found[1][0].items())
    assert found[1][1] == found[2][1]


def test_losses_hold_until_a_variable_of_the_mean_changes() -> None:
    program, state = run(declare("biases"), svmp.FullVB(), measured=True)
    q, network = state.q, program.network
    network.move(q, "tau", np.zeros(1, dtype=np.int64), q.natural["tau"] * 1.5)
    assert q.known_losses("r") is not None
    exact = sum(network.bound(q).values())
    assert sum(program.bound(q).values()) == pytest.approx(exact, rel=1e-11)
    network.move(q, "a", np.arange(USERS), q.natural["a"] * 1.5)
    assert q.known_losses("r") is None
    exact = sum(network.bound(q).values())
    assert sum(program.bound(q).values()) == pytest.approx(exact, rel=1e-11)


def test_weights_of_losses_are_those_of_the_noise_at_the_time() -> None:
    program, state = run(declare("noise by user"), svmp.FullVB(), measured=True)
    q, network = state.q, program.network
    network.move(q, "tau", np.arange(USERS), q.natural["tau"] * 1.5)
    exact = sum(network.bound(q).values())
    assert sum(program.bound(q).values()) == pytest.approx(exact, rel=1e-11)
    model = declare("noise by user")
    order = list(reversed(Network(model).hidden))  # the noise is first or last
    program, state = run(model, svmp.FullVB(order=order), measured=True)
    exact = sum(program.network.bound(state.q).values())
    assert sum(program.bound(state.q).values()) == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize(
    "method",
    [
        svmp.Growing(first=0.3),
        pytest.param(svmp.Children(2), marks=pytest.mark.slow),
        svmp.Batch(40),
    ],
)
def test_samples_of_rows_have_no_losses_of_all_rows(method: Any) -> None:
    program, state = run(declare("biases"), method, measured=True, sweeps=1)
    assert state.q.known_losses("r") is None
    exact = sum(program.network.bound(state.q).values())
    assert sum(program.bound(state.q).values()) == pytest.approx(exact, rel=1e-11)


def test_new_values_of_the_rows_make_losses_void() -> None:
    program, state = run(declare("plain"), svmp.FullVB(), measured=True)
    before = sum(program.bound(state.q).values())
    program.setup.loops["r"].reread()
    assert program.setup.loops["r"].known_losses(state.q) is None
    assert sum(program.bound(state.q).values()) == pytest.approx(before, rel=1e-11)
