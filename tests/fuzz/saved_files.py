"""Workers that damage saved fits and checkpoints of several networks, and then use them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import svmp
from svmp.network.network import Network
from tests.examples import natural_of
from tests.fuzz.mutants import Rng, damaged_safetensors, put_together, taken_apart
from tests.inference.models import every_family

FEW = 40


def factorization() -> svmp.Model:
    rng = np.random.default_rng(1)
    user, item = rng.integers(0, 6, FEW), rng.integers(0, 5, FEW)
    with svmp.Model(coords={"user": 6, "item": 5, "k": 2}) as model:
        a = svmp.Normal("A", mu=0, tau=1, dims=("user", "k"))
        b = svmp.Normal("B", mu=0, tau=1, dims=("item", "k"))
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        svmp.Normal("r", mu=svmp.dot(a[user], b[item]), tau=tau, observed=rng.normal(size=FEW))
    return model


def mixture() -> svmp.Model:
    rng = np.random.default_rng(2)
    x = rng.normal(size=FEW) + 4 * rng.integers(0, 2, FEW)
    with svmp.Model(coords={"k": 2, "row": FEW}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        mu = svmp.Normal("mu", mu=0, tau=0.1, dims="k")
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        svmp.Mixture("x", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=x)
    return model


def topics() -> svmp.Model:
    rng = np.random.default_rng(3)
    doc, word = rng.integers(0, 6, 4 * FEW), rng.integers(0, 9, 4 * FEW)
    with svmp.Model(coords={"doc": 6, "topic": 2, "word": 9, "token": 4 * FEW}) as model:
        theta = svmp.Dirichlet("theta", a=0.5, dims=("doc", "topic"))
        phi = svmp.Dirichlet("phi", a=0.5, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta[doc], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=word)
    return model


def vectors() -> svmp.Model:
    rng = np.random.default_rng(4)
    with svmp.Model(coords={"d": 2, "group": 3, "row": FEW}) as model:
        mu = svmp.MvNormal("mu", mu=np.zeros(2), tau=np.eye(2), dims=("group", "d"))
        lam = svmp.Wishart("lam", nu=3, V=np.eye(2), dims=("d", "d"))
        group = rng.integers(0, 3, FEW)
        x = rng.normal(size=(FEW, 2))
        svmp.MvNormal("x", mu=mu[group], tau=lam, dims=("row", "d"), observed=x)
    return model


def counts() -> svmp.Model:
    rng = np.random.default_rng(5)
    with svmp.Model(coords={"group": 4, "row": FEW}) as model:
        group = rng.integers(0, 4, FEW)
        p = svmp.Beta("p", alpha=1, beta=1, dims="group")
        n = rng.integers(1, 9, FEW)
        svmp.Binomial("x", n=n, p=p[group], dims="row", observed=rng.binomial(n, 0.4))
        rate = svmp.Gamma("rate", alpha=1, beta=1, dims="group")
        svmp.Poisson("y", mu=rate[group], dims="row", observed=rng.poisson(3, FEW))
    return model


def logits() -> svmp.Model:
    rng = np.random.default_rng(6)
    group, x = rng.integers(0, 4, FEW), rng.normal(size=FEW)
    with svmp.Model(coords={"group": 4, "row": FEW}) as model:
        a = svmp.Normal("a", mu=0, tau=1, dims="group")
        b = svmp.Normal("b", mu=0, tau=1)
        svmp.Bernoulli("y", logit=a[group] + b * x, dims="row", observed=rng.integers(0, 2, FEW))
    return model


NETWORKS: dict[str, Callable[[], svmp.Model]] = {
    "factorization": factorization,
    "mixture": mixture,
    "topics": topics,
    "vectors": vectors,
    "counts": counts,
    "logits": logits,
    "every family": every_family,
}
METHODS: dict[str, tuple[Any, Any]] = {
    "full VB": (svmp.FullVB(), None),
    "default": (None, None),
    "growing": (svmp.Growing(first=0.3), None),
    "children": (svmp.Children(3), svmp.Nodewise()),
    "children b": (svmp.Children(2, "b", share_draw=True), svmp.RobbinsMonro(rho1=1 / 64)),
    "grow": (svmp.Children(1), svmp.Grow()),
    "batch": (svmp.Batch(8), svmp.HoldThenDecay(2)),
    "groups": (svmp.Batch(2, over="doc"), None),
}


class Statistics:
    """Steps that ask for the running statistics of the gradient, so that they are saved."""

    statistics = True

    def __call__(self, context: svmp.StepContext) -> Any:
        signal = np.abs(context.gradient).max(axis=1) / np.sqrt(context.square.max(axis=1) + 1e-12)
        return np.where(np.isfinite(signal), np.clip(signal, 0.01, 1), 0.5)


METHODS["statistics"] = (svmp.Children(3), Statistics())


@cache
def network(name: str) -> Network:
    """Return a network, sorted once."""
    return Network(NETWORKS[name]())


@cache
def written(name: str, way: str, kernels: bool, folder: Path) -> bytes:
    """Return a checkpoint of a run."""
    method, steps = METHODS[way]
    path = folder / f"{name} {way} {kernels}"
    how: dict[str, Any] = {"max_sweeps": 2, "tol": 0, "kernels": kernels, "progress": False}
    svmp.fit(network(name), method, steps=steps, checkpoint=path, every=1, **how)
    return path.read_bytes()


@cache
def saved(name: str, folder: Path) -> bytes:
    """Return a fit in a file."""
    path = folder / f"{name}.svmp"
    svmp.fit(network(name), max_sweeps=2, kernels=False, progress=False).save(path)
    return path.read_bytes()


def checkpoint(rng: Rng, folder: Path) -> str:
    """Damage a checkpoint, and resume it for a sweep or two."""
    way = str(rng.choice(list(METHODS)))
    names = ["topics"] if way == "groups" else list(NETWORKS)
    name, kernels = str(rng.choice(names)), bool(rng.random() < 0.7)
    whole = written(name, way, kernels, folder)
    path = folder / "mutant"
    mutant = (
        another_q(rng, name, whole)
        if rng.random() < 0.2
        else damaged_safetensors(rng, whole, "svmp-run")
    )
    path.write_bytes(mutant)
    (folder / "mutant.before").unlink(missing_ok=True)
    steps = METHODS[way][1] if way == "statistics" else None
    fit = svmp.fit(network(name), steps=steps, resume=path, max_sweeps=3, progress=False)
    for n, q in fit.posteriors.items():
        assert np.isfinite(q.natural).all(), f"q of {n} is not finite"
    assert np.isfinite(fit.bound)
    return "resumed"


def another_q(rng: Rng, name: str, whole: bytes) -> bytes:
    """Return a checkpoint with a q that is sound, but may be far from that of the run."""
    about, arrays = taken_apart(whole)
    kinds = {"natural": "moments", "last": "last_moments", "sound": "sound_moments"}
    stored = [key for key in arrays if key.split("/")[0] in kinds]
    for key in rng.choice(stored, rng.integers(1, 4)):
        kind, variable = str(key).split("/", 1)
        family = network(name).hidden[variable].family
        natural = natural_of(family, rng, len(arrays[key]))
        natural = natural * rng.choice([1, 1, 1e-6, 1e6, 1e30, 1e150])
        with np.errstate(all="ignore"):
            moments = family.moments(natural)
        arrays |= {str(key): natural, f"{kinds[kind]}/{variable}": moments}
    return put_together(about, arrays)


def quick_checkpoint(rng: Rng, folder: Path) -> str:
    """Damage a checkpoint of one network, whose loops are compiled, and resume it."""
    whole = written("factorization", "children", True, folder)
    path = folder / "mutant"
    path.write_bytes(damaged_safetensors(rng, whole, "svmp-run"))
    (folder / "mutant.before").unlink(missing_ok=True)
    fit = svmp.fit(network("factorization"), resume=path, max_sweeps=3, progress=False)
    assert np.isfinite(fit.bound)
    return "resumed"


def far_q(rng: Rng, name: str, whole: bytes) -> bytes:
    """Return a saved fit with parameters at the ends of what is a distribution."""
    about, arrays = taken_apart(whole)
    for key in rng.choice([k for k in arrays if not k.startswith("trace")], rng.integers(1, 4)):
        kind, variable = str(key).split("/", 1)
        if kind == "trials":
            arrays[str(key)] = np.full(
                len(arrays[key]), rng.choice([0.0, 1.0, 1e6, 2.0**53, 1e300])
            )
            continue
        scale = rng.choice([1, -1, 1e-300, 1e3, 1e15, 1e150, 1e300])
        if kind == "response":
            arrays[str(key)] = arrays[key] * scale
        else:
            natural = natural_of(network(name).hidden[variable].family, rng, len(arrays[key]))
            arrays[str(key)] = natural * scale
    return put_together(about, arrays)


def fit(rng: Rng, folder: Path) -> str:
    """Damage a saved fit, look at everything in it, and start another run from it."""
    name = str(rng.choice(list(NETWORKS)))
    path, whole = folder / "mutant.svmp", saved(name, folder)
    far = rng.random() < 0.2
    path.write_bytes(far_q(rng, name, whole) if far else damaged_safetensors(rng, whole, "svmp"))
    found = svmp.load(path)
    str(found), repr(found), repr(found.trace)
    assert np.isfinite(found.bound)
    for q in found.posteriors.values():
        with np.errstate(all="ignore"):
            _ = q.mean, q.var, q.std, q.moments, q.parameters, q.entropy(), q.draw(2)
    found.save(path)
    svmp.load(path)
    if set(found.posteriors) == set(network(name).hidden):
        svmp.fit(
            network(name), svmp.FullVB(), init=found, max_sweeps=1, kernels=False, progress=False
        )
    return "loaded"
