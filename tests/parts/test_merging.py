"""Parts in memory are put together into the network that their rows have in one table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.network.network import Network
from svmp.parts.description import PartDims
from svmp.parts.merging import merged
from svmp.parts.sharing import Sharing
from tests.parts.gallery import GALLERY_CASES
from tests.parts.networks import CASES, Case

ALL = CASES | GALLERY_CASES


def together(case: Case) -> svmp.Model | None:
    models = [case.declare(part) for part in case.parts]
    dims = [PartDims.of(f"part {i}", model) for i, model in enumerate(models)]
    found = merged(models, Sharing.of(dims, case.own or None))
    if found is None:
        return None
    model = svmp.Model()
    model.coords, model.variables = found.coords, found.variables
    return model


@pytest.mark.parametrize("name", ALL)
def test_networks_put_together_are_those_of_one_table(name: str) -> None:
    case = ALL[name]()
    model, whole = together(case), case.declare(case.whole)
    assert model is not None
    assert list(model.variables) == list(whole.variables)
    here, there = Network(model), Network(whole)
    for variable in whole.variables.values():
        mine = model.variables[variable.name]
        assert (mine.dims, mine.shape) == (variable.dims, variable.shape)
        assert mine.count == variable.count
    for hidden in there.hidden:
        assert np.array_equal(here.child_counts[hidden], there.child_counts[hidden])
    options = {"init": case.init, "tol": 0, "max_sweeps": 2, "kernels": False}
    method = svmp.FullVB(order=case.order)
    assert svmp.fit(model, method, **options).bound == svmp.fit(whole, method, **options).bound


def offsets(part: Any) -> svmp.Model:
    """Declare rows with a number that differs between parts and has no axis."""
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        svmp.Normal("y", mu=mu + part[0], tau=1, dims="row", observed=part[1])
    return model


def test_numbers_that_differ_between_parts_keep_them_apart() -> None:
    parts = [(1.0, [1.0, 2.0]), (3.0, [2.0, 4.0, 5.0])]
    models = [offsets(part) for part in parts]
    sharing = Sharing.of([PartDims.of("", m) for m in models])
    assert merged(models, sharing) is None
    fit = svmp.fit(svmp.Parts(offsets, parts))
    left = np.array([1 - 1.0, 2 - 1.0, 2 - 3.0, 4 - 3.0, 5 - 3.0])
    np.testing.assert_allclose(fit["mu"].mean, left.sum() / 6)


def test_parts_start_at_the_same_values_alone_and_together() -> None:
    case = CASES["football"]()
    runs = [
        svmp.fit(case.divided(groups=groups), svmp.FullVB(), tol=0, max_sweeps=3)
        for groups in (1, 2, 3)
    ]
    for run in runs[1:]:
        np.testing.assert_allclose(run.trace["bound"], runs[0].trace["bound"], rtol=1e-12)


def test_own_elements_that_do_not_follow_each_other_keep_parts_apart() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=30)
    key = np.repeat(np.arange(6), 5)

    def declare(groups: range) -> svmp.Model:
        mine = np.isin(key, groups)
        coords = {"group": list(groups), "kind": ["a", "b"], "row": int(mine.sum())}
        with svmp.Model(coords=coords) as model:
            mu = svmp.Normal("mu", mu=0, tau=1, dims="kind")
            effect = svmp.Normal("effect", mu=mu, tau=1, dims=("group", "kind"))
            other = svmp.Normal(
                "other", mu=svmp.data(np.zeros(2), dims="kind"), tau=1, dims=("kind", "group")
            )
            at, kind = key[mine] - groups[0], np.flatnonzero(mine) % 2
            mean = effect[at, kind] + other[kind, at]
            svmp.Normal("y", mu=mean, tau=1, dims="row", observed=y[mine])
        return model

    parts = [range(2), range(2, 5), range(5, 6)]
    order = ("effect", "other", "mu")
    init = {"effect": rng.normal(size=(6, 2))}
    options = {"tol": 1e-12, "max_sweeps": 400, "init": init}
    fit = svmp.fit(svmp.Parts(declare, parts), svmp.FullVB(order=order), **options)
    whole = svmp.fit(declare(range(6)), svmp.FullVB(order=order), **options)
    np.testing.assert_allclose(fit["mu"].mean, whole["mu"].mean, atol=1e-4)
    assert fit["other"].mean.size == 12
