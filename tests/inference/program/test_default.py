"""The default of fit: a growing sample, or all rows from the start."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.inference.program.default import choose
from svmp.network.network import Network


def first(model: svmp.Model) -> float:
    method, _, _ = choose(Network(model), None, None)
    assert isinstance(method, svmp.Growing)
    return method.first


def regression(groups: int, rows: int) -> svmp.Model:
    with svmp.Model(coords={"group": groups}) as model:
        level = svmp.Normal("level", mu=0, tau=1, dims="group")
        svmp.Normal("y", mu=level[np.arange(rows) % groups], tau=1, observed=np.zeros(rows))
    return model


def mixture(rows: int) -> svmp.Model:
    with svmp.Model(coords={"row": rows, "component": 3}) as model:
        weight = svmp.Dirichlet("weight", a=1.0, dims="component")
        z = svmp.Categorical("z", p=weight, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=1, dims="component")
        svmp.Mixture("x", z, svmp.Normal.dist(mu=mu, tau=1), dims="row", observed=np.zeros(rows))
    return model


def classes(people: int, items: int) -> svmp.Model:
    with svmp.Model(coords={"person": people, "class": 3, "item": items}) as model:
        weight = svmp.Dirichlet("weight", a=1.0, dims="class")
        z = svmp.Categorical("z", p=weight, dims="person")
        p = svmp.Beta("p", alpha=1, beta=1, dims=("class", "item"))
        answers = np.zeros((people, items), int)
        svmp.Mixture("x", z, svmp.Bernoulli.dist(p=p), dims=("person", "item"), observed=answers)
    return model


def topics(documents: int, length: int) -> svmp.Model:
    document = np.repeat(np.arange(documents), length)
    coords = {"document": documents, "topic": 2, "word": 3, "token": len(document)}
    with svmp.Model(coords=coords) as model:
        theta = svmp.Dirichlet("theta", a=0.1, dims=("document", "topic"))
        phi = svmp.Dirichlet("phi", a=0.1, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[document], dims="token")
        word = np.arange(len(document)) % 3
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=word)
    return model


@pytest.mark.parametrize(
    ("model", "share"),
    [
        (regression(100, 10_000), 1.0),  # few rows
        (regression(100, 200_000), 0.05),  # 10,000 rows
        (regression(2_000, 39_000), 1.0),  # 10,000 rows are more than a quarter
        (regression(1_000, 100_000), 0.1),
        (regression(20_000, 100_000), 1.0),  # five children each: two are more than a quarter
        (mixture(50_000), 0.2),
        (classes(5_000, 20), 1.0),  # a class is chosen for twenty rows
        (topics(100, 600), 1 / 6),  # a hundred tokens of each document
        (topics(800, 60), 1.0),  # fewer than a hundred
    ],
)
def test_first_sample_has_enough_rows_and_children(model, share):
    assert first(model) == pytest.approx(share)


@pytest.mark.parametrize(("documents", "divided"), [(999, False), (1000, True)])
def test_topics_of_many_documents_are_found_part_by_part(documents, divided):
    method, _, _ = choose(Network(topics(documents, 12)), None, None)
    assert isinstance(method, svmp.Memoized) == divided
    assert not divided or method.over == "document"


@pytest.mark.parametrize(("documents", "parts"), [(10, 1), (1000, 1), (2500, 2), (30_000, 10)])
def test_documents_that_meet_learned_topics_are_divided_into_few_parts(documents, parts):
    network = Network(topics(documents, 12), learned={"phi": np.ones((2, 3))})
    assert choose(network, None, None)[0] == svmp.Memoized("document", parts)


def test_mixtures_by_group_whose_components_share_rows_are_not_divided():
    coords = {"group": 2000, "component": 2, "row": 4000}
    group = np.arange(4000) % 2000
    with svmp.Model(coords=coords) as model:
        share = svmp.Dirichlet("share", a=1.0, dims=("group", "component"))
        z = svmp.Categorical("z", p=share[group], dims="row")
        mu = svmp.Normal("mu", mu=0, tau=1, dims="component")
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="component")
        y = np.zeros(4000)
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=y)
    assert isinstance(choose(Network(model), None, None)[0], svmp.Growing)
