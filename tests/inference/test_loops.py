"""`kernels=False` compiles nothing, and the result is the same up to rounding."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import svmp
from svmp.inference.loops import loops_in_use, use_loops

SCRIPT = """
import numpy as np
import svmp
from numba.core import event

compiled = []


class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


event.register("numba:compile", Listener())
rng = np.random.default_rng(0)


def factorization(rows=12_000, users=5000):
    user, item = rng.integers(0, users, rows), rng.integers(0, 9, rows)
    with svmp.Model(coords={"user": users, "item": 9, "k": 2}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "k"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "k"))
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=tau, observed=rng.normal(size=rows))
    return model


def groups(rows=12_000):
    group = rng.integers(0, 5000, rows)
    with svmp.Model(coords={"group": 5000}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.1)
        a = svmp.Normal("a", mu=mu, tau=svmp.Gamma("t", alpha=1, beta=1), dims="group")
        svmp.Normal("y", mu=a[group], tau=1, observed=rng.normal(size=rows))
    return model


def hidden_markov(rows=3000):
    with svmp.Model(coords={"state": 2, "to": 2, "row": rows}) as model:
        start = svmp.Dirichlet("start", a=1, dims="state")
        move = svmp.Dirichlet("move", a=1, dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", init=start, P=move, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=0.01, dims="state")
        values = rng.normal(size=rows)
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=1), dims="row", observed=values)
    return model


def state_space(rows=300):
    with svmp.Model(coords={"k": 2, "row": rows}) as model:
        first = svmp.MvNormal.dist(mu=np.zeros(2), tau=np.eye(2))
        x = svmp.LinearGaussianChain("x", first, np.eye(2), np.eye(2), dims=("row", "k"))
        c = svmp.Normal("c", mu=0, tau=1, dims="k")
        svmp.Normal("y", mu=svmp.dot(x, c), tau=1, dims="row", observed=rng.normal(size=rows))
    return model


def topics(rows=5000):
    doc, word = np.sort(rng.integers(0, 1200, rows)), rng.integers(0, 30, rows)
    with svmp.Model(coords={"doc": 1200, "topic": 3, "word": 30, "token": rows}) as model:
        share = svmp.Dirichlet("share", a=0.5, dims=("doc", "topic"))
        topic = svmp.Dirichlet("topic", a=0.5, dims=("topic", "word"))
        z = svmp.Categorical("z", p=share[doc], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=topic), dims="token", observed=word)
    return model


methods = [None, svmp.FullVB(), svmp.Growing(0.1), svmp.Batch(300), svmp.Children(3)]
cases = [(factorization, methods), (groups, methods), (hidden_markov, methods[:3])]
by_document = [None, svmp.Memoized("doc"), svmp.Batch(9, over="doc")]
cases += [(state_space, methods[:2]), (topics, by_document)]
for declare, some in cases:
    model = declare()
    for method in some:
        svmp.fit(model, method, kernels=False, max_sweeps=2, progress=False)
        assert not compiled, (declare.__name__, method, compiled)
with svmp.Model(coords={"group": 300}) as nested:
    mu = svmp.Normal("mu", mu=0, tau=0.1)
    a = svmp.Normal("a", mu=mu, tau=svmp.Gamma("t", alpha=1, beta=1), dims="group")
    svmp.Normal("y", mu=a[rng.integers(0, 300, 900)], tau=1, observed=rng.normal(size=900))
joint = svmp.fit(nested, kernels=False, joint="auto", max_sweeps=2, progress=False)
assert joint.joint and joint.std("a").min() > 0
assert not compiled, compiled
fit = svmp.fit(groups(), kernels=False, joint="auto", max_sweeps=2, progress=False)
fit.update(groups(), kernels=False, max_sweeps=2, progress=False) if not fit.joint else None
assert not compiled, compiled
"""


def test_nothing_is_compiled_without_loops(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.parametrize("method", [svmp.Growing(0.2), svmp.Batch(300), svmp.Children(2)])
def test_the_result_is_that_of_the_loops(method: object) -> None:
    rng = np.random.default_rng(1)
    group = rng.integers(0, 5000, 12_000)
    with svmp.Model(coords={"group": 5000}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.1)
        a = svmp.Normal("a", mu=mu, tau=1, dims="group")
        svmp.Normal("y", mu=a[group], tau=1, observed=rng.normal(size=len(group)))
    plain, loops = (
        svmp.fit(model, method, kernels=kernels, max_sweeps=3) for kernels in (False, True)
    )
    assert plain.bound == pytest.approx(loops.bound, rel=1e-10)
    np.testing.assert_allclose(plain.mean("a"), loops.mean("a"), rtol=1e-8, atol=1e-12)


def test_the_choice_ends_with_the_fit() -> None:
    with use_loops(False):
        assert not loops_in_use()
        with use_loops(True):
            assert loops_in_use()
        assert not loops_in_use()
    assert loops_in_use()
