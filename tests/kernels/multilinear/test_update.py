"""Checks of updated elements."""

from __future__ import annotations

import numpy as np
import pytest

from svmp.families import Normal
from svmp.kernels.multilinear.update import are_normals
from tests.examples import natural_of


@pytest.mark.parametrize("wrong", [(np.nan, -1), (np.inf, -1), (0, 0), (0, 1), (0, -np.inf)])
def test_improper_normals_are_detected(wrong):
    natural = natural_of(Normal(), np.random.default_rng(0), 12)
    assert are_normals(natural, 6, 3)
    natural[7] = wrong
    assert not are_normals(natural, 6, 3)
    assert are_normals(natural, 0, 6)
    assert are_normals(natural, 9, 3)
    assert not Normal().in_domain(natural[7])
