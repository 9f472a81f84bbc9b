"""Claim 8: E[lambda_temp] = lambda*. The mean over all draws is the message of all children."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import svmp
from svmp.inference.methods import batch, children
from svmp.network.network import Network
from tests.inference.tools import factors, gallery
from tests.network.networks import KINDS, of_kind
from tests.network.tools import anywhere, optimum
from tests.programs import message_sum

every_kind = pytest.mark.parametrize("kind", KINDS)
MOST = 60
"""Most subsets in an enumeration."""


class FixedSubset:
    """Replaces the random generator: returns a given subset."""

    subset: tuple[int, ...] = ()

    def __call__(self, seed, iteration, variable, elements, children, take):
        assert len(elements) == 1
        assert len(self.subset) == take[0] <= children[0]
        return np.array(self.subset, dtype=np.int64)


@pytest.fixture
def dealt(monkeypatch):
    dealer = FixedSubset()
    monkeypatch.setattr(children, "sample_each", dealer)
    monkeypatch.setattr(batch, "sample_each", dealer)
    return dealer


def close(found: np.ndarray, expected: np.ndarray) -> None:
    scale = np.abs(expected).max(initial=1e-300)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10 * scale)


@every_kind
@pytest.mark.parametrize("share_draw", [False, True])
def test_mean_over_all_subsets_of_children_is_the_optimum(kind, share_draw, dealt):
    @settings(max_examples=6)
    @given(of_kind(kind), st.integers(0, 2**16))
    def check(model, seed):
        network = Network(model)
        q = anywhere(network, seed)
        for name in network.hidden:
            star = optimum(network, q, name)
            for element in range(min(len(star), 3)):
                children = int(network.child_counts[name][element])
                for C in {1, 2, children - 1} & set(range(1, children)):
                    if comb(children, C) > MOST:
                        continue
                    method = svmp.Children(C, share_draw=share_draw)
                    draw = method.draw(network, 0, 1)
                    one, total = np.array([element]), 0.0
                    for dealt.subset in combinations(range(children), C):
                        found = message_sum(network, q, draw, name, one)
                        total = total + found.total
                        assert found.accesses == C
                    close(total[0] / comb(children, C), star[element])

    check()


@every_kind
def test_batch_is_unbiased_given_the_number_of_drawn_children(kind, dealt):
    """Over all batches in which an element has n children, for each n."""

    @settings(max_examples=8)
    @given(of_kind(kind), st.integers(0, 2**16), st.integers(1, 3))
    def check(model, seed, size):
        network = Network(model)
        rows = sum(len(v.rows) for v in network.observed.values())
        if size > rows or comb(rows, size) > MOST:
            return
        q = anywhere(network, seed)
        totals: dict[tuple[str, int, int], list[np.ndarray]] = {}
        for dealt.subset in combinations(range(rows), size):
            draw = svmp.Batch(size).draw(network, 0, 1)
            for name in network.hidden:
                for elements in draw.groups(name):
                    target = message_sum(network, q, draw, name, elements).total
                    read = draw.read(name, elements)
                    for element, n, natural in zip(elements, read, target, strict=True):
                        totals.setdefault((name, int(element), int(n)), []).append(natural)
        for (name, element, n), found in totals.items():
            if n and every_child_can_be_drawn(network, name, element):
                close(np.mean(found, axis=0), optimum(network, q, name)[element])

    check()


def every_child_can_be_drawn(network: Network, name: str, element: int) -> bool:
    """Whether each child is one observation, or the local variable of one.

    A local variable with rows in several tables, or whose row is missing, is drawn more or less
    often than others.
    """
    for edge in network.edges[name]:
        table = edge.conditional.variable
        if table.name in network.locals:
            counts = sum(e.children for e in network.edges[table.name])
            if len(network.edges[table.name]) > 1 or counts.min() < 1:
                return False
    return True


STATISTICAL = (
    "factors", "02", "03 scalars", "03 vector", "04 paper", "04 vectors", "04 biases", "05",
    "06 pictures", "06 counts", "07", "08 factor analysis", "09", "10", "11",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "share_draw"),
    [*((name, False) for name in STATISTICAL), ("04 paper", True), ("04 biases", True)],
)
def test_many_draws_average_to_the_optimum(name, share_draw):
    """Five standard errors, on networks with every kind of factor."""
    network = Network(factors() if name == "factors" else gallery()[name])
    q = anywhere(network, 1)
    count = 150
    for variable in network.hidden:
        if network.child_counts[variable].max() < 4:
            continue
        chosen = np.argsort(-network.child_counts[variable], kind="stable")[:4]
        star = optimum(network, q, variable, chosen)
        # C = N / 3, so that a mean of some hundred draws is near a Gaussian
        method = svmp.Children(lambda n: np.maximum(n // 3, 1), share_draw=share_draw)
        found = np.stack(
            [
                message_sum(network, q, method.draw(network, 7, t), variable, chosen).total
                for t in range(1, count + 1)
            ]
        )
        error = found.std(axis=0, ddof=1) / np.sqrt(count)
        far = np.abs(found.mean(axis=0) - star)
        assert (far <= 5 * error + 1e-9 * np.abs(star)).all(), variable
        assert (error > 0).any(), "nothing was drawn"


def test_factors_share_a_draw_only_with_share_draw():
    network = Network(gallery()["04 paper"])
    (edge,) = network.edges["u"]
    elements = np.arange(5)  # the factors of the first user

    def rows(share_draw):
        draw = svmp.Children(3, share_draw=share_draw).draw(network, 0, 1)
        return draw.rows(edge, elements).rows.reshape(5, 3).tolist()

    assert len({tuple(r) for r in rows(True)}) == 1
    assert len({tuple(r) for r in rows(False)}) > 1
