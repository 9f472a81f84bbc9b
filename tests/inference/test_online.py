"""Online inference: one q on a sequence of networks."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.inference.online import Online
from tests.inference.tools import gallery


@pytest.mark.parametrize("name", ["04 paper", "05", "07", "09"])
def test_unit_steps_on_one_network_are_full_vb(name: str) -> None:
    model = gallery()[name]
    run = Online(svmp.Constant(1.0), tell=False)
    for _ in range(3):
        run.advance(model)
    fit = svmp.fit(model, svmp.FullVB(), max_sweeps=3, tol=0)
    for variable, q in run.posteriors.items():
        if variable != "z":  # its turn is before that of the others
            np.testing.assert_allclose(q.mean, fit.mean(variable), rtol=1e-6, atol=1e-9)


def test_copies_share_nothing_that_changes() -> None:
    class Careful:
        statistics = True

        def __call__(self, context: svmp.StepContext) -> float:
            return 0.5

    run = Online(Careful(), tell=False)
    run.advance(gallery()["04 paper"])
    other = run.copy()
    assert run.state is not None
    before = run.state.statistics.gradient["u"].copy()
    natural = run.state.q.natural["u"].copy()
    other.advance(gallery()["04 paper"])
    assert np.array_equal(run.state.statistics.gradient["u"], before)
    assert np.array_equal(run.state.q.natural["u"], natural)
    assert run.iteration == 1
