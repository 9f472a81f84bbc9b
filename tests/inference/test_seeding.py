"""Where topics start: documents are dealt out to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.start import start
from svmp.network.network import Network

DOCUMENTS, TOPICS = 12, 3
LENGTHS = np.arange(3, 3 + DOCUMENTS)
TOKENS = np.repeat(np.arange(DOCUMENTS), LENGTHS)


def topics(document: Any = TOKENS, missing: Any = False) -> svmp.Model:
    """Every document has a word of its own, so that topics tell which documents they were shown."""
    sizes = {"doc": max(document) + 1, "topic": TOPICS, "word": DOCUMENTS, "token": len(TOKENS)}
    with svmp.Model(coords=sizes) as model:
        theta = svmp.Dirichlet("theta", a=0.5, dims=("doc", "topic"))
        phi = svmp.Dirichlet("phi", a=0.1, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[document], dims="token")
        word = svmp.Categorical.dist(p=phi)
        svmp.Mixture("w", z, word, dims="token", observed=TOKENS, missing=missing)
    return model


def shown(model: svmp.Model, seed: int = 0, **init: Any) -> Any:
    """How often a topic has been shown a word: what is left without counts of about one."""
    return np.rint(start(Network(model), seed, init).natural["phi"]).astype(int)


@pytest.mark.parametrize("seed", range(3))
def test_each_document_is_shown_to_one_topic(seed: int) -> None:
    counts = shown(topics(), seed)
    assert np.array_equal(counts.sum(axis=0), LENGTHS)
    assert np.array_equal((counts > 0).sum(axis=0), np.ones(DOCUMENTS))
    assert np.array_equal((counts > 0).sum(axis=1), np.full(TOPICS, DOCUMENTS // TOPICS))


def test_which_topic_is_left_to_chance() -> None:
    assert not np.array_equal(shown(topics(), 0), shown(topics(), 1))


def test_missing_words_are_not_shown() -> None:
    missing = np.zeros(len(TOKENS), dtype=bool)
    missing[TOKENS == 5] = True
    expected = np.where(np.arange(DOCUMENTS) == 5, 0, LENGTHS)
    assert np.array_equal(shown(topics(missing=missing)).sum(axis=0), expected)


@pytest.mark.parametrize("documents", [1, TOPICS - 1])
def test_fewer_documents_than_topics_are_shown_to_none(documents: int) -> None:
    """One topic would begin with all the words."""
    assert not shown(topics(TOKENS % documents)).any()


def test_topics_that_the_user_gives_stay_as_they_are() -> None:
    given = np.full((TOPICS, DOCUMENTS), 4.0)
    q = start(Network(topics()), 0, {"phi": {"a": given}})
    np.testing.assert_array_equal(q.natural["phi"] + 1, given)


def test_topics_that_begin_at_the_data_end_better() -> None:
    """The bound after as many sweeps, on words that were drawn from topics."""
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
