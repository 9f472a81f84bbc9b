"""Finds the factors by listing their folder, so that new files are tested automatically."""

from __future__ import annotations

import pytest

from svmp import factors
from svmp.factors.factor import Factor
from tests.examples import implementations


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    classes = implementations(factors, Factor)
    if "factor" in metafunc.fixturenames:
        metafunc.parametrize("factor", [cls() for cls in classes], ids=lambda f: type(f).__name__)
    if "factor_and_slot" in metafunc.fixturenames:
        pairs = [(cls(), slot) for cls in classes for slot in cls.slots]
        ids = [f"{type(factor).__name__}-{slot}" for factor, slot in pairs]
        metafunc.parametrize("factor_and_slot", pairs, ids=ids)
