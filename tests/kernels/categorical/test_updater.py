"""Local Categoricals that are not stored against plain code, which stores them.

Both have the same q of everything else after any number of iterations. Once the stored locals are
optimised, both have the same q of the locals too, and the same bound. Tolerance: 1e-9 of the
largest entry of an element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax

import svmp
from svmp.inference.updaters import groups
from svmp.kernels.machine import threads
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network
from svmp.posterior.marginals.posterior import Posteriors
from tests.inference.tools import advance, assert_same, gallery
from tests.network.tools import anywhere, bound, copy, elements_of, optimum
from tests.programs import iterate, unstore

TOLERANCE = 1e-9


@st.composite
def topics(draw: Callable[..., Any]) -> svmp.Model:
    """Topic models with empty documents, one token, one long document and missing words."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    documents, words, k = (draw(st.integers(1, n)) for n in (5, 12, 6))
    tokens = draw(st.sampled_from([1, 2, 9, 300]))
    shape = draw(st.sampled_from(["even", "one long", "many empty"]))
    document = rng.integers(documents, size=tokens)
    if shape == "one long":
        document[: tokens - tokens // 50] = documents - 1
    elif shape == "many empty":
        documents += 20
    word = rng.integers(words, size=tokens)
    missing: Any = False
    if draw(st.booleans()) and tokens > 1:
        missing = rng.random(tokens) < 0.3
        missing[0] = False
    weights = draw(st.sampled_from(["by document", "shared", "known", "known by document"]))
    known = draw(st.booleans())
    coords = {"document": documents, "topic": k, "word": words, "token": tokens}
    with svmp.Model(coords=coords) as model:
        theta: Any
        if weights == "by document":
            theta = svmp.Dirichlet("theta", a=0.2, dims=("document", "topic"))[document]
        elif weights == "shared":
            theta = svmp.Dirichlet("theta", a=0.2, dims="topic")
        elif weights == "known":
            theta = svmp.data(np.full(k, 1 / k), dims="topic")
        else:
            p = rng.dirichlet(np.ones(k), documents)
            theta = svmp.data(p[document], dims=("token", "topic"))
        phi: Any
        if known:
            phi = svmp.data(rng.dirichlet(np.ones(words), k), dims=("topic", "word"))
        else:
            phi = svmp.Dirichlet("phi", a=0.1, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta, dims="token")
        svmp.Mixture(
            "w", z, svmp.Categorical.dist(p=phi), dims="token", observed=word, missing=missing
        )
    return model


@st.composite
def normals(draw: Callable[..., Any]) -> svmp.Model:
    """Mixtures of Normals: one or several numbers a row, vectors, far from 0, in many blocks."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, d = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rows = draw(st.sampled_from([1, 2, 130, 2100]))
    x = rng.normal(size=(rows, d)) + 3 * rng.integers(k, size=(rows, 1))
    kind = draw(st.sampled_from(["number", "numbers", "vector", "diagonal", "multiple", "known"]))
    x += draw(st.sampled_from([0.0, 1000.0])) if kind == "numbers" else 0.0
    with svmp.Model(coords={"row": rows, "component": k, "axis": d}) as model:
        w: Any = svmp.data(np.full(k, 1 / k), dims="component")
        if draw(st.booleans()):
            w = svmp.Dirichlet("w", a=0.5, dims="component")
        z = svmp.Categorical("z", p=w, dims="row")
        both = ("component", "axis")
        if kind in ("number", "numbers"):
            dims = both if kind == "numbers" else ("component",)
            mu = svmp.Normal("mu", mu=svmp.Normal("m", mu=0, tau=1), tau=0.1, dims=dims)
            mean: Any = mu + svmp.Normal("b", mu=0, tau=1) if draw(st.booleans()) else mu
            tau = 2 * svmp.Gamma("tau", alpha=2, beta=1, dims=dims)
            component = svmp.Normal.dist(mu=mean, tau=tau)
            x, dims = (x, ("row", "axis")) if kind == "numbers" else (x[:, 0], ("row",))
        else:
            vector = svmp.MvNormal("mu", mu=0, tau=np.eye(d), dims=both)
            tau = np.eye(d)
            if kind == "diagonal":
                tau = svmp.diag(svmp.Gamma("g", alpha=2, beta=1, dims=both))
            elif kind != "known":
                tau = svmp.Wishart("L", nu=d + 1, V=np.eye(d), dims=("component", "axis", "axis"))
                tau = svmp.Gamma("g", alpha=2, beta=1) * tau if kind == "multiple" else tau
            component, dims = svmp.MvNormal.dist(mu=vector, tau=tau), ("row", "axis")
        svmp.Mixture("x", z, component, dims=dims, observed=x)
    return model


def component_of(family: str, dims: tuple[str, ...], known: bool) -> Any:
    """Declare a component of a family, its parameter known or hidden."""
    rng = np.random.default_rng(0)
    if family in ("Bernoulli", "Binomial"):
        p: Any = svmp.Beta("p", alpha=1, beta=2, dims=dims)
        p = svmp.data(np.array([0.2, 0.7]), dims="component") if known else p
        return svmp.Bernoulli.dist(p=p) if family == "Bernoulli" else svmp.Binomial.dist(n=7, p=p)
    if family in ("Categorical", "Multinomial"):
        p = svmp.Dirichlet("p", a=0.5, dims=(*dims, "category"))
        if known:
            p = svmp.data(rng.dirichlet(np.ones(3), 2), dims=("component", "category"))
        more = {"n": 7} if family == "Multinomial" else {}
        return getattr(svmp, family).dist(**more, p=p)
    rate = svmp.Gamma("rate", alpha=1, beta=1, dims=dims)
    if known:  # times one for all components
        rate = svmp.data(np.array([0.5, 2.0]), dims="component") * svmp.Gamma("g", 2, 1)
    if family == "Gamma":
        return svmp.Gamma.dist(alpha=2.5, beta=rate)
    return svmp.Poisson.dist(rate) if family == "Poisson" else svmp.Exponential.dist(rate)


DRAWS: dict[str, Callable[..., Any]] = {
    "Bernoulli": lambda rng, n: rng.integers(2, size=n),
    "Binomial": lambda rng, n: rng.integers(8, size=n),
    "Categorical": lambda rng, n: rng.integers(3, size=n),
    "Multinomial": lambda rng, n: rng.multinomial(7, np.ones(3) / 3, n),
    "Poisson": lambda rng, n: rng.poisson(2.0, n),
    "Exponential": lambda rng, n: rng.exponential(2.0, n),
    "Gamma": lambda rng, n: rng.gamma(2.0, 2.0, n),
}


@st.composite
def counts(draw: Callable[..., Any]) -> svmp.Model:
    """Mixtures of other families: one or several values a row, some of them missing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    family, rows = draw(st.sampled_from(list(DRAWS))), draw(st.sampled_from([1, 2, 130, 4100]))
    several = draw(st.booleans())
    plate: tuple[str, ...] = ("row", "item") if several else ("row",)
    y = DRAWS[family](rng, (rows, 3) if several else rows)
    missing: Any = False
    if several and draw(st.booleans()):
        missing = rng.random((rows, 3)) < 0.3
        missing[:, 0] = False
    coords = {"row": rows, "item": 3, "component": 2, "category": 3}
    with svmp.Model(coords=coords) as model:
        w = svmp.Dirichlet("w", a=1, dims="component")
        z = svmp.Categorical("z", p=w, dims="row")
        dims = ("component", "item") if several and draw(st.booleans()) else ("component",)
        component = component_of(family, dims, draw(st.booleans()))
        dims = (*plate, "category") if family == "Multinomial" else plate
        svmp.Mixture("x", z, component, dims=dims, observed=y, missing=missing)
    return model


MODELS = {"topics": topics(), "normals": normals(), "counts": counts()}
METHODS = {
    "full VB": (svmp.FullVB(), svmp.Constant(1.0)),
    "growing": (svmp.Growing(first=0.4), svmp.Constant(1.0)),
    **{f"batch {n} {o}": (svmp.Batch(n, option=o), svmp.Nodewise()) for n in (1, 40) for o in "ab"},
}


def unstored(network: Network, q: Beliefs, method: Any) -> Beliefs:
    """Return the same q without the locals that need not be stored."""
    return unstore(network, copy(q), method)


def optimise_locals(network: Network, q: Beliefs, like: Beliefs) -> None:
    """Set stored locals to their optimum."""
    for name in like.implicit:
        network.move(q, name, elements_of(network, name), optimum(network, q, name))


def both(
    model: svmp.Model, seed: int, method: Any, steps: Any, spread: float = 1.0
) -> dict[str, Any]:
    network = Network(model)
    plain = anywhere(network, seed, spread)
    compiled = unstored(network, plain, method)
    for iteration in (1, 2, 3):
        optimise_locals(network, plain, compiled)  # read by what is updated before the locals
        for q in (plain, compiled):
            iterate(network, q, method, steps, 0, iteration)
    optimise_locals(network, plain, compiled)
    assert_same(compiled, plain, TOLERANCE, compiled.natural)
    for name in compiled.implicit:
        everything = np.arange(network.hidden[name].size)
        np.testing.assert_allclose(
            compiled.at(name, everything), plain.moments[name], rtol=0, atol=TOLERANCE
        )
    assert bound(network, compiled) == pytest.approx(bound(network, plain), rel=TOLERANCE)
    return compiled.implicit


@pytest.mark.parametrize("label", METHODS)
@pytest.mark.parametrize("kind", MODELS)
def test_stored_and_unstored_locals_agree(kind, label):
    @settings(max_examples=15, phases=[Phase.generate])
    @given(MODELS[kind], st.integers(0, 2**16))
    def check(model: svmp.Model, seed: int) -> None:
        both(model, seed, *METHODS[label])

    check()


@pytest.mark.parametrize("label", METHODS)
@pytest.mark.parametrize("name", ["05", "07"])
def test_stored_and_unstored_locals_agree_on_the_gallery(name, label):
    assert both(gallery()[name], 3, *METHODS[label])


@pytest.mark.parametrize("option", "ab")
def test_documents_have_the_optimum_of_plain_code(monkeypatch, option):
    """With passes until convergence; single precision has six digits."""
    monkeypatch.setattr(groups, "TOLERANCE", 1e-13)
    monkeypatch.setattr(groups, "MOST_PASSES", 2000)
    method, steps = svmp.Batch(3, option=option, over="document"), svmp.Nodewise()

    @settings(max_examples=15, phases=[Phase.generate], deadline=None)
    @given(topics(), st.integers(0, 2**16))
    def check(model: svmp.Model, seed: int) -> None:
        network = Network(model)
        divided = any("document" in v.dims for v in model.variables.values())
        if not divided or len(model.variables["w"].rows) == 1:  # phi of one word is local too
            return
        plain = anywhere(network, seed)
        compiled = unstored(network, plain, method)
        assert compiled.implicit
        for q in (plain, compiled):
            advance(network, q, method, 2, steps)
        assert_same(compiled, plain, 1e-4, compiled.natural)

    check()


def test_probabilities_that_underflow_are_computed_in_logarithms():
    """With concentrations of 1/1000, exp E[log p] of an empty topic is exp(-1000)."""
    document, word = np.repeat(np.arange(4), 6), np.tile(np.arange(6), 4)
    with svmp.Model(coords={"document": 4, "topic": 3, "word": 6, "token": 24}) as model:
        theta = svmp.Dirichlet("theta", a=0.001, dims=("document", "topic"))
        phi = svmp.Dirichlet("phi", a=0.001, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[document], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=word)
    network = Network(model)
    plain = anywhere(network, 0)
    sure = np.full((4, 3), 0.001) + 50 * np.eye(3)[[0, 1, 2, 0]]
    words = np.full((3, 6), 0.001) + 50 * np.repeat(np.eye(3), 2, axis=1)[:, ::-1]
    for name, a in (("theta", sure), ("phi", words)):
        plain.natural[name] = a - 1
        plain.moments[name] = network.hidden[name].family.moments(a - 1)
    compiled = unstored(network, plain, svmp.FullVB())
    for q in (plain, compiled):
        advance(network, q, svmp.FullVB(), 1)
    optimise_locals(network, plain, compiled)
    assert_same(compiled, plain, TOLERANCE, compiled.natural)
    assert bound(network, compiled) == pytest.approx(bound(network, plain), rel=TOLERANCE)


@pytest.mark.parametrize("label", METHODS)
@pytest.mark.parametrize("name", ["05", "07"])
def test_the_bits_are_the_same_for_any_number_of_threads(name, label, monkeypatch):
    monkeypatch.setattr(threads, "SMALL", 0)
    network = Network(gallery()[name])
    begin = unstored(network, anywhere(network, 1), METHODS[label][0])
    method, steps = METHODS[label]
    ends = []
    for number in (1, threads.CORES):
        q = begin.copy()
        with threads.use_threads(number, tell=False):
            advance(network, q, method, 2, steps)
            ends.append((q, bound(network, q)))
    (one, first), (many, second) = ends
    assert first == second
    for variable in one.natural:
        np.testing.assert_array_equal(one.natural[variable], many.natural[variable])


def test_fits_with_and_without_kernels_agree():
    """z is computed on request; with kernels=False it is stored, one update behind."""
    model = gallery()["07"]
    compiled = svmp.fit(model, svmp.FullVB(), max_sweeps=3)
    plain = svmp.fit(model, svmp.FullVB(), max_sweeps=3, kernels=False)
    assert isinstance(compiled.posteriors, Posteriors)
    assert isinstance(plain.posteriors, dict)
    assert list(compiled.posteriors) == list(plain.posteriors)
    assert compiled.mean("z").shape == plain.mean("z").shape
    np.testing.assert_allclose(compiled.mean("phi"), plain.mean("phi"), rtol=1e-9)
    assert compiled.accesses == plain.accesses
    assert compiled.bound > plain.bound
    optimised = svmp.fit(model, svmp.FullVB(order=["z", "theta", "phi"]), init=plain, max_sweeps=1)
    assert np.all(np.diff(compiled.trace["bound"]) >= 0)
    assert optimised.bound >= plain.bound


@pytest.mark.parametrize("order", [["phi", "theta", "z"], ["theta", "z", "phi"]])
def test_the_bound_rises_in_any_order_of_updates(order):
    model = gallery()["07"]
    for every in (None, 2):
        fit = svmp.fit(model, svmp.FullVB(order=order), max_sweeps=4, bound_every=every)
        assert np.all(np.diff(fit.trace["bound"]) >= 0)
        if every is None:
            end = fit.bound
    assert fit.bound == end, "the result must not depend on when the bound is computed"


def test_initial_values_of_locals_are_stored():
    model = gallery()["07"]
    p = np.random.default_rng(0).dirichlet(np.ones(6), model.variables["w"].size)
    fit = svmp.fit(model, svmp.FullVB(), init={"z": p}, max_sweeps=1)
    assert isinstance(fit.posteriors, dict)


RUNS = {
    "topics": ("07", svmp.FullVB()),
    "topics, growing": ("07", svmp.Growing(first=0.3)),
    "topics, batch": ("07", svmp.Batch(400)),
    "topics, documents": ("07", svmp.Batch(20, over="document")),
    "mixture": ("05", svmp.FullVB()),
    "mixture, batch": ("05", svmp.Batch(50)),
}


@pytest.mark.parametrize("label", RUNS)
def test_resumed_runs_have_the_same_bits(label, tmp_path):
    name, method = RUNS[label]
    model, path = gallery()[name], tmp_path / "run"
    whole = svmp.fit(model, method, max_sweeps=8, tol=0)
    svmp.fit(model, method, max_sweeps=4, tol=0, checkpoint=path)
    again = svmp.fit(model, max_sweeps=8, tol=0, resume=path)
    assert isinstance(whole.posteriors, Posteriors)
    assert again.bound == whole.bound
    for variable in whole.posteriors:
        np.testing.assert_array_equal(again[variable].natural, whole[variable].natural)


def test_unstored_locals_are_saved_and_can_start_a_fit(tmp_path):
    fit = svmp.fit(gallery()["05"], svmp.FullVB(), max_sweeps=5)
    fit.save(tmp_path / "fit")
    loaded = svmp.load(tmp_path / "fit")
    np.testing.assert_array_equal(loaded.mean("z"), fit.mean("z"))
    assert str(loaded) == str(fit)
    for init in (fit, fit.posteriors, loaded, loaded.posteriors):
        more = svmp.fit(gallery()["05"], svmp.FullVB(), init=init, max_sweeps=1)
        assert isinstance(more.posteriors, Posteriors)
        assert more.bound >= fit.bound
    with pytest.raises(KeyError, match=r"no hidden variable 'y'; there are .*'z'"):
        fit["y"]


def test_the_bound_of_a_known_mixture_is_the_log_evidence():
    """With all parameters known, the bound is the log evidence, in closed form."""
    rng = np.random.default_rng(0)
    x, p = rng.normal(size=(3000, 2)) + 2 * rng.integers(3, size=(3000, 1)), [0.2, 0.3, 0.5]
    centre = np.array([[0.0, 0], [2, 2], [4, 4]])
    tau = np.array([[2.0, 0.5], [0.5, 1.0]])
    with svmp.Model(coords={"row": 3000, "component": 3, "axis": 2}) as model:
        z = svmp.Categorical("z", p=svmp.data(p, dims="component"), dims="row")
        mu = svmp.data(centre, dims=("component", "axis"))
        svmp.Mixture("x", z, svmp.MvNormal.dist(mu=mu, tau=tau), dims=("row", "axis"), observed=x)
    fit = svmp.fit(model, svmp.FullVB())
    apart = x[:, None] - centre
    logs = 0.5 * np.log(np.linalg.det(tau)) - np.log(2 * np.pi)
    logs = logs - 0.5 * np.einsum("rki,ij,rkj->rk", apart, tau, apart) + np.log(p)
    assert fit.bound == pytest.approx(logsumexp(logs, axis=1).sum(), rel=1e-12)
    np.testing.assert_allclose(fit.mean("z"), softmax(logs, axis=1), atol=1e-12)
