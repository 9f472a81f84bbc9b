"""What rows read of a variable, asked for again in many orders, is what their keys say."""

from __future__ import annotations

import numpy as np

import svmp
from svmp.network.means.columns import ORDERS


def test_rows_in_many_orders_read_the_elements_of_their_keys() -> None:
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 7, 40), rng.integers(0, 5, 40)
    with svmp.Model(coords={"user": 7, "item": 5, "k": 3}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "k"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "k"))
        svmp.Normal("y", mu=svmp.dot(u[user], v[item]), tau=1, observed=rng.normal(size=40))
    linear = model.variables["y"].conditional.linear
    assert linear is not None
    term = linear.terms[0].regular
    assert term is not None
    table = rng.normal(size=(21, 2))
    orders = [rng.permutation(40)[: rng.integers(1, 40)] for _ in range(2 * ORDERS)]
    for _ in range(3):
        for rows in orders:
            found = term.column(u).take(table[:, 0], rows)
            np.testing.assert_array_equal(found, table[:, 0].reshape(7, 3)[user[rows]])
