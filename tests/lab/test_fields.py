"""What the page may ask for: each field checked, by a sentence; nothing else gets through."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import svmp
from svmp.datasets import netflix_shaped
from svmp.lab.data import find_sources
from svmp.lab.fields import FIELDS, POLICIES, Refused
from svmp.lab.plan import POINTS, make, read_plan

from .conftest import CHILDREN, PAPER, SMALL

SOURCES = find_sources()
STEPS: dict[str, tuple[dict[str, Any], Any]] = {
    "RobbinsMonro": ({"kappa": 0.7, "rho1": "1/512"}, svmp.RobbinsMonro(kappa=0.7, rho1=1 / 512)),
    "HoldThenDecay": ({"hold": 3, "kappa": 1}, svmp.HoldThenDecay(hold=3, kappa=1)),
    "Nodewise": ({"c": 0.25, "kappa": 0.6}, svmp.Nodewise(c=0.25, kappa=0.6)),
    "Grow": ({"start": 2, "rate": 1.5, "c": 1}, svmp.Grow(start=2, rate=1.5, c=1)),
    "Constant": ({"rho": "1/3"}, svmp.Constant(1 / 3)),
}


def errors(settings: Any) -> dict[str, str]:
    with pytest.raises(Refused) as refused:
        read_plan(settings, SOURCES)
    return refused.value.errors


def test_there_is_a_test_for_every_policy() -> None:
    assert STEPS.keys() == POLICIES.keys()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("option", ["a", "b"])
def test_algorithm_1(policy: str, option: str) -> None:
    fields, steps = STEPS[policy]
    settings = CHILDREN | {"C": 7, "option": option, "policy": policy} | fields
    if policy == "Grow":
        del settings["C"]
    plan = read_plan(settings, SOURCES)
    assert make(plan.steps) == steps
    assert make(plan.method) == svmp.Children(1 if policy == "Grow" else 7, option=option)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "Grow"])
def test_algorithm_2(policy: str) -> None:
    fields, steps = STEPS[policy]
    batch = SMALL | {"algorithm": "batch", "size": 50, "option": "b", "policy": policy}
    plan = read_plan(batch | fields, SOURCES)
    assert make(plan.steps) == steps
    assert make(plan.method) == svmp.Batch(50, option="b")


def test_full_vb_and_the_default_have_no_steps() -> None:
    full = read_plan(SMALL | {"algorithm": "full"}, SOURCES)
    assert make(full.method) == svmp.FullVB()
    assert full.steps is None
    default = read_plan(SMALL, SOURCES)
    assert default.method is default.steps is None


WRONG: list[tuple[str, Any, str]] = [
    ("data", "/etc/passwd", "data must be one of netflix-shaped"),
    ("scale", 2, "scale must be a number from 0.001 to 1"),
    ("scale", "1/0", "scale must be a number"),
    ("scale", 0, "scale must be"),
    ("factors", 51, "factors must be a whole number from 1 to 50"),
    ("factors", 2.5, "whole"),
    ("factors", True, "whole"),
    ("factors", "many", "whole"),
    ("factors", None, "whole"),
    ("factors", [5], "whole"),
    ("algorithm", "Algorithm 1", "algorithm must be one of default, full, children, batch"),
    ("algorithm", ["children"], "algorithm must be one of"),
    ("option", "c", "option must be one of a, b"),
    ("C", 0, "C must be a whole number from 1"),
    ("policy", "__class__", "policy must be one of RobbinsMonro"),
    ("rho1", 0, "rho1 must be a number from 0.0001 to 1"),
    ("rho1", "1/2/3", "rho1 must be"),
    ("rho1", float("nan"), "rho1 must be"),
    ("sweeps", float("inf"), "sweeps must be"),
    ("sweeps", -1, "sweeps must be"),
    ("sweeps", 10**400, "sweeps must be"),
    ("seed", -1, "seed must be a whole number from 0 to 2,147,483,647"),
]


@pytest.mark.parametrize(("name", "value", "says"), WRONG)
def test_a_wrong_value_is_refused_by_name(name: str, value: Any, says: str) -> None:
    assert says in errors(PAPER | {name: value})[name]


@pytest.mark.parametrize("name", PAPER)
def test_a_missing_field_is_named(name: str) -> None:
    assert errors({key: PAPER[key] for key in PAPER if key != name})[name] == f"{name} is missing"


@pytest.mark.parametrize("name", ["size", "rho", "path", "__init__", "x" * 1000])
def test_a_field_that_the_run_has_not_is_refused(name: str) -> None:
    assert "not a setting" in errors(PAPER | {name: 1})[name[:40]]


def test_every_wrong_field_is_named_at_once() -> None:
    assert errors(PAPER | {"C": 0, "seed": "?", "size": 3}).keys() == {"C", "seed", "size"}


@pytest.mark.parametrize("kappa", [0.5, 0.3, 1.1, -1])
def test_kappa_is_refused_in_the_librarys_own_words(kappa: float) -> None:
    with pytest.raises(svmp.ModelError) as error:
        svmp.RobbinsMonro(kappa=kappa)
    sentence = errors(PAPER | {"kappa": kappa})["kappa"]
    assert sentence == str(error.value).removesuffix("; force=True takes it all the same")
    assert "only for 1/2 < kappa <= 1" in sentence


def test_grow_goes_with_children_as_the_library_says() -> None:
    fields, steps = STEPS["Grow"]
    batch = SMALL | {"algorithm": "batch", "size": 50, "option": "a", "policy": "Grow"} | fields
    with pytest.raises(svmp.ModelError) as error:
        steps.method_at(svmp.Batch(50), 1)
    assert errors(batch) == {"policy": str(error.value)}


@pytest.mark.parametrize("settings", [None, [], 3, "children", {}])
def test_what_are_no_settings_at_all(settings: Any) -> None:
    assert errors(settings)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted({*FIELDS, "data"})), JSON) | JSON, st.booleans())
def test_anything_is_either_refused_or_can_be_run(some: Any, filled: bool) -> None:
    settings = PAPER | some if filled and isinstance(some, dict) else some
    try:
        plan = read_plan(settings, SOURCES)
    except Refused as refused:
        json.dumps(refused.errors)
        return
    make(plan.method), make(plan.steps)
    compile(plan.script(), "script", "exec")
    assert plan.label
    assert plan.options["bound_every"] >= 1


@pytest.mark.parametrize(("C", "sweeps"), [(1, 20), (1, 500), (5, 200), (50, 100), (100_000, 500)])
def test_the_bound_is_computed_often_enough_for_a_picture_and_no_more(C: int, sweeps: int) -> None:
    """An iteration reads min(C, N_i) ratings for each element, a sweep all of them twice."""
    plan = read_plan(PAPER | {"scale": 0.01, "C": C, "sweeps": sweeps}, SOURCES)
    ratings = netflix_shaped(0.01)
    counts = np.concatenate([np.bincount(ratings.user), np.bincount(ratings.item)])
    iterations = sweeps * 2 * len(ratings.rating) / np.minimum(counts, C).sum()
    bounds = iterations / plan.options["bound_every"]
    assert min(iterations / 2, 0.8 * POINTS) <= bounds <= 4 * POINTS
