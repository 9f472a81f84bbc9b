"""Updates of mixtures, topics and factorizations: close to a refit, saved, resumed, diverged."""

from __future__ import annotations

import numpy as np
import pytest

import svmp


def mixture(values, kind=None):
    with svmp.Model(coords={"kind": kind or 2, "row": len(values)}) as model:
        share = svmp.Dirichlet("share", a=1.0, dims="kind")
        mu = svmp.Normal("mu", mu=0, tau=0.01, dims="kind")
        z = svmp.Categorical("z", p=share, dims="row")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=1.0), dims="row", observed=values)
    return model


@pytest.mark.parametrize("kernels", [True, False])
def test_components_keep_their_identity(kernels):
    rng = np.random.default_rng(5)
    values = np.where(rng.random(400) < 0.3, rng.normal(-4, 1, 400), rng.normal(4, 1, 400))
    whole = svmp.fit(mixture(values), seed=1)
    fit = svmp.fit(mixture(values[:200]), seed=1, kernels=kernels)
    for part in np.split(values[200:], 4):
        fit = fit.update(mixture(part), kernels=kernels)
    assert fit["z"].plate == (50,)
    order = np.argsort(fit.mean("mu")), np.argsort(whole.mean("mu"))
    for name in ("mu", "share"):
        np.testing.assert_allclose(fit.mean(name)[order[0]], whole.mean(name)[order[1]], rtol=1e-3)


def topics(document, word, documents, vocabulary):
    coords = {"doc": documents, "topic": 3, "word": vocabulary, "token": len(word)}
    with svmp.Model(coords=coords) as model:
        theta = svmp.Dirichlet("theta", a=0.3, dims=("doc", "topic"))
        phi = svmp.Dirichlet("phi", a=0.1, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[document], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=word)
    return model


def draw_documents(documents=100, length=60, vocabulary=30):
    rng = np.random.default_rng(8)
    phi, theta = rng.dirichlet(np.full(vocabulary, 0.1), 3), rng.dirichlet([0.3] * 3, documents)
    document = np.repeat(np.arange(documents), length)
    return document, np.array([rng.choice(vocabulary, p=theta[d] @ phi) for d in document])


def perplexity(fit, document, word):
    """Perplexity of every second token of new documents, given the others, with phi fixed."""
    phi = fit.mean("phi")
    theta = np.full((document.max() + 1, 3), 1 / 3)
    seen = np.arange(len(word)) % 2 == 0
    for _ in range(100):
        weight = theta[document[seen]] * phi[:, word[seen]].T
        weight /= weight.sum(axis=1, keepdims=True)
        theta = np.full_like(theta, 0.3)
        np.add.at(theta, document[seen], weight)
        theta /= theta.sum(axis=1, keepdims=True)
    p = np.einsum("nk,kn->n", theta[document[~seen]], phi[:, word[~seen]])
    return np.exp(-np.log(p).mean())


def test_update_of_topics_is_a_stationary_point():
    """lambda = eta + S + E[counts], with E[counts] of the new tokens alone; no sweep lowers it."""
    rng = np.random.default_rng(5)
    document, word = np.repeat(np.arange(40), 12), rng.integers(0, 9, 480)
    first = svmp.fit(topics(document, word, 40, 9), seed=1)
    new = word[:180]
    fit = first.update(topics(document[:180], new, 15, 9), new=["doc"], tol=1e-9)
    counts = np.stack([np.bincount(new, share, 9) for share in fit["z"].p.T])
    np.testing.assert_allclose(fit["phi"].a, first["phi"].a + counts, atol=1e-3)
    assert np.diff(fit.trace["bound"]).min() >= -1e-9 * abs(fit.bound)
    assert fit.program.method == "Memoized"


@pytest.mark.parametrize("kernels", [True, False])
def test_topics_of_new_documents_are_close_to_a_refit(kernels):
    document, word = draw_documents()
    train, last = document < 72, (document >= 72) & (document < 80)
    test = document >= 80
    whole = svmp.fit(topics(document[train | last], word[train | last], 80, 30), tol=1e-4)
    part = svmp.fit(topics(document[train], word[train], 72, 30), tol=1e-4, kernels=kernels)
    fit = part.update(
        topics(document[last] - 72, word[last], 8, 30), new=["doc"], tol=1e-4, kernels=kernels
    )
    assert fit["theta"].plate == (8,)
    counted = fit["phi"].a.sum() - part["phi"].a.sum()
    assert counted == pytest.approx(last.sum(), rel=1e-8)
    scores = [perplexity(f, document[test] - 80, word[test]) for f in (fit, whole)]
    assert scores[0] == pytest.approx(scores[1], rel=0.02)


def ratings(users, items, user, item, stars):
    with svmp.Model(coords={"user": users, "item": items, "factor": 3}) as model:
        tau_u = svmp.Gamma("tau_u", alpha=2, beta=2, dims="factor")
        u = svmp.Normal("u", mu=0, tau=tau_u, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=tau, observed=stars)
    return model


def draw_ratings(users=60, items=40, count=2000):
    rng = np.random.default_rng(2)
    u, v = rng.normal(size=(users, 3)), rng.normal(size=(items, 3))
    user, item = rng.integers(users, size=count), rng.integers(items, size=count)
    return user, item, (u[user] * v[item]).sum(axis=1) + 0.5 * rng.normal(size=count)


