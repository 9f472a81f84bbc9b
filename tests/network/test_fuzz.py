"""Random calls of the public functions: they work, or raise a clear error.

Each seed makes a model, calls the public functions with arguments of which some are invalid, and
fits the result. Only svmp's own exceptions are allowed.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import svmp

from .test_bad_input import sound
from .test_refusals import no_inner_words

NAN, INF = float("nan"), float("inf")
DISTRIBUTIONS = [
    svmp.Bernoulli, svmp.Beta, svmp.Binomial, svmp.Categorical, svmp.Dirichlet, svmp.Exponential,
    svmp.Gamma, svmp.Multinomial, svmp.MvNormal, svmp.Normal, svmp.Poisson, svmp.Wishart,
]  # fmt: skip


def function(x: Any = None) -> None:
    """A function, in place of a number."""


STRANGE: list[Callable[[], Any]] = [
    lambda: None, lambda: "", lambda: "abc", lambda: "1", lambda: b"abc", lambda: True,
    lambda: NAN, lambda: INF, lambda: -INF, lambda: -1, lambda: 0, lambda: 1e308, lambda: 1e-308,
    lambda: 10**30, lambda: -(10**400), lambda: 10**5000, lambda: 1j, lambda: ..., lambda: object(),
    lambda: slice(0, 2), lambda: NotImplemented, lambda: function, lambda: int, lambda: np,
    lambda: svmp.Normal, lambda: svmp.FullVB(), lambda: ValueError("x"), lambda: {},
    lambda: {"a": 1}, lambda: {1, 2}, lambda: frozenset(), lambda: (x for x in [1.0, 2.0]),
    lambda: iter([1.0]), lambda: map(float, [1]), lambda: range(3), lambda: [], lambda: (),
    lambda: [[1.0], [1.0, 2.0]], lambda: [[[]]], lambda: [None, 1.0], lambda: [NAN, 1.0, 2.0],
    lambda: ["a", "b", "c"], lambda: [1, "a"], lambda: [object()], lambda: [1j, 2.0],
    lambda: datetime.date(2020, 1, 1), lambda: datetime.timedelta(1),
    lambda: np.datetime64("2020-01-01"), lambda: np.array(["2020-01-01"] * 3, dtype="M8[D]"),
    lambda: np.array([1, 2, 3], dtype="m8[s]"), lambda: np.array([1, None, "a"], dtype=object),
    lambda: np.array([1, 2.5, 3], dtype=object), lambda: np.array([10**30] * 3, dtype=object),
    lambda: np.array([{}, []], dtype=object), lambda: np.zeros(3, dtype=[("a", "f8")]),
    lambda: np.array(["a", "b", "c"]), lambda: np.array([b"a"]), lambda: np.zeros((0,)),
    lambda: np.zeros((3, 0)), lambda: np.zeros((1, 1, 1, 1)), lambda: np.array(3.0),
    lambda: np.float32(1.5), lambda: np.bool_(True), lambda: np.uint64(2**64 - 1),
    lambda: np.array([2**64 - 1] * 3, dtype=np.uint64), lambda: np.ones(3, dtype=np.float16),
    lambda: np.ones(3, dtype=np.longdouble), lambda: np.ones(3, dtype=complex),
    lambda: np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), lambda: np.ma.masked,
    lambda: np.array([True, False, True]), lambda: np.arange(3), lambda: -np.arange(3.0),
    lambda: np.array([1e200, 1e-200, 1.0]), lambda: np.eye(2), lambda: np.eye(3),
    lambda: -np.eye(2),
    lambda: np.ones((3, 2)), lambda: np.full((2, 2), NAN), lambda: sparse.eye_array(3),
    lambda: sparse.csr_matrix(np.ones((3, 2))), lambda: sparse.coo_array(np.array([1.0, 2.0])),
    lambda: pd.Series([1.0, 2.0, 3.0]), lambda: pd.Series(["a", "b", "c"]),
    lambda: pd.Series([1, None, 3], dtype="Int64"), lambda: pd.Categorical(["a", "b", "a"]),
    lambda: pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), lambda: pd.Timestamp("2020"),
    lambda: pd.NA, lambda: pd.NaT, lambda: pl.Series([1.0, 2.0, None]), lambda: pl.col("a"),
    lambda: pl.DataFrame({"a": [1, 2, 3]}), lambda: decimal.Decimal("1.5"),
    lambda: fractions.Fraction(1, 3), lambda: memoryview(b"abc"), lambda: svmp.Model(),
    lambda: svmp.data([1.0, 2.0, 3.0], dims="user"), lambda: svmp.data([0, 1, 1], dims="user"),
    lambda: svmp.data(np.ones((3, 2)), dims=("user", "k")), lambda: svmp.data([1.0], dims="huh"),
    lambda: svmp.diag([1.0, 2.0]), lambda: svmp.Normal.dist(), lambda: svmp.Poisson.dist(3),
]  # fmt: skip
SENSIBLE: list[Callable[[], Any]] = [
    lambda: 1, lambda: 0.5, lambda: 2.0, lambda: [1.0, 2.0, 3.0], lambda: [0, 1, 1],
    lambda: [0.2, 0.8], lambda: np.eye(2), lambda: 3, lambda: [[1.0, 2.0]], lambda: [1, 0, 1],
]  # fmt: skip
DIMS: list[Any] = [
    "user", "k", "word", "row", "none", ("user", "k"), ("k", "k"), ["user"], ("row", "k"), None,
    None, (), [], "", 3, ("user", 3), ("user", None), [["user"]], {"user"}, "a'", ("user", "user"),
    ("k", "k", "k"), b"user", np.array(["user"]), NAN, object(), ("row",) * 3, "a\nb",
]  # fmt: skip


class Fuzz:
    """Makes random calls."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.model, self.other = sound(), sound()
        self.calls = 0

    def pick(self, options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def value(self, strange: float = 0.5) -> Any:
        """Draw an argument."""
        kind = self.rng.random()
        if kind < 0.3:
            return self.model[self.pick(list(self.model.variables))]
        if kind < 0.35:
            return self.other[self.pick(list(self.other.variables))]
        if kind < 0.45:
            left, right = (self.model[self.pick(list(self.model.variables))] for _ in range(2))
            done = self.attempt(
                self.pick([lambda: left * right, lambda: left + right, lambda: -left])
            )
            return 1.0 if done is None else done
        return self.pick(STRANGE if self.rng.random() < strange else SENSIBLE)()

    def attempt(self, call: Callable[[], Any]) -> Any:
        """Make a call, which must work or raise a clear error; return its result."""
        self.calls += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return call()
            except svmp.SvmpError as error:
                text = str(error)
                assert text, "an empty message"
                assert "\n" not in text, text
                assert len(text) < 320, text
                assert no_inner_words(text), text
                return None

    def name(self) -> Any:
        return f"x{self.calls}" if self.rng.random() < 0.95 else self.pick(STRANGE)()

    def options(self, others: bool = True) -> dict[str, Any]:
        """Draw dims, observed and missing, and perhaps an unknown argument."""
        found: dict[str, Any] = {}
        if self.rng.random() < 0.6:
            found["dims"] = self.pick(DIMS)
        if self.rng.random() < 0.6:
            found["observed"] = self.value()
        if self.rng.random() < 0.2:
            found["missing"] = self.pick(
                [True, False, None, "a", [True, False, True], 3, np.eye(3)]
            )
        if others and self.rng.random() < 0.03:
            found[self.pick(["sigma", "shape", "eta"])] = self.value()
        return found

    def distribution(self) -> None:
        kind = self.pick(DISTRIBUTIONS)
        takes = list(inspect.signature(kind.dist).parameters)
        given = {parameter: self.value() for parameter in takes if self.rng.random() < 0.9}
        name, options = self.name(), self.options()
        with self.model:
            if self.rng.random() < 0.1:
                self.attempt(lambda: kind(name, *given.values(), self.value(), **options))
            else:
                self.attempt(lambda: kind(name, **{**options, **given}))

    def mixture(self) -> None:
        kind = self.pick(DISTRIBUTIONS)
        takes = inspect.signature(kind.dist).parameters
        component = self.attempt(lambda: kind.dist(**{p: self.value() for p in takes}))
        if component is None or self.rng.random() < 0.2:
            component = self.value()
        z = (
            self.model[self.pick(["z", "plain_z", "seen_z"])]
            if self.rng.random() < 0.7
            else self.value()
        )
        name, options = self.name(), self.options(others=False)
        with self.model:
            self.attempt(lambda: svmp.Mixture(name, z, component, **options))

    def index(self) -> None:
        variable = self.model[self.pick(list(self.model.variables))]
        key = tuple(self.value(0.8) for _ in range(self.rng.integers(1, 3)))
        found = self.attempt(lambda: variable[key if len(key) > 1 else key[0]])
        if found is not None:
            with self.model:
                self.attempt(lambda: svmp.Normal(f"x{self.calls}", found, observed=[1.0, 2.0, 3.0]))

    def arithmetic(self) -> None:
        left, right = self.value(), self.value(0.8)
        if not isinstance(left, svmp.Variable):
            left = self.model["s"]
        do = self.pick([
            lambda: left + right, lambda: left * right, lambda: left - right, lambda: left / right,
            lambda: left @ right, lambda: left**right, lambda: left > right, lambda: left == right,
            lambda: left // right, lambda: left.sum(right), lambda: left % right,
        ])  # fmt: skip
        self.attempt(do)

    def functions(self) -> None:
        some = [self.value() for _ in range(self.rng.integers(0, 4))]
        dim = (
            {"dim": self.pick([*DIMS, *(f() for f in STRANGE[:8])])}
            if self.rng.random() < 0.5
            else {}
        )
        self.attempt(lambda: svmp.dot(*some, **dim))
        self.attempt(lambda: svmp.diag(self.value()))
        self.attempt(lambda: svmp.data(self.value(), dims=self.pick(DIMS)))

    def coords(self) -> None:
        strange = [f() for f in STRANGE]
        names = ["a", "b'", "", 3, None, "a\nb", ("a",), "dim", "dim", "dim"]
        coords: Any = {self.pick(names): self.pick(strange)}
        if self.rng.random() < 0.1:
            coords = self.pick(strange)
        self.attempt(lambda: svmp.Model(coords=coords))

    def step(self) -> None:
        self.pick([
            self.distribution, self.distribution, self.distribution, self.mixture, self.index,
            self.arithmetic, self.functions, self.coords,
        ])()  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_random_declarations_work_or_raise_a_clear_error(seed: int) -> None:
    fuzz = Fuzz(seed)
    while fuzz.calls < 400:
        fuzz.step()
    fuzz.attempt(lambda: str(fuzz.model))
    fuzz.attempt(lambda: svmp.fit(fuzz.model, svmp.FullVB(), max_sweeps=1, kernels=False))


FITTED: dict[str, list[Any]] = {
    "method": [svmp.FullVB(), svmp.Children(2), svmp.Batch(1), svmp.Batch(1, over="user"),
               svmp.Batch(1, over="huh"), svmp.FullVB(order=["u"]), svmp.FullVB(order="u"),
               svmp.Growing()],
    "steps": [svmp.Constant(0.5), svmp.Nodewise(), svmp.RobbinsMonro(), svmp.Grow(),
              lambda at: "a", lambda at: None, lambda at: NAN, lambda at: np.ones(99)],
    "init": [{"u": 1.0}, {"u": [1.0, 2.0, 3.0]}, {"g": {"alpha": 1, "beta": 2}}, {"huh": 1.0},
             {3: 1.0}, {"u": {"mu": NAN}}, {"u": {"huh": 1}}, {"u": "a"}, {"u": None}, {"g": 3.0},
             {"u": [[1.0]]}],
    "seed": [0, 1, -1, 2**70, np.int64(3)],
    "tol": [0, 1e-3, -1.0],
    "max_sweeps": [1, 2, 0.5, -1],
    "max_accesses": [10, -3],
    "max_seconds": [0.01, -3],
    "bound_every": [1, 3, lambda t: "a", lambda t: None],
    "held_out": [{"y": [1.0, NAN, NAN]}, {"huh": [1.0]}, {"y": "a"}, {"y": 3.0}, {"y": [[1.0]]}],
    "watch": [lambda row: None],
    "kernels": [False],
    "threads": [1, 2, 0, -1],
}  # fmt: skip


def fit_arguments(seed: int) -> None:
    fuzz = Fuzz(seed)
    with svmp.Model(coords={"user": 3}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="user")
        g = svmp.Gamma("g", alpha=1, beta=1)
        svmp.Normal("y", mu=u, tau=g, dims="user", observed=[1.0, 2.0, NAN], missing=True)
    for _ in range(40):
        options: dict[str, Any] = {"max_sweeps": 1, "kernels": False}
        for name in fuzz.rng.permutation(list(FITTED))[:2]:
            strange = fuzz.rng.random() < 0.6 and name != "watch"  # may raise anything
            options[str(name)] = fuzz.value(1.0) if strange else fuzz.pick(FITTED[str(name)])
        options["kernels"] = False
        if fuzz.rng.random() < 0.1:
            options["init"] = {model["u"]: 1.0}
        of = model if fuzz.rng.random() < 0.95 else fuzz.value(1.0)
        fuzz.attempt(lambda of=of, options=options: svmp.fit(of, **options))


@pytest.mark.parametrize("seed", range(4))
def test_random_arguments_of_fit_work_or_raise_a_clear_error(seed: int) -> None:
    fit_arguments(seed)


METHODS = [svmp.FullVB, svmp.Children, svmp.Batch, svmp.Growing, svmp.Constant, svmp.Nodewise,
           svmp.RobbinsMonro, svmp.HoldThenDecay, svmp.Grow]  # fmt: skip


def method_arguments(seed: int) -> None:
    fuzz = Fuzz(seed)
    for _ in range(150):
        kind = fuzz.pick(METHODS)
        takes = inspect.signature(kind).parameters
        required = [p for p, how in takes.items() if how.default is how.empty]
        given = {p: fuzz.value() for p in takes if p in required or fuzz.rng.random() < 0.6}
        fuzz.attempt(lambda kind=kind, given=given: kind(**given))


@pytest.mark.parametrize("seed", range(3))
def test_random_arguments_of_methods_work_or_raise_a_clear_error(seed: int) -> None:
    method_arguments(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1040))
def test_many_declarations(seed: int) -> None:
    fuzz = Fuzz(seed)
    while fuzz.calls < 2000:
        fuzz.step()
    fuzz.attempt(lambda: svmp.fit(fuzz.model, svmp.FullVB(), max_sweeps=1, kernels=False))
    fit_arguments(seed)
    method_arguments(seed)
