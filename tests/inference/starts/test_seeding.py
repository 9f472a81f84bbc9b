"""Where topics and the components of mixtures start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.starts.start import start
from svmp.network.network import Network

DOCUMENTS, TOPICS = 12, 3
LENGTHS = np.arange(3, 3 + DOCUMENTS)
TOKENS = np.repeat(np.arange(DOCUMENTS), LENGTHS)


def topics(document: Any = TOKENS, missing: Any = False) -> svmp.Model:
    """Every document has its own word, which shows the topic that it was assigned to."""
    sizes = {"doc": max(document) + 1, "topic": TOPICS, "word": DOCUMENTS, "token": len(TOKENS)}
    with svmp.Model(coords=sizes) as model:
        theta = svmp.Dirichlet("theta", a=0.5, dims=("doc", "topic"))
        phi = svmp.Dirichlet("phi", a=0.1, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[document], dims="token")
        word = svmp.Categorical.dist(p=phi)
        svmp.Mixture("w", z, word, dims="token", observed=TOKENS, missing=missing)
    return model


def shown(model: svmp.Model, seed: int = 0, **init: Any) -> Any:
    """Return the counts of words in each topic at the start, without the prior's part."""
    return np.rint(start(Network(model), seed, init).natural["phi"]).astype(int)


@pytest.mark.parametrize("seed", range(3))
def test_each_document_is_assigned_to_one_topic(seed: int) -> None:
    counts = shown(topics(), seed)
    assert np.array_equal(counts.sum(axis=0), LENGTHS)
    assert np.array_equal((counts > 0).sum(axis=0), np.ones(DOCUMENTS))
    assert np.array_equal((counts > 0).sum(axis=1), np.full(TOPICS, DOCUMENTS // TOPICS))


def test_assignment_of_documents_is_random() -> None:
    assert not np.array_equal(shown(topics(), 0), shown(topics(), 1))


def test_missing_words_are_not_counted() -> None:
    missing = np.zeros(len(TOKENS), dtype=bool)
    missing[TOKENS == 5] = True
    expected = np.where(np.arange(DOCUMENTS) == 5, 0, LENGTHS)
    assert np.array_equal(shown(topics(missing=missing)).sum(axis=0), expected)


@pytest.mark.parametrize("documents", [1, TOPICS - 1])
def test_fewer_documents_than_topics_are_not_assigned(documents: int) -> None:
    """One topic would start with all words."""
    assert not shown(topics(TOKENS % documents)).any()


def test_topics_in_init_are_kept() -> None:
    given = np.full((TOPICS, DOCUMENTS), 4.0)
    q = start(Network(topics()), 0, {"phi": {"a": given}})
    np.testing.assert_array_equal(q.natural["phi"] + 1, given)


def test_topics_that_start_at_the_data_end_better() -> None:
    """Compares bounds after the same number of sweeps, on words drawn from topics."""
    rng = np.random.default_rng(0)
    truth, shares = rng.dirichlet(np.full(200, 0.05), 20), rng.dirichlet(np.full(20, 0.1), 300)
    document = np.repeat(np.arange(300), 50)
    word = np.array([rng.choice(200, p=p) for p in (shares @ truth)[document]])
    sizes = {"doc": 300, "topic": 20, "word": 200, "token": len(word)}
    with svmp.Model(coords=sizes) as model:
        theta = svmp.Dirichlet("theta", a=0.1, dims=("doc", "topic"))
        phi = svmp.Dirichlet("phi", a=0.05, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[document], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=word)
    alike = {"phi": {"a": rng.gamma(100.0, 0.01, (20, 200))}}
    bounds = [
        svmp.fit(model, svmp.FullVB(), init=init, max_sweeps=30).bound for init in (None, alike)
    ]
    assert bounds[0] > bounds[1] + 300


def random_effects() -> tuple[svmp.Model, np.ndarray]:
    """Declare groups of two kinds whose effects are hidden; return the kind of each too."""
    rng = np.random.default_rng(0)
    kind = (rng.random(60) < 0.4).astype(int)
    effect = np.array([-3.0, 3.0])[kind] + 0.5 * rng.normal(size=60)
    group = rng.integers(0, 60, 400)
    y = effect[group] + rng.normal(size=400)
    with svmp.Model(coords={"kind": 2, "group": 60}) as model:
        weight = svmp.Dirichlet("weight", a=1, dims="kind")
        mu = svmp.Normal("mu", mu=0, tau=0.01, dims="kind")
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="kind")
        z = svmp.Categorical("z", p=weight, dims="group")
        e = svmp.Mixture("e", z, svmp.Normal.dist(mu=mu, tau=tau), dims="group")
        svmp.Normal("y", mu=e[group], tau=svmp.Gamma("noise", alpha=1, beta=1), observed=y)
    return model, kind


@pytest.mark.parametrize("seed", range(10))
def test_components_of_a_hidden_mixture_start_apart(seed: int) -> None:
    model, kind = random_effects()
    fit = svmp.fit(model, seed=seed)
    np.testing.assert_allclose(np.sort(fit.mean("mu")), [-3, 3], atol=0.3)
    first = np.argsort(fit.mean("mu"))
    assert (np.argmax(fit["z"].p[:, first], axis=1) == kind).all()


@pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "plain"])
@pytest.mark.parametrize(
    "method", [None, svmp.FullVB(), svmp.Children(20), svmp.Batch(100)], ids=str
)
def test_components_start_at_the_rows_assigned_in_init(method: Any, kernels: bool) -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 300)
    x = rng.normal(np.array([-4.0, 0.0, 4.0])[kind], 1)
    with svmp.Model(coords={"kind": 3, "row": 300}) as model:
        weight = svmp.Dirichlet("weight", a=1, dims="kind")
        mu = svmp.Normal("mu", mu=0, tau=0.01, dims="kind")
        z = svmp.Categorical("z", p=weight, dims="row")
        svmp.Mixture("x", z, svmp.Normal.dist(mu=mu, tau=1), dims="row", observed=x)
    place = np.array([2, 0, 1])  # the component of each kind
    start = {"z": np.eye(3)[place[kind]]}
    fit = svmp.fit(model, method, init=start, max_sweeps=20, kernels=kernels)
    np.testing.assert_allclose(fit.mean("mu")[place], [-4, 0, 4], atol=0.4)


