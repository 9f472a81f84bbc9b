"""`print(model)`: a line for each variable, with its parents and child counts."""

from __future__ import annotations

import numpy as np
import pytest

import svmp


def columns(model: svmp.Model) -> dict[str, list[str]]:
    """Split the table at the columns of its rule; return the cells by variable."""
    head, rule, *lines = str(model).splitlines()
    cuts, start = [], 0
    for part in rule.split("  "):
        cuts.append((start, start + len(part)))
        start += len(part) + 2
    rows = [[line[a:b].strip() for a, b in cuts] for line in (head, *lines)]
    assert rows[0] == [
        "variable",
        "family",
        "",
        "dims",
        "parents",
        "children",
        "children of an element",
    ]
    return {row[0]: row[1:] for row in rows[1:]}


def ratings() -> svmp.Model:
    with svmp.Model(coords={"user": 3, "item": 1234, "k": 2}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "k"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "k"))
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        user, item = np.array([0, 0, 0, 1, 2]), np.array([0, 1, 2, 3, 0])
        mean = svmp.dot(u[user], v[item])
        r = np.array([1.0, 2.0, 3.0, 4.0, np.nan])
        svmp.Normal("r", mu=mean, tau=tau, observed=r, missing=True)
    return model


def test_there_is_one_line_per_variable() -> None:
    table = columns(ratings())
    assert list(table) == ["u", "v", "tau", "r"]
    assert table["u"] == ["Normal", "hidden", "user: 3, k: 2", "", "r", "0 to 3, median 1"]
    assert table["tau"] == ["Gamma", "hidden", "", "", "r", "4"]
    assert table["r"] == ["Normal", "observed, 1 missing", "r_dim_0: 5", "u, v, tau", "", ""]
    assert "item: 1,234" in table["v"][2]


def test_a_mixture_and_its_local_choice() -> None:
    with svmp.Model(coords={"k": 2, "row": 3}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        m = svmp.Normal("m", mu=0, tau=1, dims="k")
        svmp.Mixture("x", z, svmp.Normal.dist(m, 1), dims="row", observed=[1.0, 2.0, 3.0])
    table = columns(model)
    assert table["x"][0] == "Mixture of 2 Normal"
    assert table["x"][3] == "z, m"
    assert table["z"][1] == "local"
    assert table["z"][-1] == "1"
    assert table["m"][-1] == "3"
    assert table["w"][4:] == ["z", "3"]


def test_a_variable_without_children() -> None:
    with svmp.Model() as model:
        svmp.Normal("lonely", mu=0, tau=1)
    assert columns(model)["lonely"] == ["Normal", "hidden", "", "", "", "0"]


def test_an_empty_model_and_an_empty_dimension() -> None:
    with svmp.Model(coords={"none": 0}) as model:
        assert columns(model) == {}
        svmp.Normal("x", mu=0, tau=1, dims="none")
    assert columns(model)["x"][-1] == "0"


def test_child_counts_are_those_of_the_table() -> None:
    """An element's children are the rows whose key is its own, each counted once."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(4, size=30), rng.integers(4, size=30)
    with svmp.Model(coords={"player": 4}) as model:
        s = svmp.Normal("s", mu=0, tau=1, dims="player")
        svmp.Normal("x", mu=s[a] - s[b], tau=1, observed=rng.normal(size=30))
    counts = [int(((a == i) | (b == i)).sum()) for i in range(4)]
    expected = f"{min(counts)} to {max(counts)}, median {int(np.median(counts))}"
    assert columns(model)["s"][-1] == expected


def test_the_repr_of_a_variable() -> None:
    model = ratings()
    assert repr(model["u"]) == "<hidden Normal 'u' {'user': 3, 'k': 2}>"
    assert repr(model["r"]) == "<observed Normal 'r' {'r_dim_0': 5}>"


@pytest.mark.parametrize("name", ["a" * 200, "日本", "x\ty"])
def test_odd_names_stay_on_one_line(name: str) -> None:
    with svmp.Model() as model:
        svmp.Normal(name, mu=0, tau=1)
        svmp.Normal("x", mu=0, tau=1, observed=[1.0])
    assert len(str(model).splitlines()) == 4
