"""With more rows than elements, two rows depend on one element: known without counting."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.network.network import Network
from tests.inference.tools import gallery


@pytest.mark.parametrize("name", gallery())
def test_in_a_crowded_table_some_element_has_two_rows(name: str) -> None:
    network = Network(gallery()[name])
    for edges in network.edges.values():
        for edge in edges:
            assert not edge.crowded or edge.children.max() >= 2


@pytest.mark.parametrize("rows", [4, 5])
def test_a_table_is_crowded_from_one_row_more_than_elements(rows: int) -> None:
    key = np.arange(rows) % 4
    with svmp.Model(coords={"key": 4, "k": 3}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("key", "k"))
        svmp.Normal("x", mu=svmp.dot(u[key], np.ones(3)), tau=1, observed=np.zeros(rows))
    network = Network(model)
    [edge] = network.edges["u"]
    assert edge.crowded == (rows > 4)
    assert network.locals == ([] if rows > 4 else ["u"])
