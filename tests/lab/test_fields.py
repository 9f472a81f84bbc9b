"""Every field that the page sends is checked, and refused by a sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import svmp
from svmp.datasets import netflix_shaped
from svmp.inference import methods, steps
from svmp.inference.methods.settings import Setting
from svmp.lab.choices import form, policies
from svmp.lab.data import find_sources
from svmp.lab.fields import InvalidFields
from svmp.lab.request import POINTS, make, read_request
from svmp.study.choices import defaults

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
    with pytest.raises(InvalidFields) as refused:
        read_request(settings, SOURCES)
    return refused.value.errors


def test_there_is_a_test_for_every_policy() -> None:
    assert STEPS.keys() == policies().keys()


@pytest.mark.parametrize("policy", policies())
@pytest.mark.parametrize("option", ["a", "b"])
def test_algorithm_1(policy: str, option: str) -> None:
    parameters, expected = STEPS[policy]
    settings = CHILDREN | {"C": 7, "option": option, "policy": policy} | parameters
    if policy == "Grow":
        del settings["C"]
    request = read_request(settings, SOURCES)
    assert make(request.steps) == expected
    assert make(request.method) == svmp.Children(1 if policy == "Grow" else 7, option=option)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", [name for name in policies() if name != "Grow"])
def test_algorithm_2(policy: str) -> None:
    parameters, expected = STEPS[policy]
    batch = SMALL | {"algorithm": "batch", "size": 50, "option": "b", "policy": policy}
    request = read_request(batch | parameters, SOURCES)
    assert make(request.steps) == expected
    assert make(request.method) == svmp.Batch(50, option="b")


def test_full_vb_and_the_default_have_no_steps() -> None:
    full = read_request(SMALL | {"algorithm": "full"}, SOURCES)
    assert make(full.method) == svmp.FullVB()
    assert full.steps is None
    default = read_request(SMALL, SOURCES)
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
def test_an_invalid_value_is_refused(name: str, value: Any, says: str) -> None:
    assert says in errors(PAPER | {name: value})[name]


@pytest.mark.parametrize("name", PAPER)
def test_a_missing_field_is_refused(name: str) -> None:
    assert errors({key: PAPER[key] for key in PAPER if key != name})[name] == f"{name} is missing"


@pytest.mark.parametrize("name", ["size", "rho", "path", "__init__", "x" * 1000])
def test_an_unknown_field_is_refused(name: str) -> None:
    assert "not a setting" in errors(PAPER | {name: 1})[name[:40]]


def test_all_invalid_fields_are_reported_together() -> None:
    assert errors(PAPER | {"C": 0, "seed": "?", "size": 3}).keys() == {"C", "seed", "size"}


@pytest.mark.parametrize("kappa", [0.5, 0.3, 1.1, -1])
def test_kappa_is_refused_with_the_message_of_the_library(kappa: float) -> None:
    with pytest.raises(svmp.ModelError) as error:
        svmp.RobbinsMonro(kappa=kappa)
    sentence = errors(PAPER | {"kappa": kappa})["kappa"]
    assert sentence == str(error.value).removesuffix("; force=True takes it all the same")
    assert "only for 1/2 < kappa <= 1" in sentence


def test_grow_without_children_is_refused_with_the_message_of_the_library() -> None:
    parameters, grow = STEPS["Grow"]
    batch = SMALL | {"algorithm": "batch", "size": 50, "option": "a", "policy": "Grow"} | parameters
    with pytest.raises(svmp.ModelError) as error:
        grow.method_at(svmp.Batch(50), 1)
    assert errors(batch) == {"policy": str(error.value)}


@pytest.mark.parametrize("settings", [None, [], 3, "children", {}])
def test_settings_of_another_type_are_refused(settings: Any) -> None:
    assert errors(settings)


FORM = form()
NAMES = sorted({*PAPER, *(f["name"] for f in FORM["algorithmFields"] + FORM["policyFields"])})
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(NAMES), JSON) | JSON, st.booleans())
def test_any_settings_are_either_refused_or_can_be_run(some: Any, filled: bool) -> None:
    settings = PAPER | some if filled and isinstance(some, dict) else some
    try:
        request = read_request(settings, SOURCES)
    except InvalidFields as refused:
        json.dumps(refused.errors)
        return
    make(request.method), make(request.steps)
    compile(request.script(), "script", "exec")
    assert request.label
    assert request.options["bound_every"] >= 1


@pytest.mark.parametrize(("C", "sweeps"), [(1, 20), (1, 500), (5, 200), (50, 100), (100_000, 500)])
def test_the_bound_is_computed_often_enough_for_a_smooth_line(C: int, sweeps: int) -> None:
    """An iteration reads min(C, N_i) ratings for each element, a sweep all of them twice."""
    request = read_request(PAPER | {"scale": 0.01, "C": C, "sweeps": sweeps}, SOURCES)
    ratings = netflix_shaped(0.01)
    counts = np.concatenate([np.bincount(ratings.user), np.bincount(ratings.item)])
    iterations = sweeps * 2 * len(ratings.rating) / np.minimum(counts, C).sum()
    bounds = iterations / request.options["bound_every"]
    assert min(iterations / 2, 0.8 * POINTS) <= bounds <= 4 * POINTS


@dataclass(frozen=True)
class Halving(steps.Policy):
    """Steps that halve at regular intervals."""

    title: ClassVar[str] = "Halving"
    settings: ClassVar[dict[str, Setting]] = {
        "interval": Setting(10, 1, 1000, "Iterations to halve", whole=True)
    }
    interval: int = 10

    def __call__(self, context: svmp.StepContext) -> float:
        return 0.5 ** (context.iteration // self.interval)

    @property
    def label(self) -> str:
        return f"steps that halve every {self.interval} iterations"


@dataclass(frozen=True)
class Pairs(svmp.Children):
    """Two children each."""

    title: ClassVar[str] = "Two children each"
    settings: ClassVar[dict[str, Setting]] = {}
    C: int = 2  # type: ignore[assignment]


def test_a_policy_that_is_added_to_the_list_is_in_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "POLICIES", (*steps.POLICIES, Halving))
    settings = CHILDREN | {"policy": "Halving", "interval": 3}
    request = read_request(settings, SOURCES)
    assert make(request.steps) == Halving(3)
    assert request.label == "Algorithm 1 (a), C = 1, steps that halve every 3 iterations"
    assert errors(settings | {"interval": 0}) == {
        "interval": "interval must be a whole number from 1 to 1,000"
    }
    shown = form()
    assert shown["policies"][-1]["title"] == "Halving"
    (field,) = (f for f in shown["policyFields"] if f["name"] == "interval")
    assert (field["label"], field["default"]) == ("Iterations to halve", 10)
    assert field["condition"] == "policy:Halving"


def test_a_method_that_is_added_to_the_list_is_in_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "METHODS", (*methods.METHODS, Pairs))
    steps = {"policy": "Constant", "rho": "1/2"}
    request = read_request(SMALL | {"algorithm": "pairs", "option": "b"} | steps, SOURCES)
    assert make(request.method) == Pairs(option="b")
    assert form()["algorithms"][-1]["title"] == "Two children each"
    assert form()["withOption"] == "algorithm:children,batch,pairs"


@pytest.mark.parametrize("cls", [*methods.METHODS, *steps.POLICIES])
def test_the_form_starts_with_the_defaults_of_the_library(cls: type) -> None:
    """Where a parameter has a default and not None, the form starts with it."""
    own = {f.name: f.default for f in fields(cls) if isinstance(f.default, int | float)}
    shown = defaults(cls)
    assert {name: shown[name] for name in own if name in shown} == {
        name: own[name] for name in shown if name in own
    }


def test_names_of_fields_have_one_meaning() -> None:
    names = [f["name"] for f in FORM["algorithmFields"] + FORM["policyFields"]]
    assert len(names) == len({*names})
    assert not {*names} & {*SMALL, "option", "policy"}
