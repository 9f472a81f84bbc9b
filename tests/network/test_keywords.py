"""Keyword arguments that a call does not have: a sentence with the one that was meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import svmp


def declare(y: Any = (1.0, 2.0, 4.0)) -> svmp.Model:
    with svmp.Model(coords={"row": 3}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        svmp.Normal("y", mu=mu, tau=1, dims="row", observed=y, missing=True)
    return model


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda f, m: svmp.fit(m, restart=3),
            "fit has no option 'restart'; did you mean 'restarts'",
        ),
        (lambda f, m: svmp.fit(m, random_seed=3), "'random_seed'; did you mean 'seed'"),
        (lambda f, m: svmp.fit(m, zzz=3), "'zzz'; there are model, method, steps,"),
        (lambda f, m: f.update(m, forgets=0.1), "update has no option 'forgets'.* 'forget'"),
        (lambda f, m: f.predict(m, "y", draw=10), "predict has no option 'draw'; .*'draws'"),
        (lambda f, m: f.summary(hdi_prob=0.9), "summary has no option 'hdi_prob'; .*'prob'"),
        (lambda f, m: f.to_frame("mu", backends="polars"), "to_frame has no option.*'backend'"),
        (lambda f, m: f.predict(m, "y").interval(probs=0.9), "interval has no option.*'prob'"),
        (lambda f, m: f.draw(["mu"], sizes=3), "draw has no option 'sizes'; .*'size'"),
        (lambda f, m: svmp.Model(coord={}), "Model has no option 'coord'; .*'coords'"),
        (lambda f, m: svmp.Parts(declare, [], memmory=1), "Parts has no option.*'memory'"),
        (lambda f, m: svmp.data([1.0], dim="row"), "data has no option 'dim'; .*'dims'"),
        (lambda f, m: svmp.parquet("x", row_group=True), "parquet has no option.*'row_groups'"),
        (lambda f, m: svmp.calibrate(declare, N=20), "fit has no option 'N'; there are"),
        (lambda f, m: svmp.prior_predictive(m, sized=2), "prior_predictive.*'size'"),
    ],
)
def test_an_unknown_keyword_is_refused(
    call: Callable[[svmp.Fit, svmp.Model], object], says: str
) -> None:
    model = declare()
    fit = svmp.fit(model)
    with pytest.raises(svmp.ModelError, match=says) as caught:
        call(fit, model)
    assert isinstance(caught.value, TypeError)  # as Python's own
