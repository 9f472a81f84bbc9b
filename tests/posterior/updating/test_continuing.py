"""Updates with further rows of running sequences, against fits to all rows and longer models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp

RNG = np.random.default_rng(8)
INIT, MOVE = RNG.dirichlet(np.ones(3)), RNG.dirichlet(np.ones(3), (2, 3))
KEY = np.array(list("abababbacbcaadda"))
PIECES = [np.arange(0, 5), np.arange(5, 9), np.arange(9, 16)]
HOUR = RNG.integers(0, 2, len(KEY))
Y = RNG.normal(0.5, 2, len(KEY))
Y[[3, 4, 7, 13]] = np.nan  # at an end, at a beginning and within
STEP, U = RNG.uniform(0.5, 2, len(KEY)), RNG.normal(size=(len(KEY), 2))
A, B = np.array([[1.0, 0.4], [-0.3, 0.8]]), np.array([[0.5, 0.0], [0.1, -0.7]])


def states(rows: np.ndarray, key: Any = KEY) -> svmp.Model:
    """A chain of states whose parameters are known."""
    with svmp.Model(coords={"state": 3, "to": 3, "row": len(rows)}) as model:
        move = svmp.data(MOVE[HOUR[rows]], dims=("row", "state", "to"))
        first = svmp.data(INIT, dims="state")
        sequence = None if key is None else key[rows]
        z = svmp.DiscreteMarkovChain("z", first, move, sequence=sequence, dims="row")
        emission = svmp.Normal.dist(mu=svmp.data([-1.0, 0.5, 2.0], dims="state"), tau=1)
        svmp.Mixture("y", z, emission, dims="row", observed=Y[rows], missing=True)
    return model


def vectors(rows: np.ndarray, key: Any = KEY, step: Any = STEP) -> svmp.Model:
    """A chain of vectors whose parameters are known."""
    with svmp.Model(coords={"row": len(rows), "latent": 2}) as model:
        x = svmp.LinearGaussianChain(
            "x",
            init=svmp.Normal.dist(mu=[1.0, -1.0], tau=0.5),
            A=A,
            tau=[2.0, 1.0],
            B=B,
            u=U[rows],
            step=step[rows],
            sequence=None if key is None else key[rows],
            dims=("row", "latent"),
        )
        svmp.Normal("y", x[:, 0], 3.0, dims="row", observed=Y[rows], missing=True)
    return model


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("declare", [states, vectors])
@pytest.mark.parametrize("key", [KEY, None])
def test_updates_filter_as_one_fit_to_all_rows(
    declare: Any, kernels: bool, key: Any, tmp_path: Path
) -> None:
    whole = declare(np.arange(len(KEY)), key)
    one = svmp.fit(whole, svmp.FullVB(), kernels=kernels)
    filtered = one["z"].filtered() if declare is states else one.filtered(whole, "x")[:2]
    fit, bound = None, 0.0
    for rows in PIECES:
        model = declare(rows, key)
        if fit is None:
            fit = svmp.fit(model, svmp.FullVB(), kernels=kernels)
        else:
            fit.save(tmp_path / "fit.svmp")
            fit = svmp.load(tmp_path / "fit.svmp").update(model, svmp.FullVB(), kernels=kernels)
        bound += fit.bound
        if declare is states:
            np.testing.assert_allclose(fit["z"].filtered(), filtered[rows], atol=1e-11)
            continue
        fit.save(tmp_path / "fit.svmp")
        found = svmp.load(tmp_path / "fit.svmp").filtered(model, "x")
        np.testing.assert_allclose(found.mean, filtered[0][rows], atol=1e-11)
        np.testing.assert_allclose(found.cov, filtered[1][rows], atol=1e-11)
    assert bound == pytest.approx(one.bound, abs=1e-10)


@pytest.mark.parametrize("declare", [states, vectors])
def test_sequences_may_begin_anew(declare: Any) -> None:
    first, second = declare(PIECES[0]), declare(PIECES[1])
    name = "z" if declare is states else "x"
    fit, alone = svmp.fit(first), svmp.fit(second)
    with pytest.raises(svmp.ModelError, match="nothing in the new model was there earlier"):
        fit.update(second, new=["sequence"])
    with pytest.raises(svmp.ModelError, match="no dim of a hidden variable"):
        fit.update(second, new=["sequenc"])
    other = declare(PIECES[1], np.char.add(KEY, "2"))
    with pytest.raises(svmp.ModelError, match="nothing in the new model was there earlier"):
        fit.update(other)
    assert np.abs(fit.update(second).mean(name) - alone.mean(name)).max() > 0.01


def test_rows_with_labels_go_on_too() -> None:
    def walk(days: range) -> svmp.Model:
        with svmp.Model(coords={"day": days, "latent": 1}) as model:
            first = svmp.Normal.dist(0, 1)
            x = svmp.LinearGaussianChain("x", first, 1.0, 1.0, dims=("day", "latent"))
            svmp.Normal("y", x[:, 0], 2.0, dims="day", observed=STEP[days.start : days.stop])
        return model

    one = svmp.fit(walk(range(9)))
    after = svmp.fit(walk(range(5))).update(walk(range(5, 8))).update(walk(range(8, 9)))
    assert after.mean("x").shape == (9, 1)
    np.testing.assert_allclose(after.mean("x")[8], one.mean("x")[8], atol=1e-12)
    with pytest.raises(svmp.ModelError, match=r"has rows of the earlier fit.*new=\['day'\]"):
        after.update(walk(range(7, 9)))


def test_first_step_of_a_running_sequence_must_be_known() -> None:
    step = STEP.copy()
    step[5] = 0
    fit = svmp.fit(vectors(PIECES[0], step=step))  # the step to the first row of a new sequence
    with pytest.raises(svmp.ModelError, match=r"step of 'x' is 0 at row 0.*time since the last"):
        fit.update(vectors(PIECES[1], step=step))


# --- unknown parameters: the state before is one more row, whose density is known ----------------

T, EARLIER = 12, 7
LEVEL = np.cumsum(RNG.normal(size=T))
HOURS = RNG.integers(0, 2, T)


def hmm(rows: np.ndarray, a: Any = 1.0, first: Any = None, y: Any = None) -> svmp.Model:
    coords = {"state": 2, "to": 2, "hour": 2, "row": len(rows)}
    with svmp.Model(coords=coords) as model:
        start = svmp.Dirichlet("start", a=1, dims="state") if first is None else first
        move = svmp.Dirichlet("move", a=a, dims=("hour", "state", "to"))
        z = svmp.DiscreteMarkovChain("z", start, move[HOURS[rows]], dims="row")
        means = svmp.data([-1.0, 1.0], dims="state")
        y = LEVEL[rows] if y is None else y
        emission = svmp.Normal.dist(mu=means, tau=1)
        svmp.Mixture("y", z, emission, dims="row", observed=y, missing=True)
    return model


METHODS = [
    (svmp.FullVB(), None),
    (svmp.Children(10**6), svmp.Constant(1.0)),
    (svmp.Batch(1, over="sequence"), svmp.Constant(1.0)),
]


@pytest.mark.parametrize(("method", "steps"), METHODS)
def test_transition_into_the_first_new_row_teaches_P(method: Any, steps: Any) -> None:
    fit = svmp.fit(hmm(np.arange(EARLIER)), svmp.FullVB(), tol=1e-14)
    later = np.arange(EARLIER, T)
    after = fit.update(hmm(later), method, steps=steps, tol=1e-14, max_sweeps=300)
    rows, y = np.arange(EARLIER - 1, T), LEVEL[EARLIER - 1 :].copy()
    y[0] = np.nan
    longer = hmm(rows, fit["move"].a, svmp.data(fit.mean("z")[-1], dims="state"), y)
    truth = svmp.fit(longer, svmp.FullVB(), tol=1e-14, init={"move": fit["move"]})
    np.testing.assert_allclose(after["move"].a, truth["move"].a, atol=1e-5)
    np.testing.assert_allclose(after.mean("z"), truth.mean("z")[1:], atol=1e-6)
    np.testing.assert_array_equal(after["start"].a, fit["start"].a)
    assert after.bound == pytest.approx(truth.bound, abs=1e-8)
    assert (np.diff(after.trace["bound"][1:]) > -1e-9).all() or method is not METHODS[0][0]


def switching(rows: np.ndarray, given: Any = None, y: Any = None) -> svmp.Model:
    """Two dynamics of vectors with inputs; `given` has the posteriors that are its priors."""
    coords = {"state": 2, "to": 2, "row": len(rows), "latent": 2, "from": 2, "input": 1}
    with svmp.Model(coords=coords) as model:
        z_first: Any = [0.5, 0.5]
        first: Any = svmp.Normal.dist(0, 1)
        a, A, tau, mean = np.ones((2, 2)) + 3 * np.eye(2), (0.0, np.eye(2)), (2.0, 1.0), 0.0
        if given is not None:
            z_first, a = given.mean("z")[-1], given["move"].a
            x, p = given["x"].mu[-1], given["x"].tau[-1]
            first = svmp.MvNormal.dist(mu=svmp.data(x, dims="latent"), tau=p)
            A = given["A"].mu, given["A"].tau
            tau, mean = (given["tau"].alpha, given["tau"].beta), given["B"].mu
        move = svmp.Dirichlet("move", a=a, dims=("state", "to"))
        start = svmp.data(z_first, dims="state")
        z = svmp.DiscreteMarkovChain("z", start, move, dims="row")
        matrix = svmp.MvNormal("A", mu=A[0], tau=A[1], dims=("state", "latent", "from"))
        weight = given["B"].tau if given is not None else np.eye(1)
        push = svmp.MvNormal("B", mu=mean, tau=weight, dims=("latent", "input"))
        noise = svmp.Gamma("tau", *tau, dims=("state", "latent"))
        x = svmp.LinearGaussianChain(
            "x",
            init=first,
            A=matrix,
            tau=noise,
            B=push,
            u=LEVEL[rows],
            step=1 + HOURS[rows],
            switch=z,
            dims=("row", "latent"),
        )
        svmp.Normal("y", x[:, 0], 5.0, dims="row", observed=y, missing=True)
    return model


@pytest.mark.parametrize(("method", "steps"), METHODS)
def test_vectors_and_their_switch_go_on(method: Any, steps: Any) -> None:
    early, later = np.arange(EARLIER), np.arange(EARLIER, T)
    fit = svmp.fit(switching(early, y=LEVEL[early]), svmp.FullVB(), max_sweeps=20)
    begin = {name: fit[name] for name in ("move", "A", "B", "tau")}
    options = {"tol": 1e-14, "max_sweeps": 150, "init": begin}
    after = fit.update(switching(later, y=LEVEL[later]), method, steps=steps, **options)
    y = np.append(np.nan, LEVEL[later])
    longer = switching(np.append(EARLIER - 1, later), fit, y)
    truth = svmp.fit(longer, svmp.FullVB(), **options)
    assert after.bound == pytest.approx(truth.bound, abs=1e-6)
    for name in begin:
        np.testing.assert_allclose(after.mean(name), truth.mean(name), rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(after.mean("x"), truth.mean("x")[1:], atol=2e-4)
    np.testing.assert_allclose(after.mean("z"), truth.mean("z")[1:], atol=2e-4)
