"""Random graphs: draws are valid, have the given odds, and are reproducible."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svmp.kernels.machine.threads import use_threads
from svmp.recommend.draw_graph import odds
from svmp.recommend.graph import EventGraph, network, popularity


@settings(max_examples=100)
@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=30).filter(lambda w: sum(w) > 1e-3))
def test_alias_table_has_the_given_odds(weights: list[float]) -> None:
    """Column i is drawn uniformly, and gives item i or its alias."""
    expected = np.array(weights) / sum(weights)
    table = odds(np.array(weights))
    found = table.keep / len(weights)
    np.add.at(found, table.alias, (1 - table.keep) / len(weights))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@st.composite
def some_events(draw: st.DrawFn) -> EventGraph:
    """Users with few events, with many, with all items, and with none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    users, items = draw(st.integers(1, 8)), draw(st.integers(1, 40))
    taken = [
        rng.choice(items, rng.integers(0, items + 1), replace=draw(st.booleans()))
        for _ in range(users)
    ]
    begin = np.concatenate([[0], np.cumsum([len(t) for t in taken])])
    item = np.concatenate(taken).astype(np.int32)
    ratio = draw(st.sampled_from([0.3, 1.0, 3.0, 50.0]))
    return EventGraph(
        begin, item, popularity(item, items, draw(st.sampled_from([0.0, 1.0]))), ratio
    )


@settings(max_examples=60)
@given(some_events(), st.integers(0, 2**31), st.integers(-5, 100))
def test_graph_has_all_events_and_distinct_negatives(
    events: EventGraph, seed: int, iteration: int
) -> None:
    found = events.draw(seed, iteration)
    assert np.array_equal(found, events.draw(seed, iteration))
    assert len(found) == len(events.user) == len(events.taken) == events.ends[-1]
    for m in range(len(events.begin) - 1):
        own = events.item[events.begin[m] : events.begin[m + 1]]
        mine = slice(events.ends[m], events.ends[m + 1])
        assert (events.user[mine] == m).all()
        assert np.array_equal(found[mine][: len(own)], own)
        assert events.taken[mine].sum() == len(own)
        others = found[mine][len(own) :]
        assert len(np.unique(others)) == len(others) <= max(1, round(events.ratio * len(own)))
        assert not np.isin(others, own).any()


def test_negatives_are_drawn_with_the_given_odds() -> None:
    """One negative at a time, many times: frequencies within five standard errors."""
    weights = np.array([1.0, 2.0, 5.0, 0.5, 8.0])
    events = EventGraph(np.arange(20_001), np.zeros(20_000, np.int32), weights, 1.0)
    found = events.draw(3, 1)[1::2]
    expected = weights[1:] / weights[1:].sum()  # item 0 was taken
    share = np.bincount(found, minlength=5)[1:] / len(found)
    error = np.sqrt(expected * (1 - expected) / len(found))
    assert np.all(np.abs(share - expected) < 5 * error)
    assert not (found == 0).any()


def test_graphs_depend_on_iteration_user_and_seed_but_not_threads() -> None:
    rng = np.random.default_rng(0)
    begin = np.arange(0, 4001, 20)
    item = np.concatenate([rng.choice(500, 20, replace=False) for _ in range(200)])
    events = EventGraph(begin, item.astype(np.int32), np.ones(500), 2.0)
    first = events.draw(1, 1)
    assert (first != events.draw(1, 2)).mean() > 0.5
    assert (first != events.draw(2, 1)).mean() > 0.5
    with use_threads(1, tell=False):
        assert np.array_equal(first, events.draw(1, 1))


@pytest.mark.parametrize("precision", [2.0, None])
def test_the_network_of_a_graph(precision: float | None) -> None:
    events = EventGraph(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), np.ones(6), 1.0)
    model = network(events, events.draw(0, 1), 2, precision)
    assert set(model.variables) == {"u", "v", "b", "of_b", "taken"} | (
        {"of_u", "of_v"} if precision is None else set()
    )
    assert model.variables["taken"].size == 6
