"""Which variables parts share is found from dims and labels, or refused with the reason."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.parts.description import ChildCounts, PartDims, as_labels
from svmp.parts.sharing import Sharing, element_places, is_disjoint
from tests.parts.networks import CASES


def sharing(models: list[svmp.Model], **named: Any) -> Sharing:
    return Sharing.of([PartDims.of(f"part {i}", m) for i, m in enumerate(models)], **named)


def effects(groups: Any, rows: int = 6, tau: float = 1.0, name: str = "effect") -> svmp.Model:
    """Return a network of group effects, with keys to the groups."""
    count = groups if isinstance(groups, int) else len(groups)
    with svmp.Model(coords={"group": groups}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        effect = svmp.Normal(name, mu=mu, tau=tau, dims="group")
        key = np.arange(rows) % count
        svmp.Normal("y", mu=effect[key], tau=1, dims="row", observed=np.arange(rows) / 3)
    return model


@pytest.mark.parametrize("name", CASES)
def test_own_variables_are_found(name: str) -> None:
    case = CASES[name]()
    found = sharing([case.declare(part) for part in case.parts])
    assert set(found.own) == set(case.own)


def test_same_labels_are_shared_and_other_labels_are_own() -> None:
    assert sharing([effects(["a", "b"]), effects(["a", "b"])]).own == ()
    assert sharing([effects(["a", "b"]), effects(["c", "d"])]).own == ("effect",)
    both = sharing([effects(["a", "b"]), effects(["b", "c"])])
    assert both.own == ()
    assert list(both.labels["group"]) == ["a", "b", "c"]  # type: ignore[arg-type]
    assert [p["group"].tolist() for p in both.places] == [[0, 1], [1, 2]]


def test_sizes_that_differ_are_own() -> None:
    assert sharing([effects(2), effects(3)]).own == ("effect",)


def test_equal_sizes_without_labels_are_refused() -> None:
    with pytest.raises(svmp.ModelError, match=r"the 2 elements of 'group' are the same.*own= or"):
        sharing([effects(2), effects(2)])
    assert sharing([effects(2), effects(2)], own=["effect"]).own == ("effect",)
    assert sharing([effects(2), effects(2)], own="group").own == ("effect",)
    assert sharing([effects(2), effects(2)], shared=["mu", "effect"]).own == ()


@pytest.mark.parametrize("rows", [(4, 4), (4, 6)])
def test_choices_that_several_tables_share_are_own(rows: tuple[int, int]) -> None:
    def declare(count: int) -> svmp.Model:
        with svmp.Model(coords={"component": 2, "row": count}) as model:
            weight = svmp.Dirichlet("weight", a=1, dims="component")
            z = svmp.Categorical("z", p=weight, dims="row")
            mu = svmp.Normal("mu", mu=0, tau=1, dims="component")
            rate = svmp.Gamma("rate", alpha=1, beta=1, dims="component")
            height, visits = svmp.Normal.dist(mu=mu, tau=1), svmp.Poisson.dist(mu=rate)
            svmp.Mixture("height", z, height, dims="row", observed=np.arange(count) / 3)
            svmp.Mixture("visits", z, visits, dims="row", observed=np.arange(count))
        return model

    assert sharing([declare(count) for count in rows]).own == ("z",)


def test_means_of_labelled_rows_in_several_tables_are_shared() -> None:
    """Each mu has a standard Normal prior and eight observations of variance 1."""
    first, second = np.arange(12.0).reshape(4, 3), np.arange(12.0).reshape(4, 3) ** 2

    def declare(part: int) -> svmp.Model:
        with svmp.Model(coords={"pixel": ["a", "b", "c"]}) as model:
            mu = svmp.Normal("mu", mu=0, tau=1, dims="pixel")
            svmp.Normal("y", mu=mu, tau=1, dims="pixel", observed=first[part])
            svmp.Normal("y2", mu=mu, tau=1, dims="pixel", observed=second[part])
        return model

    assert sharing([declare(part) for part in range(4)]).shared == ("mu",)
    fit = svmp.fit(svmp.Parts(declare, list(range(4))))
    np.testing.assert_allclose(fit.mean("mu"), (first + second).sum(axis=0) / 9, rtol=1e-12)


def test_label_in_two_parts_is_refused_for_own_variables() -> None:
    with pytest.raises(svmp.ModelError, match=r"'b' of dimension 'group' is in part 0 and"):
        sharing([effects(["a", "b"]), effects(["b", "c"])], own=["effect"])


def test_shared_variable_below_an_own_one_is_refused() -> None:
    with pytest.raises(svmp.ModelError, match="'effect' is shared by all parts, but depends on"):
        sharing([effects(["a"]), effects(["b"])], own=["mu"])


def test_network_without_shared_variables_is_refused() -> None:
    with pytest.raises(svmp.ModelError, match="nothing to learn from each other"):
        sharing([effects(["a"]), effects(["b"])], own=["mu", "effect"])


@pytest.mark.parametrize("named", [{"own": ["x"]}, {"shared": "nothing"}])
def test_unknown_names_are_refused(named: dict[str, Any]) -> None:
    with pytest.raises(svmp.ModelError, match="no hidden variable and no dimension"):
        sharing([effects(["a"]), effects(["b"])], **named)


def test_variable_named_twice_is_refused() -> None:
    with pytest.raises(svmp.ModelError, match="own and shared both name"):
        sharing([effects(["a"]), effects(["b"])], own=["effect"], shared=["effect"])


def test_different_networks_are_refused() -> None:
    with pytest.raises(svmp.ModelError, match=r"'other' is missing.* in part 0"):
        sharing([effects(["a"]), effects(["b"], name="other")])

    def gamma() -> svmp.Model:
        with svmp.Model() as model:
            mu = svmp.Gamma("mu", alpha=1, beta=1)
            svmp.Poisson("y", mu=mu, dims="row", observed=[1, 2])
        return model

    def normal() -> svmp.Model:
        with svmp.Model() as model:
            mu = svmp.Normal("mu", mu=0, tau=1)
            svmp.Normal("y", mu=mu, tau=1, dims="row", observed=[1, 2])
        return model

    with pytest.raises(svmp.ModelError, match="the density of 'mu' is Normal in part 1 and"):
        sharing([gamma(), normal()])


def test_labels_in_some_parts_only_are_refused() -> None:
    with pytest.raises(svmp.ModelError, match="labels in some parts and none in others"):
        sharing([effects(["a", "b"]), effects(2)])


@pytest.mark.parametrize(
    ("labels", "kinds"),
    [
        (["1", "4"], "strings in part 1 and numbers"),
        ([b"1", b"4"], "bytes in part 1 and numbers"),
        ([date(2024, 1, 1), date(2024, 1, 2)], "dates in part 1 and numbers"),
    ],
)
def test_labels_of_other_types_are_refused(labels: list[Any], kinds: str) -> None:
    """The user "1" of one part must not silently differ from the user 1 of another."""
    with pytest.raises(svmp.ModelError, match=f"labels of dimension 'group' are {kinds}"):
        sharing([effects([1, 2]), effects(labels)])
    assert sharing([effects([1, 2]), effects([3.0, 2.0])]).shared == ("mu", "effect")


def test_values_along_a_dim_whose_labels_differ_are_refused() -> None:
    def topic(words: list[str]) -> svmp.Model:
        with svmp.Model(coords={"word": words}) as model:
            p = svmp.Dirichlet("p", a=1, dims="word")
            svmp.Categorical("w", p=p, dims="token", observed=[0, 1, 1])
        return model

    parts = svmp.Parts(topic, [["a", "b"], ["b", "c"]])
    with pytest.raises(svmp.ModelError, match="give every part all labels of 'word'"):
        svmp.fit(parts)


def test_numbers_along_a_dim_whose_labels_differ_are_refused() -> None:
    def prior(items: list[str]) -> svmp.Model:
        with svmp.Model(coords={"item": items}) as model:
            mu = svmp.Normal("mu", mu=np.arange(len(items)), tau=1, dims="item")
            svmp.Normal("y", mu=mu[[0, 1, 1]], tau=1, dims="row", observed=[0.0, 1.0, 1.5])
        return model

    with pytest.raises(svmp.ModelError, match="'mu' has numbers along 'item'"):
        svmp.fit(svmp.Parts(prior, [["a", "b"], ["b", "c"]]))
    same = svmp.fit(svmp.Parts(prior, [["a", "b"], ["a", "b"]]))
    assert same.status == "converged"


def test_errors_of_the_function_that_declares_name_the_part() -> None:
    def declare(part: Any) -> svmp.Model:
        with svmp.Model() as model:
            mu = svmp.Normal("mu", mu=0, tau=1)
            svmp.Normal("y", mu=mu, tau=1, dims="row", observed=part)
        return model

    with pytest.raises(svmp.ModelError, match=r"part 1: 'y' holds nan"):
        svmp.fit(svmp.Parts(declare, [[1.0, 2.0], [np.nan, 1.0]]))
    with pytest.raises(svmp.ModelError, match="must return its model"):
        svmp.fit(svmp.Parts(lambda part: None, [[1.0]]))
    with pytest.raises(svmp.ModelError, match="declare must be a function"):
        svmp.Parts(declare([1.0]), [[1.0]])  # type: ignore[arg-type]


def test_labels_as_arrays() -> None:
    assert as_labels(["b", "a"]).dtype.kind == "U"
    assert as_labels(range(3)).dtype.kind == "i"
    assert as_labels([1, "a"]).dtype == object
    assert as_labels([(1, 2), (3, 4)]).dtype == object
    assert is_disjoint([as_labels([1, 2]), as_labels([3])])
    assert not is_disjoint([as_labels([(1, 2)]), as_labels(["a", (1, 2)])])


def test_places_of_elements() -> None:
    assert element_places(["i", "k"], [2, 2], [2, 2], {}) is None
    found = element_places(["i", "k"], [2, 2], [4, 2], {"i": np.array([3, 0])})
    assert found is not None
    assert found.tolist() == [6, 7, 0, 1]


@pytest.mark.parametrize("counts", [[3, 3, 5, 5], [3, 4, 5, 5], [1, 1, 0, 0], [1, 0, 0, 1], []])
def test_packed_counts_are_unpacked(counts: list[int]) -> None:
    packed = ChildCounts.of(np.array(counts, dtype=np.int64), 2)
    assert packed.unpacked().tolist() == counts
    assert packed.total == sum(counts)


@pytest.mark.parametrize("dim", ["group", "item"])
def test_a_function_that_changes_its_mind_is_refused(dim: str) -> None:
    """Labels from a set have another order in every process, and results would be mixed up."""
    calls = []

    def declare(part: Any) -> svmp.Model:
        calls.append(part)
        turn = -1 if len(calls) > 3 else 1
        labels = {"group": [f"{part}{i}" for i in range(3)], "item": ["x", "y", "z"]}
        labels[dim] = labels[dim][::turn]
        with svmp.Model(coords=labels) as model:
            a = svmp.Normal("a", mu=0, tau=1, dims="group")
            b = svmp.Normal("b", mu=0, tau=1, dims="item")
            svmp.Normal("y", mu=a + b, tau=1, dims=("group", "item"), observed=np.ones((3, 3)))
        return model

    says = f"other labels along '{dim}' when it was called again.* the same model each time"
    with pytest.raises(svmp.ModelError, match=says):
        svmp.fit(svmp.Parts(declare, ["p", "q"]))


def test_an_error_of_the_function_itself_names_the_part() -> None:
    def declare(part: Any) -> svmp.Model:
        return svmp.Model(coords={"row": 1 // part})

    with pytest.raises(ZeroDivisionError) as caught:
        svmp.fit(svmp.Parts(declare, [0]))
    assert caught.value.__notes__ == ["The function that declares a part was called with part 0."]
