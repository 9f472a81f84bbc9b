"""Topics over parts: the undivided table, and the bound of LDA written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

import svmp

from .formulas import assert_never_falls, dirichlet_mean_log, dirichlet_term


@pytest.fixture(scope="module")
def parts(script):
    return script.data()


@pytest.fixture(scope="module")
def found(script, parts):
    return script.fits(parts)


def test_full_vb_over_parts_has_the_bounds_of_one_table(found):
    whole, divided = found["one table, full VB"], found["parts, full VB"]
    np.testing.assert_allclose(divided.trace["bound"], whole.trace["bound"], rtol=1e-12)
    assert divided.accesses == whole.accesses
    for name in ("theta", "phi"):
        np.testing.assert_allclose(divided[name].a, whole[name].a, rtol=1e-8)
    assert_never_falls(divided.trace["bound"])


def test_years_are_own_to_a_part_and_topics_are_shared(parts, found):
    program = str(found["parts, full VB"].program).splitlines()
    where = {line.split()[0]: line.rsplit("; ", 1)[1] for line in program[1:]}
    assert where["theta"] == where["z"] == "own to a part"
    assert where["phi"].startswith("shared")
    years = np.concatenate([np.unique(part["year"]) for part in parts])
    assert list(found["parts, full VB"].coords["document"]) == years.tolist()


def test_memoized_bound_is_that_of_its_q(script, parts, found):
    """With z at its optimum, its terms add up to a log-sum-exp for each token."""
    fit, table = found["parts, Memoized"], script.joined(parts)
    document = np.unique(table["year"], return_inverse=True)[1]
    theta, phi = dirichlet_mean_log(fit["theta"].a), dirichlet_mean_log(fit["phi"].a)
    tokens = logsumexp(theta[document] + phi[:, table["word"]].T, axis=1).sum()
    bound = tokens + dirichlet_term(0.2, fit["theta"].a) + dirichlet_term(0.1, fit["phi"].a)
    assert fit.bound == pytest.approx(bound, rel=1e-9)


def test_memoized_needs_fewer_readings(found):
    full, memoized = found["parts, full VB"], found["parts, Memoized"]
    readings = 1 + int(np.argmax(memoized.trace["bound"] >= full.bound))
    assert memoized.bound >= full.bound
    assert readings <= len(full.trace) / 5


def test_memoized_ends_where_full_vb_of_one_table_goes_on(script, parts, found):
    memoized = found["parts, Memoized"]
    init = {name: {"a": memoized[name].a} for name in ("theta", "phi")}
    method = svmp.FullVB(order=script.ORDER)
    after = svmp.fit(script.model(script.joined(parts)), method, init=init, max_sweeps=5, tol=0)
    assert_never_falls(after.trace["bound"])
    assert memoized.bound <= after.trace["bound"][0] <= memoized.bound + 1e-3 * abs(memoized.bound)
