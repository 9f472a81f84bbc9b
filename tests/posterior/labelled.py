"""A fit with labels of every kind, whose posteriors are known in closed form."""

from __future__ import annotations

from datetime import date

import numpy as np

import svmp

WHO = ["Ann", "Bo", "Cy"]
DAYS = [date(2024, 2, 29), date(2024, 3, 1)]
GROUPS = [("a", 1), ("b", 2)]
Y = {"Ann": [1.0, 2.0], "Bo": [4.0], "Cy": [-1.0, 0.0, 1.0]}


def labelled() -> tuple[svmp.Model, svmp.Fit]:
    """Return the model and its fit; u of each person is known from its rows in Y."""
    key = [who for who, values in Y.items() for _ in values]
    coords = {"who": WHO, "day": DAYS, "group": GROUPS, "part": ["low", "high"], "row": 4}
    with svmp.Model(coords=coords) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="who")
        svmp.Normal("grid", mu=0, tau=1, dims=("day", "who"))
        svmp.Gamma("group", alpha=3, beta=2, dims="group")
        svmp.Wishart("matrix", nu=3, V=np.eye(2), dims=("part", "part"))
        share = svmp.Dirichlet("share", a=[1, 3], dims="part")
        svmp.Categorical("z", p=share, dims="row")
        svmp.Beta("p", alpha=2, beta=1)
        svmp.Poisson("count", mu=3)
        svmp.Normal("y", mu=u[key], tau=1, observed=[y for ys in Y.values() for y in ys])
    return model, svmp.fit(model)
