"""Messages to vectors of which rows read single entries, against sums over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import svmp
from svmp.network.network import Network
from tests.network.tools import anywhere, optimum

ROWS, GROUPS, SIZE = 40, 4, 3
RNG = np.random.default_rng(0)
GROUP, ENTRY = RNG.integers(GROUPS, size=ROWS), RNG.integers(SIZE, size=ROWS)
X, Y = RNG.normal(size=(2, ROWS))
TAU = 2.0


def network(mean: Any) -> Network:
    """Declare vectors by group, and rows with a mean of their entries."""
    with svmp.Model(coords={"g": GROUPS, "e": SIZE, "row": ROWS}) as model:
        w = svmp.MvNormal("w", mu=0, tau=np.eye(SIZE), dims=("g", "e"))
        v = svmp.Normal("v", mu=0, tau=1, dims="g")
        svmp.Normal("y", mu=mean(w, v), tau=TAU, dims="row", observed=Y)
    return Network(model)


def expected(network: Network, q: Any, designs: Any, rest: Any, spread: Any) -> np.ndarray:
    """Return lambda* of `w` from the slopes of each row at all of its elements.

    `designs` has E[a] of each row, (rows, entries); `rest` has E[b], and `spread` adds to E[a a^T].
    """
    vector, matrix = np.zeros((GROUPS, SIZE)), np.zeros((GROUPS, SIZE, SIZE))
    for r in range(ROWS):
        vector[GROUP[r]] += TAU * designs[r] * (Y[r] - rest[r])
        square = np.outer(designs[r], designs[r]) * spread[r]
        matrix[GROUP[r]] -= TAU / 2 * square
    prior = network.prior(q, "w", np.arange(GROUPS))
    return prior + np.concatenate([vector, matrix.reshape(GROUPS, -1)], axis=1)


def one_hot() -> np.ndarray:
    return np.eye(SIZE)[ENTRY]


def test_rows_that_read_one_entry() -> None:
    ours = network(lambda w, v: w[GROUP, ENTRY] + v[GROUP])
    q = anywhere(ours, 1)
    rest = q.moments["v"][GROUP, 0]
    answer = expected(ours, q, one_hot(), rest, np.ones(ROWS))
    np.testing.assert_allclose(optimum(ours, q, "w"), answer, rtol=1e-10, atol=1e-12)


def test_rows_that_read_two_entries_of_one_vector() -> None:
    ours = network(lambda w, v: w[GROUP, 0] + w[GROUP, 2] * X)
    q = anywhere(ours, 2)
    designs = np.stack([np.ones(ROWS), np.zeros(ROWS), X], axis=1)
    answer = expected(ours, q, designs, np.zeros(ROWS), np.ones(ROWS))
    np.testing.assert_allclose(optimum(ours, q, "w"), answer, rtol=1e-10, atol=1e-12)


def test_entries_times_a_normal_that_the_rest_reads_too() -> None:
    """With mu = w v + v, E[a b] of the slope v and the rest v is E[v^2]."""
    ours = network(lambda w, v: w[GROUP, ENTRY] * v[GROUP] + v[GROUP])
    q = anywhere(ours, 3)
    mean, square = q.moments["v"][GROUP].T
    designs = one_hot() * mean[:, None]
    answer = expected(ours, q, designs, np.zeros(ROWS), square / mean**2)
    np.add.at(answer, (GROUP, ENTRY), -TAU * square)
    np.testing.assert_allclose(optimum(ours, q, "w"), answer, rtol=1e-9, atol=1e-10)


def test_a_sparse_design() -> None:
    design = RNG.normal(size=(ROWS, SIZE)) * (RNG.random((ROWS, SIZE)) < 0.5)
    ours = network(lambda w, v: svmp.dot(sparse.csr_array(design), w[GROUP], dim="e"))
    q = anywhere(ours, 4)
    answer = expected(ours, q, design, np.zeros(ROWS), np.ones(ROWS))
    np.testing.assert_allclose(optimum(ours, q, "w"), answer, rtol=1e-10, atol=1e-12)


def test_blocks_of_rows_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum does not depend on how many rows are read at once."""
    ours = network(lambda w, v: w[GROUP, ENTRY] + v[GROUP])
    q = anywhere(ours, 5)
    whole = optimum(ours, q, "w")
    monkeypatch.setattr("svmp.network.conditional.CHUNK", 16)
    np.testing.assert_allclose(optimum(ours, q, "w"), whole, rtol=1e-12, atol=1e-12)


def test_rows_are_counted_by_their_entries() -> None:
    """A row that reads one entry of a long vector is small, one that reads all is not."""
    with svmp.Model(coords={"t": 50, "k": 50, "row": ROWS}) as model:
        f = svmp.MvNormal("f", mu=0, tau=np.eye(50), dims="t")
        key = RNG.integers(50, size=ROWS)
        svmp.Normal("y", mu=f[key], tau=1, observed=Y)
        x = svmp.data(RNG.normal(size=(ROWS, 50)), dims=("row", "k"))
        w = svmp.MvNormal("w", mu=0, tau=np.eye(50), dims="k")
        svmp.Normal("z", mu=svmp.dot(x, w, dim="k") + w[0], tau=1, dims="row", observed=Y)
    network = Network(model)
    sizes = {
        name: network.observed[table].conditional.linear.message_size(model[name])
        for name, table in (("f", "y"), ("w", "z"))
    }
    assert sizes == {"f": 2, "w": 50 + 50**2}


def test_pooled_rows_read_entries() -> None:
    """Rows of one kind by their mean statistics give the message of the rows one by one."""
    y = RNG.normal(size=(30, 5))
    with svmp.Model(coords={"s": 30, "t": 5}) as model:
        f = svmp.MvNormal("f", mu=0, tau=np.eye(5), dims="t")
        svmp.Normal("y", mu=f, tau=TAU, dims=("s", "t"), observed=y)
    network = Network(model)
    q = anywhere(network, 6)
    (edge,) = network.edges["f"]
    found = edge.pooled_message(q, np.arange(1))[0]
    np.testing.assert_allclose(found[:5], TAU * y.sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(found[5:], -TAU / 2 * 30 * np.eye(5).ravel(), rtol=1e-10)
