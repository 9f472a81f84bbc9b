"""Finds the factors by listing their folder, so that new files are tested automatically."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from svmp import factors
from svmp.factors.factor import Factor


def factor_classes() -> list[type[Factor]]:
    modules = [
        importlib.import_module(f"{factors.__name__}.{info.name}")
        for info in pkgutil.iter_modules(factors.__path__)
    ]
    return [
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, type)
        and Factor in thing.__mro__[1:]
        and thing.__module__ == module.__name__
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    classes = factor_classes()
    if "factor" in metafunc.fixturenames:
        metafunc.parametrize("factor", [cls() for cls in classes], ids=lambda f: type(f).__name__)
    if "factor_and_slot" in metafunc.fixturenames:
        pairs = [(cls(), slot) for cls in classes for slot in cls.slots]
        ids = [f"{type(factor).__name__}-{slot}" for factor, slot in pairs]
        metafunc.parametrize("factor_and_slot", pairs, ids=ids)