@pytest.mark.parametrize("vague", [1e-4, 1e-12])
@pytest.mark.parametrize("scale", [0.01, 0.3, 10.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_components_stay_at_the_centres_in_init(seed: int, scale: float, vague: float) -> None:
    """Only centres are given, in any order; precisions start at the rows nearest to them."""
    rng, centres = np.random.default_rng(seed), np.array([[0.0, 0], [6, 0], [0, 6]])
    rows = np.repeat(centres, 60, axis=0) + rng.normal(size=(180, 2))
    with svmp.Model(coords={"component": 3, "axis": 2, "row": 180}) as model:
        weight = svmp.Dirichlet("weight", a=1, dims="component")
        tau = vague * np.eye(2)
        mu = svmp.MvNormal("mu", mu=np.zeros(2), tau=tau, dims=("component", "axis"))
        shape = ("component", "axis", "axis")
        precision = svmp.Wishart("precision", nu=3, V=scale * np.eye(2), dims=shape)
        z = svmp.Categorical("z", p=weight, dims="row")
        component = svmp.MvNormal.dist(mu=mu, tau=precision)
        svmp.Mixture("x", z, component, dims=("row", "axis"), observed=rows)
    order = rng.permutation(3)
    fit = svmp.fit(model, init={"mu": centres[order] + 0.5}, seed=seed)
    np.testing.assert_allclose(fit.mean("mu"), centres[order], atol=0.5)
    np.testing.assert_allclose(fit.mean("weight"), [1 / 3] * 3, atol=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_states_of_a_chain_stay_at_the_means_in_init(seed: int) -> None:
    rng, means = np.random.default_rng(seed), np.array([-5.0, 0.0, 5.0])
    states = np.repeat(rng.permutation(np.tile(np.arange(3), 10)), 10)
    with svmp.Model(coords={"state": 3, "to": 3, "row": 300}) as model:
        first = svmp.Dirichlet("first", a=1, dims="state")
        moves = svmp.Dirichlet("moves", a=1, dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", init=first, P=moves, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=1e-4, dims="state")
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="state")
        emission = svmp.Normal.dist(mu=mu, tau=tau)
        observed = means[states] + rng.normal(size=300)
        svmp.Mixture("y", z, emission, dims="row", observed=observed)
    order = rng.permutation(3)
    fit = svmp.fit(model, init={"mu": means[order] + 0.5}, seed=seed)
    np.testing.assert_allclose(fit.mean("mu"), means[order], atol=0.5)


def three_groups(seed: int, known: bool = False) -> tuple[svmp.Model, Any]:
    """Return a mixture of three groups far apart, and the group of each row."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(3), 60)
    x = rng.normal(size=180)
    y = np.array([-6.0, 0.0, 6.0])[group] + 2 * x + rng.normal(size=180)
    chosen = {"observed": np.where(rng.random(180) < 0.3, group, np.nan), "missing": True}
    with svmp.Model(coords={"component": 3, "row": 180}) as model:
        weight = svmp.Dirichlet("weight", a=1, dims="component")
        mu = svmp.Normal("mu", mu=0, tau=1e-4, dims="component")
        slope = svmp.Normal("slope", mu=0, tau=1e-4)
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="component")
        z = svmp.Categorical("z", p=weight, dims="row", **(chosen if known else {}))
        component = svmp.Normal.dist(mu=mu + slope * svmp.data(x, dims="row"), tau=tau)
        svmp.Mixture("y", z, component, dims="row", observed=y)
    return model, group


@pytest.mark.parametrize("init", [{"slope": 2.0}, {"mu": np.zeros(3)}, {"mu": [-6.0, 0.0, 30.0]}])
def test_means_that_do_not_divide_the_rows_do_no_harm(init: Any) -> None:
    """A slope that components share, equal means, and a mean far from all rows."""
    model, _ = three_groups(0)
    best = svmp.fit(model, init={"mu": [-6.0, 0.0, 6.0], "slope": 2.0}).bound
    assert svmp.fit(model, svmp.FullVB(), init=init).bound == pytest.approx(best, rel=1e-3)


def test_known_choices_stay_known_where_means_are_given() -> None:
    model, group = three_groups(1, known=True)
    fit = svmp.fit(model, init={"mu": [-6.0, 0.0, 6.0]})
    assert (fit["z"].p.argmax(axis=1) == group).mean() > 0.98
    np.testing.assert_allclose(fit.mean("mu"), [-6.0, 0.0, 6.0], atol=0.5)
