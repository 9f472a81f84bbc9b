"""Finds the families by listing their folder, so that new files are tested automatically."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from svmp import families
from svmp.families.family import Family
from tests.examples import implementations

COUNT = 6
LENGTH = 3


def instances(cls: type[Family]) -> list[tuple[str, Family]]:
    """Return families to test, with names; of counts, with 1, 7 and different numbers of trials."""
    family, name = cls.sized(LENGTH), cls.__name__
    if "trials" not in {f.name for f in fields(family)}:  # type: ignore[arg-type]
        return [(name, family)]
    return [
        (f"{name}-1-trial", family),
        (f"{name}-7-trials", replace(family, trials=7)),  # type: ignore[type-var]
        (f"{name}-1..6-trials", replace(family, trials=np.arange(1, COUNT + 1))),  # type: ignore[type-var]
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "family" in metafunc.fixturenames:
        cases = [case for cls in implementations(families, Family) for case in instances(cls)]
        metafunc.parametrize("family", [pytest.param(family, id=name) for name, family in cases])
    if "family_class" in metafunc.fixturenames:
        classes = implementations(families, Family)
        metafunc.parametrize("family_class", classes, ids=[cls.__name__ for cls in classes])
