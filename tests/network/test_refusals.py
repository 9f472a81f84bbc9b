"""Unsupported operations of Python, NumPy and Pandas raise errors that say what to write."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import svmp
from svmp.network.expressions import Expression
from svmp.network.network import Network

from .test_bad_input import assert_sentence, sound
from .tools import anywhere, bound, fitted, optimum

Use = Callable[[Any], Any]
X = np.array([1.0, 2.0, 3.0])


def declared() -> tuple[svmp.Model, dict[str, Any]]:
    """Return a model, and one object of each symbolic kind."""
    model = sound()
    return model, {
        "a number": model["s"],
        "a plate": model["u"],
        "a vector": model["m"],
        "a Gamma": model["g"],
        "a sum": model["u"] + model["s"],
        "a key": model["u"][[0, 1, 1]],
        "data": svmp.data(X, dims="user"),
    }


REFUSED: dict[str, Use] = {
    "bool": bool,
    "not": operator.not_,
    "if": lambda a: 1 if a else 2,
    "and": lambda a: a and 1,
    "or": lambda a: a or 1,
    ">": lambda a: a > 0,
    "<": lambda a: a < 0,
    ">=": lambda a: a >= 0,
    "0 <=": lambda a: a >= 0,
    "==": lambda a: a == 0,
    "== itself": lambda a: a == a,
    "!=": lambda a: a != 0,
    "array >": lambda a: a < X,
    "array ==": lambda a: a == X,
    "len": len,
    "float": float,
    "int": int,
    "complex": complex,
    "index": operator.index,
    "range": range,
    "math.exp": math.exp,
    "math.floor": math.floor,
    "math.ceil": math.ceil,
    "math.trunc": math.trunc,
    "abs": abs,
    "round": round,
    "round to 2": lambda a: round(a, 2),
    "iter": iter,
    "list": list,
    "tuple": tuple,
    "set": set,
    "sum": sum,
    "for": lambda a: [x for x in a],  # noqa: C416
    "unpacking": lambda a: [*a],
    "min": min,
    "max of two": lambda a: max(a, 0),
    "sorted": sorted,
    "reversed": reversed,
    "in": lambda a: 0 in a,
    "in a list": lambda a: a in [0, 1],
    "format": lambda a: f"{a:.2f}",
    "~": operator.invert,
    "**": lambda a: a**2,
    "pow": lambda a: pow(a, 2, 3),
    "2 **": lambda a: 2**a,
    "//": lambda a: a // 2,
    "2 //": lambda a: 2 // a,
    "%": lambda a: a % 2,
    "divmod": lambda a: divmod(a, 2),
    "&": lambda a: a & True,
    "<<": lambda a: a << 1,
    "/": lambda a: 1 / a,
    "/ itself": lambda a: a / a,
    "array /": lambda a: X / a,
    "Pandas /": lambda a: pd.Series(X) / a,
    "set item": lambda a: operator.setitem(a, 0, 1),
    "delete item": lambda a: operator.delitem(a, 0),
    "[None]": lambda a: a[None],
    "[...]": lambda a: a[...],
    "[label]": lambda a: a["label"],
    "[3:1]": lambda a: a[3:1],
    "[mask]": lambda a: a[np.array([], bool)],
    "[-9]": lambda a: a[-9],
    "mean": lambda a: a.mean(),
    "T": lambda a: a.T,
    "exp": lambda a: a.exp(),
    "reshape": lambda a: a.reshape(3),
    "dtype": lambda a: a.dtype,
    "values": lambda a: a.values,
    "no such attribute": lambda a: a.no_such_attribute,
    "asarray": np.asarray,
    "array of": lambda a: np.array([a, a]),
    "float64": np.float64,
    "out=": lambda a: np.add(X, a, out=X.copy()),
    "array +=": lambda a: operator.iadd(X.copy(), a),
    "Pandas >": lambda a: pd.Series(X) > a,
    "Pandas ==": lambda a: pd.Series(X) == a,
    "Pandas of": pd.Series,
    **{
        f"np.{name}": getattr(np, name)
        for name in (
            "exp", "log", "sqrt", "square", "sin", "abs", "sum", "mean", "std", "var", "max", "min",
            "prod", "cumsum", "median", "argmax", "sort", "transpose", "ravel", "shape", "isnan",
            "isfinite", "nansum", "diff", "unique", "expm1", "sign",
        )
    },
    "np.dot": lambda a: np.dot(np.eye(3), a),
    "np.inner": lambda a: np.inner(X, a),
    "np.einsum": lambda a: np.einsum("ij,j->i", np.eye(3), a),
    "np.where": lambda a: np.where(X > 1, a, 0),
    "np.maximum": lambda a: np.maximum(a, 0),
    "np.power": lambda a: np.power(a, 2),
    "np.stack": lambda a: np.stack([a, a]),
    "np.concatenate": lambda a: np.concatenate([a, a]),
    "np.add.reduce": np.add.reduce,
    "np.multiply.outer": lambda a: np.multiply.outer(a, X),
    "np.linalg.norm": np.linalg.norm,
    "np.allclose": lambda a: np.allclose(a, 0),
}  # fmt: skip


@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED)
def test_unsupported_operations_raise_a_clear_error(use: Use) -> None:
    model, things = declared()
    with model:
        for kind, thing in things.items():
            with pytest.raises(svmp.ModelError) as caught:
                use(thing)
            text = str(caught.value)
            assert_sentence(text)
            assert no_inner_words(text), text
            if isinstance(thing, svmp.Variable):
                assert f"'{thing.name}'" in text, kind


def no_inner_words(text: str) -> bool:
    """Whether a message is free of internal classes and reprs."""
    return not re.search(
        r"<(?=\w)|Sum\(|Term\(|Operand|Labelled| at 0x|svmp\.network|array\(", text
    )


@pytest.mark.parametrize("thing", [svmp.diag([1.0, 2.0]), svmp.Normal.dist()], ids=["diag", "dist"])
@pytest.mark.parametrize(
    "use",
    [
        *(lambda a, o=o: o(a, 2) for o in (operator.add, operator.sub, operator.mul)),
        *(lambda a, o=o: o(2, a) for o in (operator.add, operator.sub, operator.mul)),
        *(lambda a, o=o: o(np.ones(2), a) for o in (operator.add, operator.mul, operator.matmul)),
        lambda a: a @ np.eye(2),
        lambda a: -a,
        lambda a: a / 2,
        lambda a: a[0],
        lambda a: a == 0,
        np.exp,
        np.asarray,
        bool,
        len,
    ],
)
def test_matrices_and_components_raise_a_clear_error(thing: Any, use: Use) -> None:
    with pytest.raises(svmp.ModelError) as caught:
        use(thing)
    assert_sentence(str(caught.value))
    assert no_inner_words(str(caught.value))


def test_a_multiple_of_a_diagonal_goes_inside_diag() -> None:
    """The message says svmp.diag(2 * x), and that works."""
    model = sound()
    with model:
        for wrong in (
            lambda: model["g"] * svmp.diag([1.0, 2.0]),
            lambda: 2 * svmp.diag([1.0, 2.0]),
        ):
            with pytest.raises(svmp.ModelError, match=r"svmp\.diag\(2 \* x\)"):
                wrong()
        tau = svmp.diag(2 * model["g"] * [1.0, 2.0])
        svmp.MvNormal("r", 0, tau, dims=("row", "k"), observed=[[1.0, 2.0]])
    assert np.isfinite(svmp.fit(model, svmp.FullVB(), kernels=False).bound)


OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
ON_THE_LEFT: dict[str, Any] = {
    "array": X,
    "integers": np.array([1, 2, 3]),
    "booleans": np.array([True, False, True]),
    "single precision": X.astype(np.float32),
    "zero-dimensional": np.array(2.0),
    "float64": np.float64(2),
    "int8": np.int8(2),
    "series": pd.Series(X),
    "series of integers": pd.Series([1, 2, 3], index=[7, 5, 3]),
    "column": pd.DataFrame({"x": X, "y": X})["x"],
    "index": pd.Index(X),
    "masked": np.ma.array(X),
    "list": [1.0, 2.0, 3.0],
    "number": 2.5,
}


@pytest.mark.parametrize("symbol", OPERATIONS)
@pytest.mark.parametrize("left", ON_THE_LEFT)
def test_numbers_of_any_kind_work_on_the_left(left: str, symbol: str) -> None:
    """The result is the same as with a plain list on the right."""
    do, values = OPERATIONS[symbol], ON_THE_LEFT[left]
    plain = np.asarray(values, dtype=float)
    networks = []
    for swapped in (False, True):
        with svmp.Model() as model:
            a = svmp.Normal("a", mu=0.3, tau=1)
            if not swapped:
                mean = do(values, a)
            else:
                mean = {"+": a + plain, "-": -a + plain, "*": a * plain}[symbol]
            assert isinstance(mean, Expression)
            svmp.Normal("y", mu=mean, tau=2, observed=[0.1, 0.2, 0.5])
        networks.append(Network(model))
    q = anywhere(networks[0], 0)
    assert bound(networks[0], q) == pytest.approx(bound(networks[1], q), rel=1e-13)
    one, other = (optimum(network, q, "a") for network in networks)
    np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("make", [
    np.asarray, pd.DataFrame, sparse.csr_array, sparse.csr_matrix, sparse.coo_array,
])  # fmt: skip
def test_designs_of_any_kind_work_on_the_left(make: Any) -> None:
    design = np.array([[1.0, 2.0], [0.0, 3.0], [4.0, 0.0]])
    fits = []
    for product in (lambda w: svmp.dot(design, w), lambda w: svmp.dot(make(design), w)):
        with svmp.Model(coords={"k": 2}) as model:
            w = svmp.MvNormal("w", mu=0, tau=np.eye(2), dims="k")
            svmp.Normal("y", mu=product(w), tau=1, observed=X)
        fits.append(fitted(model, kernels=False))
    np.testing.assert_allclose(fits[0].mean("w"), fits[1].mean("w"), rtol=1e-9)
    if make is pd.DataFrame:
        with model, pytest.raises(svmp.ModelError, match=r"svmp\.dot"):
            make(design) @ w
    else:
        assert isinstance(make(design) @ w, Expression)


def test_polars_on_the_left_never_fails_silently() -> None:
    """Polars converts the other side to a number, so it must be on the right."""
    model = sound()
    with model:
        for do in OPERATIONS.values():
            with pytest.raises(Exception, match="Normal"):
                do(pl.Series(X), model["s"])
            assert isinstance(do(model["s"], pl.Series(X)), Expression)


def test_variables_are_hashable() -> None:
    model, things = declared()
    for thing in things.values():
        assert {thing: 1}[thing] == 1
        assert thing in {thing}
        assert thing in [thing]
    assert len(set(model.variables.values())) == len(model.variables)


def test_hasattr_and_getattr_with_a_default_work() -> None:
    _, things = declared()
    for thing in things.values():
        assert not hasattr(thing, "T")
        assert getattr(thing, "dtype", None) is None


def test_signs_and_sums_of_lists_work() -> None:
    model = sound()
    with model:
        s, u = model["s"], model["u"]
        assert isinstance(+s, Expression)
        assert isinstance(sum([s, u, 1]), Expression)
        assert f"{s}" == str(s)
        assert isinstance(np.negative(s), Expression)