def part_of(data, rows):
    user, item, stars = (column[rows] for column in data)
    (users, u), (items, v) = (np.unique(k, return_inverse=True) for k in (user, item))
    return ratings([f"user {k}" for k in users], items, u, v, stars)


def rmse(fit, data, rows):
    user, item, stars = (column[rows] for column in data)
    users = {label: place for place, label in enumerate(fit.coords["user"])}
    items = {label: place for place, label in enumerate(fit.coords["item"])}
    u = fit.mean("u")[[users[f"user {k}"] for k in user]]
    v = fit.mean("v")[[items[int(k)] for k in item]]
    return np.sqrt(np.mean((stars - (u * v).sum(axis=1)) ** 2))


@pytest.mark.parametrize("kernels", [True, False])
def test_a_factorization_with_new_users_and_items_is_close_to_a_refit(kernels):
    data = draw_ratings()
    late = (data[0] >= 57) | (data[1] >= 38)
    rows = np.arange(2000)
    first, last, test = (rows < 1500) & ~late, (rows < 1700) & ((rows >= 1500) | late), rows >= 1700
    whole = svmp.fit(part_of(data, first | last), tol=1e-4, kernels=kernels)
    fit = svmp.fit(part_of(data, first), tol=1e-4, kernels=kernels)
    fit = fit.update(part_of(data, last), tol=1e-4, kernels=kernels)
    assert len(fit.coords["user"]) == 60
    assert rmse(fit, data, test) == pytest.approx(rmse(whole, data, test), rel=0.03)


def test_kernels_agree_on_updates():
    data, rows = draw_ratings(), np.arange(2000)
    part = svmp.fit(part_of(data, rows < 900), tol=1e-4)
    more = part_of(data, (rows >= 900) & (rows < 1200))
    both = [part.update(more, svmp.FullVB(), max_sweeps=5, kernels=k) for k in (True, False)]
    for name in ("u", "v", "tau", "tau_u"):
        np.testing.assert_allclose(both[0][name].natural, both[1][name].natural, rtol=1e-8)
    assert both[0].bound == pytest.approx(both[1].bound, rel=1e-8)
    assert np.all(np.diff(both[0].trace["bound"]) > -1e-7), "coordinate ascent never falls"


def test_a_saved_fit_is_updated_after_loading(tmp_path):
    data, rows = draw_ratings(), np.arange(2000)
    part = svmp.fit(part_of(data, rows < 900), max_sweeps=20)
    part.save(tmp_path / "part.svmp")
    loaded = svmp.load(tmp_path / "part.svmp")
    assert loaded.coords == part.coords
    more = part_of(data, (rows >= 900) & (rows < 1200))
    for name, q in part.update(more, max_sweeps=5).posteriors.items():
        again = loaded.update(more, max_sweeps=5)[name]
        np.testing.assert_array_equal(again.natural, q.natural)


@pytest.mark.filterwarnings("ignore::svmp.DivergenceWarning")
def test_a_diverged_fit_can_be_updated():
    data, rows = draw_ratings(), np.arange(2000)
    with np.errstate(all="ignore"):
        part = svmp.fit(
            part_of(data, rows < 900), svmp.Batch(5), steps=svmp.Constant(1.0), max_sweeps=3
        )
    fit = part.update(part_of(data, (rows >= 900) & (rows < 1200)), max_sweeps=50)
    assert np.isfinite(fit.bound)
    assert all(q.family.in_domain(q.natural).all() for q in fit.posteriors.values())


def test_an_update_is_resumed_from_its_checkpoint(tmp_path):
    data, rows = draw_ratings(), np.arange(2000)
    part = svmp.fit(part_of(data, rows < 900), max_sweeps=20)
    more = part_of(data, (rows >= 900) & (rows < 1200))
    options = {"method": svmp.FullVB(), "tol": 1e-9}
    path = tmp_path / "run"
    part.update(more, checkpoint=path, every=1, max_sweeps=5, **options)
    resumed = part.update(more, resume=path, max_sweeps=10)
    whole = part.update(more, max_sweeps=10, **options)
    for name in ("u", "v", "tau"):
        np.testing.assert_array_equal(resumed[name].natural, whole[name].natural)
    with pytest.raises(svmp.FileError, match=r"earlier rows of '.*' differs"):
        svmp.fit(more, resume=path)
    with pytest.raises(svmp.FileError, match=r"earlier rows of '.*' differs"):
        part.update(more, resume=path, forget=0.5)


def test_new_rows_of_a_known_label_of_a_choice_are_added_to_it():
    """A labelled Categorical is stored, and its probabilities are those of both observations."""

    def choices(values):
        with svmp.Model(coords={"kind": 2, "person": ["a", "b"]}) as model:
            p = svmp.Dirichlet("p", a=50.0, dims="kind")
            z = svmp.Categorical("z", p=p, dims="person")
            y = svmp.Normal.dist(mu=svmp.data([-1.0, 1.0], dims="kind"), tau=1.0)
            svmp.Mixture("y", z, y, dims="person", observed=values)
        return model

    fit = svmp.fit(choices([0.3, -0.4]), tol=1e-12).update(choices([0.5, 0.1]), tol=1e-12)
    odds = np.log(fit.mean("z")[:, 1] / fit.mean("z")[:, 0])
    np.testing.assert_allclose(odds, [2 * 0.8, -2 * 0.3], atol=0.05)
