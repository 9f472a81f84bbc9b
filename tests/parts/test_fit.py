"""A fit over parts is the same coordinate ascent as a fit to the undivided table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from tests.parts.gallery import GALLERY_CASES
from tests.parts.networks import CASES, Case, cut, factorization, joined, mixture, schools, topics

ALL = CASES | GALLERY_CASES
FAST = ("mixture", "factorization with biases", "topics", "schools")


def fitted(model: Any, case: Case, joint: bool = False, **options: Any) -> svmp.Fit:
    method = svmp.Growing(1.0, order=case.order) if joint else svmp.FullVB(order=case.order)
    given = {"init": case.init, "tol": 0, "max_sweeps": 6} | options
    return svmp.fit(model, method, **given)


@pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "plain"])
@pytest.mark.parametrize("name", ALL)
def test_full_vb_over_parts_has_the_bounds_of_the_undivided_table(name: str, kernels: bool) -> None:
    case = ALL[name]()
    parts = fitted(case.divided(), case, kernels=kernels)
    whole = fitted(case.declare(case.whole), case, kernels=kernels)
    # Rows of a logit send tangents: in single precision if compiled, else new ones in each visit.
    rtol = 1e-12 if name != "events" else 1e-8 if kernels else 1e-3
    np.testing.assert_allclose(parts.trace["bound"], whole.trace["bound"], rtol=rtol)
    assert np.all(np.diff(parts.trace["bound"]) >= -1e-9 * np.abs(parts.bound))
    assert parts.accesses == whole.accesses
    for variable in whole.posteriors:
        here, there = parts.posteriors[variable], whole.posteriors[variable]
        assert here.dims == there.dims
        if name != "events":
            np.testing.assert_allclose(here.natural, there.natural, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_joint_solutions_converge_to_the_bound_of_the_undivided_table(name: str) -> None:
    case = CASES[name]()
    options = {"joint": True, "tol": 1e-10, "max_sweeps": 500}
    parts = fitted(case.divided(), case, **options)
    whole = fitted(case.declare(case.whole), case, **options)
    slow = name.startswith("factorization")  # rotations of the factors converge slowly
    assert parts.bound == pytest.approx(whole.bound, rel=2e-3 if slow else 1e-6)
    assert np.all(np.diff(parts.trace["bound"]) >= -1e-9 * np.abs(parts.bound))


@pytest.mark.parametrize("name", FAST)
def test_bits_do_not_depend_on_memory_or_threads(name: str) -> None:
    case = CASES[name]()
    groups = len(case.parts)
    first = fitted(case.divided(groups=groups), case)
    for options, threads in (({"memory": 1}, 2), ({"memory": "1GB"}, 1)):
        again = fitted(case.divided(groups=groups, **options), case, threads=threads)
        assert again.trace["bound"].tolist() == first.trace["bound"].tolist()
        for variable in first.posteriors:
            assert np.array_equal(again[variable].natural, first[variable].natural)


@pytest.mark.parametrize("groups", [1, 2, 3, 8])
def test_groups_change_the_result_by_rounding_alone(groups: int) -> None:
    case = factorization(biases=True)
    parts = cut(case.whole, case.whole["user"] % 7)
    case = replace(case, parts=parts, whole=joined(parts))
    whole = fitted(case.declare(case.whole), case)
    fit = fitted(svmp.Parts(case.declare, parts, groups=groups), case)
    np.testing.assert_allclose(fit.trace["bound"], whole.trace["bound"], rtol=1e-12)


def test_own_variables_that_are_not_kept_are_optimised_anew() -> None:
    case = factorization()
    options = {"init": {"v": case.init["v"]}, "tol": 0, "max_sweeps": 8}
    method = svmp.Growing(1.0, relax=False)  # what is not kept cannot be relaxed
    kept = svmp.fit(case.divided(), method, **options)
    anew = svmp.fit(case.divided(keep="none"), method, **options)
    np.testing.assert_allclose(anew["v"].mean, kept["v"].mean, rtol=1e-9)  # one solution each
    assert anew.bound >= kept.bound  # users are those of the last items


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_groups_that_are_not_kept_start_at_their_prior() -> None:
    """Own variables whose parents are own variables, of which nothing is known at the start."""

    def declare(seed: int) -> svmp.Model:
        rng = np.random.default_rng(seed)
        levels = [f"{seed}-{i}" for i in range(5)]
        with svmp.Model(coords={"row": 20, "level": levels}) as model:
            a, tau = svmp.Normal("a", 0, 1), svmp.Gamma("tau", 1, 1)
            middle = svmp.Normal("middle", a, tau, dims="level")
            b = svmp.Normal("b", middle, 2.0, dims="level")
            key = svmp.data(rng.integers(0, 5, 20), dims="row")
            svmp.Normal("y", b[key], 1.0, dims="row", observed=rng.normal(size=20))
        return model

    kept, anew = (
        svmp.fit(svmp.Parts(declare, [1, 2, 3], shared=["a", "tau"], keep=keep), tol=1e-8)
        for keep in ("memory", "none")
    )
    assert anew.mean("a") == pytest.approx(float(kept.mean("a")), abs=1e-3)


@pytest.mark.parametrize("name", CASES)
def test_default_converges(name: str) -> None:
    case = CASES[name]()
    fit = svmp.fit(case.divided(), tol=1e-4, max_sweeps=2000)
    assert fit.status == "converged"
    assert np.isfinite(fit.bound)


def test_growing_visits_nested_sets_of_parts() -> None:
    method, sizes = svmp.Growing(1 / 16), np.full(16, 100)
    visited = [set(method.visited_parts(sizes, 0, t).tolist()) for t in range(1, 12)]
    assert len(visited[0]) == 1
    assert all(a <= b for a, b in pairwise(visited))
    assert len(visited[-1]) == 16


def test_one_part_is_a_fit_to_one_table() -> None:
    case = schools()
    one = fitted(svmp.Parts(case.declare, [case.whole], own=case.own), case)
    assert one.bound == pytest.approx(fitted(case.declare(case.whole), case).bound, rel=1e-12)


@pytest.mark.parametrize("make", [mixture, topics, schools])
def test_empty_part_changes_nothing(make: Callable[[], Case]) -> None:
    case = make()
    empty = {k: v[:0] for k, v in case.whole.items()}
    parts = [*case.parts[:2], empty, *case.parts[2:]]
    fit = fitted(svmp.Parts(case.declare, parts, own=case.own), case)
    assert fit.bound == pytest.approx(fitted(case.divided(), case).bound, rel=1e-12)


def test_parts_that_are_all_empty_are_refused() -> None:
    case = mixture()
    empty = {k: v[:0] for k, v in case.whole.items()}
    with pytest.raises(svmp.ModelError, match="no part has any rows"):
        svmp.fit(svmp.Parts(case.declare, [empty, empty]))


def items_of_each_part(part: dict[str, np.ndarray]) -> svmp.Model:
    """Declare a factorization with the items that the part has ratings of."""
    users, user = np.unique(part["user"], return_inverse=True)
    items, item = np.unique(part["item"], return_inverse=True)
    coords = {"user": users.tolist(), "item": items.tolist(), "factor": 2}
    with svmp.Model(coords=coords) as model:
        spread = svmp.Gamma("spread", alpha=1, beta=1, dims="factor")
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=spread, dims=("item", "factor"))
        b = svmp.Normal("b", mu=0, tau=0.1, dims="item")
        mean = b[item] + svmp.dot(u[user], v[item])
        svmp.Normal("r", mu=mean, tau=4, dims="rating", observed=part["rating"])
    return model


@pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "plain"])
def test_elements_with_the_same_label_are_the_same_in_all_parts(kernels: bool) -> None:
    rows = factorization().whole
    order = np.argsort(rows["user"] % 4, kind="stable")
    rows = {k: v[order] for k, v in rows.items()}
    parts = cut(rows, rows["user"] % 4)
    parts = [{k: v[p["item"] % 4 != i] for k, v in p.items()} for i, p in enumerate(parts)]
    whole = joined(parts)
    divided = svmp.Parts(items_of_each_part, parts)
    start = np.random.default_rng(3).normal(size=(40, 2))

    def run(model: Any, users: np.ndarray, items: np.ndarray) -> svmp.Fit:
        init = {"u": start[users], "v": start[items], "b": start[items, 0]}
        order = ("u", "v", "b", "spread")
        options = {"init": init, "tol": 0, "max_sweeps": 5, "kernels": kernels}
        return svmp.fit(model, svmp.FullVB(order=order), **options)

    labels = svmp.fit(divided, svmp.FullVB(), max_sweeps=1).coords
    there = run(items_of_each_part(whole), np.unique(whole["user"]), np.unique(whole["item"]))
    here = run(divided, np.array(labels["user"]), np.array(labels["item"]))
    assert here.bound == pytest.approx(there.bound, rel=1e-12)
    at = np.argsort(labels["item"])
    np.testing.assert_allclose(here.posteriors["v"].mean[at], there.posteriors["v"].mean, rtol=1e-8)


def test_checkpoint_of_parts_resumes_to_the_same_bits(tmp_path: Path) -> None:
    for case in (factorization(biases=True), topics()):
        path = tmp_path / f"{len(case.own)}{case.order[0]}.ckpt"
        whole = fitted(case.divided(), case, max_sweeps=8)
        fitted(case.divided(), case, max_sweeps=3, checkpoint=path, every=1)
        resumed = svmp.fit(case.divided(), resume=path, max_sweeps=8)
        assert resumed.trace["bound"].tolist() == whole.trace["bound"].tolist()
        for variable in whole.posteriors:
            assert np.array_equal(resumed[variable].natural, whole[variable].natural)


def test_checkpoint_of_other_parts_is_refused(tmp_path: Path) -> None:
    case, path = schools(), tmp_path / "run.ckpt"
    fitted(case.divided(), case, max_sweeps=2, checkpoint=path, every=1)
    other = [{**p, "score": p["score"] + 1} for p in case.parts]
    with pytest.raises(svmp.FileError, match="parts"):
        svmp.fit(svmp.Parts(case.declare, other), resume=path)


@pytest.mark.parametrize("name", ["mean and precision", "regression"])
@pytest.mark.parametrize("steps", [svmp.Constant(0.5), svmp.RobbinsMonro(0.7, tau=1)])
def test_shared_variables_take_the_steps_that_are_given(name: str, steps: Any) -> None:
    case = CASES[name]()
    parts = fitted(case.divided(groups=2), case, steps=steps)
    whole = fitted(case.declare(case.whole), case, steps=steps)
    np.testing.assert_allclose(parts.trace["bound"], whole.trace["bound"], rtol=1e-12)


@pytest.mark.parametrize("name", FAST)
def test_algorithm_2_with_parts_as_batches_is_sound(name: str) -> None:
    case = CASES[name]()
    rows = next(iter(case.whole.values()))
    method = svmp.Batch(size=len(rows) // 4)
    fit = svmp.fit(case.divided(), method, init=case.init, max_sweeps=30, tol=0)
    whole = svmp.fit(case.divided(), init=case.init, tol=1e-4)
    assert fit.status == "budget"
    assert fit.bound > fit.trace["bound"][0]
    assert fit.bound <= whole.bound + 0.05 * abs(whole.bound)


def test_methods_that_draw_rows_for_each_element_are_refused() -> None:
    with pytest.raises(svmp.ModelError, match="cannot visit parts"):
        svmp.fit(schools().divided(), svmp.Children(C=5))


def test_client_needs_parts() -> None:
    case = schools()
    with pytest.raises(svmp.ModelError, match="client= is for rows in parts"):
        svmp.fit(case.declare(case.whole), client=object())


def test_update_of_a_fit_over_parts() -> None:
    case = schools()
    fit = svmp.fit(svmp.Parts(case.declare, case.parts[:2]), tol=1e-9)
    more = fit.update(case.declare(case.parts[2]))
    assert more.status == "converged"
    assert len(more["theta"].mean) == 12


@pytest.mark.parametrize(
    "kernels", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["compiled", "plain"]
)
@pytest.mark.parametrize("name", CASES)
def test_memoized_ends_where_full_vb_stays(name: str, kernels: bool) -> None:
    case = CASES[name]()
    options = {"tol": 1e-6, "max_sweeps": 150, "kernels": kernels}
    fit = svmp.fit(case.divided(), svmp.Memoized(), init=case.init, **options)
    bounds = fit.trace["bound"]
    assert fit.status in ("converged", "budget")
    assert np.all(np.diff(bounds[5:]) >= -1e-7 * np.abs(bounds[-1]))  # groups start anew before
    whole = svmp.fit(case.divided(), svmp.Growing(1.0), init=fit, **options)
    slow = name.startswith("factorization")
    assert whole.bound == pytest.approx(fit.bound, rel=5e-2 if slow else 1e-4)


def test_memoized_checkpoint_resumes_to_the_same_bits(tmp_path: Path) -> None:
    case, path = topics(), tmp_path / "run.ckpt"
    whole = svmp.fit(case.divided(), svmp.Memoized(), init=case.init, tol=0, max_sweeps=12)
    svmp.fit(
        case.divided(),
        svmp.Memoized(),
        init=case.init,
        tol=0,
        max_sweeps=5,
        checkpoint=path,
        every=1,
    )
    resumed = svmp.fit(case.divided(), resume=path, max_sweeps=12)
    assert np.array_equal(resumed["phi"].natural, whole["phi"].natural)
    assert np.array_equal(resumed["theta"].natural, whole["theta"].natural)


def test_over_is_refused_where_rows_lie_in_parts() -> None:
    with pytest.raises(svmp.ModelError, match="leave out over='school'"):
        svmp.fit(schools().divided(), svmp.Memoized(over="school"))


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("part", [0, 1], ids=["largest part", "another part"])
def test_choices_are_stored_in_all_parts_if_rows_of_one_are_missing(part: int, groups: int) -> None:
    """Compiled loops store no choice where all rows are observed."""
    case = mixture()
    y = [p["y"].copy() for p in case.parts]
    y[part][:10] = np.nan

    def declare(rows: Any) -> svmp.Model:
        observed = {"y": np.ma.masked_invalid(rows["y"])}
        return case.declare(observed if np.isnan(rows["y"]).any() else rows)

    parts = [{"y": array} for array in y]
    here = fitted(svmp.Parts(declare, parts, groups=groups), case)
    there = fitted(declare(joined(parts)), case)
    np.testing.assert_allclose(here.trace["bound"], there.trace["bound"], rtol=1e-12)


@pytest.mark.parametrize("kernels", [False, True])
def test_own_variables_divided_along_their_second_dim_keep_their_dims(kernels: bool) -> None:
    rng = np.random.default_rng(11)
    group = np.repeat(np.arange(9), 12)
    kind = np.tile([0, 1], 54)
    table = {"group": group, "kind": kind, "y": rng.normal(group - 3.0 * kind, 1)}

    def declare(part: Any) -> svmp.Model:
        ids, key = np.unique(part["group"], return_inverse=True)
        with svmp.Model(coords={"kind": ["low", "high"], "group": ids}) as model:
            centre = svmp.Normal("centre", mu=0, tau=0.1, dims="kind")
            level = svmp.Normal("level", mu=centre, tau=1, dims=("kind", "group"))
            svmp.Normal("y", mu=level[part["kind"], key], tau=1, dims="row", observed=part["y"])
        return model

    def some(groups: list[int]) -> dict[str, np.ndarray]:
        chosen = np.isin(group, groups)
        return {name: values[chosen] for name, values in table.items()}

    parts = [some([0, 1]), some([2, 3, 4, 5]), some([6, 7, 8])]
    order, options = svmp.FullVB(order=("level", "centre")), {"tol": 0, "max_sweeps": 60}
    found = svmp.fit(svmp.Parts(declare, parts), order, kernels=kernels, **options)
    whole = svmp.fit(declare(table), order, kernels=kernels, **options)
    assert found["level"].dims == ("kind", "group")
    np.testing.assert_allclose(found.mean("level"), whole.mean("level"), rtol=1e-9)
    start = svmp.fit(
        svmp.Parts(declare, parts), order, init={"level": whole.mean("level")}, max_sweeps=1
    )
    assert start.mean("level").shape == (2, 9)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_components_stay_at_the_centres_in_init(seed: int) -> None:
    """Only centres are given, in any order; precisions start at the rows nearest to them."""
    rng, centres = np.random.default_rng(seed), np.array([-6.0, 0.0, 6.0])
    rows = rng.permutation(np.repeat(centres, 60) + rng.normal(size=180))

    def declare(part: Any) -> svmp.Model:
        with svmp.Model(coords={"component": 3, "row": len(part)}) as model:
            w = svmp.Dirichlet("w", a=1, dims="component")
            z = svmp.Categorical("z", p=w, dims="row")
            mu = svmp.Normal("mu", mu=0, tau=1e-4, dims="component")
            tau = svmp.Gamma("tau", alpha=1, beta=1, dims="component")
            svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=part)
        return model

    order = rng.permutation(3)
    parts = svmp.Parts(declare, np.split(rows, [80, 100]))
    fit = svmp.fit(parts, init={"mu": centres[order] + 0.5}, seed=seed)
    np.testing.assert_allclose(fit.mean("mu"), centres[order], atol=0.5)
