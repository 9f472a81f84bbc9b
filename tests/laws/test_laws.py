"""Laws hold on a few hundred drawn networks; `make laws` tries more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .case import Case
from .grammar import networks
from .spec import Spec
from .trials import tried


@pytest.mark.parametrize("seed", range(4))
def test_laws_hold_on_drawn_networks(seed: int) -> None:
    report = tried(seconds=600, first_seed=seed, examples=50)
    assert not report.failures, str(report)


@pytest.mark.parametrize("seed", [1])
def test_laws_of_exact_answers_hold(seed: int) -> None:
    report = tried(seconds=600, first_seed=seed, only="exact|evidence", examples=60)
    assert not report.failures, str(report)


@settings(max_examples=40, deadline=None)
@given(networks(), st.data())
def test_printed_code_runs_on_its_own(spec: Spec, data: st.DataObject) -> None:
    """The code of a network, with its arrays as numbers, declares the network that is built."""
    scope: dict = {}
    exec(spec.code(), scope)
    case = Case(spec, data.draw)
    assert str(scope["model"]) == str(case.model())
    for name, variable in scope["model"].variables.items():
        built = case.model()[name].observed
        if variable.observed is None:
            assert built is None
        else:
            assert str(variable.observed) == str(built)
