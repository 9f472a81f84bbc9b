"""Sums of messages of rows: no such sum makes a prior improper."""

from __future__ import annotations

import numpy as np
import pytest

from svmp import families

EVIDENCE = {
    families.Normal(): [[3.0, 0.2], [3.0, -0.2]],
    families.Gamma(): [[0.5, 2.0], [-1.0, -2.0], [-1.0, 2.0]],
    families.Beta(): [[-0.5, 2.0], [1.0, 2.0]],
    families.Dirichlet(3): [[-0.5, 2.0, 0.0], [1.0, 2.0, 3.0]],
    families.Exponential(): [[0.5], [-0.5]],
    families.MvNormal(2): [[1.0, 2.0, 0.5, 0.0, 0.0, -2.0], [1.0, 2.0, -1.0, 0.2, 0.2, -2.0]],
    families.Wishart(2): [[0.5, 0.0, 0.0, -2.0, 1.0], [-1.0, 0.1, 0.1, -2.0, -3.0]],
}


@pytest.mark.parametrize("kind", EVIDENCE, ids=lambda f: type(f).__name__)
def test_evidence_leaves_every_prior_proper(kind):
    """Also a prior at the edge of the domain, and twice is the same as once."""
    family, given = kind, np.array(EVIDENCE[kind])
    found = family.as_evidence(given)
    np.testing.assert_allclose(family.as_evidence(found), found, atol=1e-12)
    names = {"mu": 0.3, "tau": 1e-9, "alpha": 1e-9, "beta": 1e-9, "a": [1e-9] * 3, "lam": 1e-9}
    names |= {"nu": 1 + 1e-9, "V": 1e9 * np.eye(2)}
    if family.event_ndim == 1 and family.parameters[0] == "mu":
        names |= {"mu": [0.3, 0.1], "tau": 1e-9 * np.eye(2)}
    prior = family.natural(**{name: names[name] for name in family.parameters})
    assert family.in_domain(prior + found).all()
    sound = family.in_domain(prior + 1e6 * given)
    assert np.array_equal(found[sound], given[sound])
