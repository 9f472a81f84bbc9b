"""Checkpoints that do not match their schema are refused before they are used."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.checkpoints import state_schema
from svmp.inference.checkpoints.checkpoint import FORMAT, before
from svmp.inference.checkpoints.recipes import FIELDS, KNOWN, check_recipe, make, recipe
from svmp.inference.state.state import State
from svmp.inference.trace import COLUMNS
from svmp.network.beliefs import Beliefs
from svmp.posterior.marginals.posterior import Posterior
from svmp.saving.schema import read_json
from tests.fuzz.mutants import DEEP, assembled, dumped, opened, put_together, taken_apart
from tests.fuzz.saved_files import factorization, mixture, topics
from tests.inference.checkpoints.test_checkpoint import same_bits

RUN = {"max_sweeps": 2, "tol": 0, "every": 1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    svmp.fit(factorization(), svmp.Children(3), steps=svmp.Nodewise(), checkpoint=path, **RUN)
    before(path).unlink()
    return path


def refused(path: Path) -> str:
    with pytest.raises(svmp.FileError) as caught:
        svmp.fit(factorization(), resume=path, max_sweeps=3)
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    return text


def with_arrays(path: Path, change: Callable[[dict[str, np.ndarray]], object]) -> None:
    about, arrays = taken_apart(path.read_bytes())
    change(arrays)
    path.write_bytes(put_together(about, arrays))


def with_about(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    header, body = opened(path.read_bytes())
    about = json.loads(header["__metadata__"]["svmp-run"])
    change(about)
    header["__metadata__"]["svmp-run"] = dumped(np.random.default_rng(0), about)
    path.write_bytes(assembled(header, body))


def test_unchanged_file_is_resumed(path: Path) -> None:
    with_arrays(path, lambda arrays: None)
    with_about(path, lambda about: None)
    assert np.isfinite(svmp.fit(factorization(), resume=path, max_sweeps=3).bound)


KINDS = ("natural", "moments", "last", "last_moments", "sound", "sound_moments")
ARRAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "cut to one row": lambda a: a[:1],
    "emptied": lambda a: a[:0],
    "one column": lambda a: a[:, :1],
    "flat": lambda a: a.ravel(),
    "whole numbers": lambda a: a.astype(np.int64),
    "single precision": lambda a: a.astype(np.float32),
    "not a number": lambda a: np.where(np.arange(len(a))[:, None] == 2, np.nan, a),
    "infinite": lambda a: np.where(np.arange(len(a))[:, None] == 2, np.inf, a),
    "with the other sign": lambda a: -a,
    "huge": lambda a: a * 1e200,
}


@pytest.mark.parametrize("change", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_invalid_arrays_are_refused(
    kind: str, change: Callable[[np.ndarray], np.ndarray], path: Path
) -> None:
    with_arrays(path, lambda arrays: arrays.update({f"{kind}/A": change(arrays[f"{kind}/A"])}))
    assert "damaged: '" in refused(path)


@pytest.mark.parametrize("kind", [*KINDS, "trace"])
def test_missing_arrays_are_refused(kind: str, path: Path) -> None:
    with_arrays(path, lambda arrays: arrays.pop(f"{kind}/{'bound' if kind == 'trace' else 'A'}"))
    assert "damaged" in refused(path)


@pytest.mark.parametrize("name", ["x", "natural/x", "natural/r", "gradient/x", "trace/x"])
def test_unknown_arrays_are_refused(name: str, path: Path) -> None:
    with_arrays(path, lambda arrays: arrays.update({name: np.zeros((2, 2))}))
    assert "unknown array" in refused(path)


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "an iteration below zero": lambda about: about["counters"].update(iteration=-1),
    "half an iteration": lambda about: about["counters"].update(iteration=1.5),
    "an iteration beyond 64 bits": lambda about: about["counters"].update(iteration=10**30),
    "a counter too many": lambda about: about["counters"].update(network=3),
    "a counter too few": lambda about: about["counters"].pop("damping"),
    "damping of nothing": lambda about: about["counters"].update(damping=0),
    "a window without end": lambda about: about.update(window=[float("inf"), 0]),
    "a window of words": lambda about: about.update(window="ab"),
    "a sum of nothing": lambda about: about.update(window=[0.5, 0]),
    "a guard of one": lambda about: about.update(guard=[0.0]),
    "a guard of NaN": lambda about: about.update(guard=[float("nan"), 0.0]),
    "bound terms of null": lambda about: about["bound_terms"].update(A=None),
    "bound terms of others": lambda about: about["bound_terms"].update(Q=1.0),
    "seconds of NaN": lambda about: about.update(seconds=float("nan")),
    "another column": lambda about: about["columns"].append("x"),
    "a held-out column": lambda about: about["settings"].update(held_out="x"),
    "no settings": lambda about: about.pop("settings"),
    "a seed below zero": lambda about: about["settings"].update(seed=-1),
    "a tolerance of NaN": lambda about: about["settings"].update(tol=float("nan")),
    "kernels of one": lambda about: about["settings"].update(kernels=1),
    "an unknown class": lambda about: about["settings"]["method"].update({"class": "Path"}),
    "an unknown field": lambda about: about["settings"]["method"]["fields"].update(path="x"),
    "a field too few": lambda about: about["settings"]["method"]["fields"].pop("C"),
    "C of zero": lambda about: about["settings"]["method"]["fields"].update(C=0),
    "steps of nothing": lambda about: about["settings"]["steps"]["fields"].update(c=0),
    "steps of words": lambda about: about["settings"]["steps"]["fields"].update(c="x"),
    "an order of others": lambda about: about["settings"]["method"]["fields"].update(order=["x"]),
    "a model of numbers": lambda about: about.update(model=3),
    "a variable of numbers": lambda about: about["model"].update(A=3),
    "depth": lambda about: about.update(guard=DEEP),
    "a newer format": lambda about: about.update(format=FORMAT + 1),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_invalid_descriptions_are_refused(
    change: Callable[[dict[str, Any]], object], path: Path
) -> None:
    with_about(path, change)
    text = refused(path)
    assert "damaged" in text or "newer" in text


def test_duplicate_names_are_refused() -> None:
    with pytest.raises(svmp.FileError, match="twice"):
        read_json('{"seed": 1, "seed": 2}')


def test_previous_checkpoint_is_read_if_the_last_is_invalid(tmp_path: Path) -> None:
    model, path = factorization(), tmp_path / "run"
    whole = svmp.fit(model, svmp.FullVB(), max_sweeps=6, tol=0)
    svmp.fit(model, svmp.FullVB(), max_sweeps=3, tol=0, checkpoint=path, every=1)
    kept = before(path).read_bytes()
    with_arrays(path, lambda arrays: arrays.update({"natural/A": arrays["natural/A"][:1]}))
    assert same_bits(whole, svmp.fit(model, resume=path, max_sweeps=6, every=1000))
    assert before(path).read_bytes() == kept  # not replaced by the damaged one


def test_previous_checkpoint_is_not_read_if_the_last_is_of_another_run(tmp_path: Path) -> None:
    path = tmp_path / "run"
    svmp.fit(factorization(), svmp.FullVB(), checkpoint=path, **RUN)
    svmp.fit(mixture(), svmp.FullVB(), checkpoint=path, **RUN)
    path.write_bytes(path.read_bytes())
    with_about(before(path), lambda about: None)
    with pytest.raises(svmp.FileError, match="only the checkpoint has"):
        svmp.fit(factorization(), resume=path)


def test_another_algorithm_is_refused(path: Path) -> None:
    with pytest.raises(svmp.FileError, match=r"made with method=Children\(C=3"):
        svmp.fit(factorization(), svmp.FullVB(), resume=path)
    assert svmp.fit(factorization(), svmp.Children(2), resume=path, max_sweeps=3).status


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("model", [mixture, topics])
def test_run_with_init_is_resumed(
    model: Callable[[], svmp.Model], kernels: bool, tmp_path: Path
) -> None:
    """The Categorical of a mixture is stored only if it was given in init."""
    size = 40 if model is mixture else 160
    init = {"z": np.tile([0.2, 0.8], (size, 1))}
    how: dict[str, Any] = {"init": init, "tol": 0, "kernels": kernels}
    whole = svmp.fit(model(), svmp.FullVB(), max_sweeps=5, **how)
    path = tmp_path / "run"
    svmp.fit(model(), svmp.FullVB(), max_sweeps=2, checkpoint=path, every=1, **how)
    for again in ({}, {"init": init}):
        resumed = svmp.fit(
            model(), resume=path, checkpoint=tmp_path / "more", max_sweeps=5, **again
        )
        assert same_bits(whole, resumed)


def test_declared_entries_are_those_written() -> None:
    counters = tuple(state_schema.COUNTERS)
    assert tuple(state_schema.describe_state(State(Beliefs()), 0.0)["counters"]) == counters
    assert set(state_schema.DESCRIPTION) == set(state_schema.describe_state(State(Beliefs()), 0.0))
    trace = svmp.fit(factorization(), max_sweeps=1).trace
    assert tuple(trace.columns) == COLUMNS


@pytest.mark.parametrize("kind", KNOWN.values())
def test_every_argument_has_a_check(kind: Any) -> None:
    assert all(str(f.type) in FIELDS for f in fields(kind) if f.init)


@pytest.mark.parametrize(
    "thing",
    [
        svmp.FullVB(["tau", "A", "B"]),
        svmp.Children(10**30),
        svmp.Children({"A": 1, "B": 2, "tau": 3}, "b"),
        svmp.Batch(3, over="doc"),
        svmp.Growing(pace=float("inf")),
        svmp.RobbinsMonro(tau=2153.5),
        svmp.RobbinsMonro(kappa=2, force=True),
        svmp.HoldThenDecay(10**20),
        svmp.Constant(1),
        svmp.Nodewise(),
        svmp.Grow(10),
    ],
)
def test_methods_and_policies_are_restored_from_their_recipes(thing: Any) -> None:
    assert make(check_recipe("x", json.loads(json.dumps(recipe(thing))))) == thing


# --- numbers of any size ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [2**63, 2**64, 2**128 + 7])
@pytest.mark.parametrize("method", [svmp.Children(2), svmp.Batch(5), svmp.Growing(first=0.3)])
def test_seeds_of_any_size(seed: int, method: Any, tmp_path: Path) -> None:
    path, how = tmp_path / "run", {"seed": seed, "tol": 0}
    whole = svmp.fit(factorization(), method, max_sweeps=3, **how)
    svmp.fit(factorization(), method, max_sweeps=1, checkpoint=path, every=1, **how)
    assert same_bits(whole, svmp.fit(factorization(), resume=path, max_sweeps=3))


@pytest.mark.parametrize(
    "method",
    [
        svmp.Children(10**30),
        svmp.Children({"A": 10**30, "B": 2**63, "tau": 1000}),
        svmp.Batch(10**30),
        svmp.Growing(first=0.1, pace=1e-5),
        svmp.Growing(first=0.1, pace=1e-300),
    ],
    ids=repr,
)
def test_batches_larger_than_the_data_read_all_rows(method: Any) -> None:
    """With unit steps this is full VB, apart from the first sample."""
    steps = svmp.Constant(1.0)
    found = svmp.fit(factorization(), method, steps=steps, tol=0, max_sweeps=50)
    whole = svmp.fit(factorization(), svmp.FullVB(), tol=0, max_sweeps=50)
    assert found.bound == pytest.approx(whole.bound, rel=1e-3)


def test_steps_that_overflow_are_refused() -> None:
    for steps in (svmp.RobbinsMonro(-1e300, force=True), svmp.RobbinsMonro(tau=-1, force=True)):
        with pytest.raises(svmp.ModelError, match="steps for 'A'"):
            svmp.fit(factorization(), svmp.Children(3), steps=steps)


def test_integer_init_is_converted_to_floats() -> None:
    model = factorization()
    q = svmp.fit(model, max_sweeps=2)["A"]
    natural = np.stack([np.arange(12), np.full(12, -2)], axis=1)
    starts = [
        Posterior("A", q.dims, q.plate, q.family, natural.astype(kind)) for kind in ("i8", "f8")
    ]
    a, b = (svmp.fit(model, svmp.FullVB(), init={"A": s}, max_sweeps=2) for s in starts)
    assert same_bits(a, b)
    wrong = Posterior("A", q.dims, q.plate, q.family, natural.astype(complex))
    with pytest.raises(svmp.ModelError, match="not real numbers"):
        svmp.fit(model, init={"A": wrong})


@pytest.mark.parametrize("n", [2.0**54, 1e300])
def test_too_many_trials_are_refused(n: float) -> None:
    with svmp.Model(coords={"k": 2}):
        with pytest.raises(svmp.ModelError, match="at most 2"):
            svmp.Binomial("x", n=n, p=0.5)
        with pytest.raises(svmp.ModelError, match="at most 2"):
            svmp.Multinomial("y", n=n, p=[0.5, 0.5], dims="k")


def test_vectors_have_the_bits_of_a_run_without_interruption(tmp_path: Path) -> None:
    """Sums depend on the order of an array in memory, and files have the order of C."""
    y = np.array([[0.13, -0.13, 0.64], [0.1, -0.54, 0.36]])
    T = np.array([[2.0, 0.77, 0.53], [0.77, 2.93, 0.6], [0.53, 0.6, 1.71]])
    with svmp.Model(coords={"row": 2, "d": 3, "group": 2}) as model:
        m = svmp.MvNormal("m", mu=0.5, tau=T, dims="d")
        v = svmp.MvNormal("v", mu=m, tau=T / 2, dims=("group", "d"))
        mean = v[svmp.data([1, 1], dims="row"), :]
        svmp.MvNormal("y", mean, T, dims=("row", "d"), observed=y)
    options = {"tol": 0, "max_sweeps": 6}
    whole = svmp.fit(model, svmp.FullVB(), **options)
    place = tmp_path / "run"
    svmp.fit(model, svmp.FullVB(), tol=0, max_sweeps=3, every=1, checkpoint=place)
    on = svmp.fit(model, svmp.FullVB(), resume=place, **options)
    for name in ("m", "v"):
        assert whole[name].natural.flags.c_contiguous
        np.testing.assert_array_equal(whole.mean(name), on.mean(name))
        np.testing.assert_array_equal(whole.var(name), on.var(name))
