"""Other declarations of the same network: units, shifts, orders, labels, weights, and fewer rows.

Each returns the changed network and what must change in the answer, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import gammaln

from .spec import (
    CHAINS,
    Add,
    Array,
    At,
    Column,
    Decl,
    Diag,
    Expr,
    Mul,
    Number,
    Ref,
    Spec,
    Values,
    evaluate,
    mapped,
    names,
    with_parameters,
)  # fmt: skip
from .truth import known_mask

CONTINUOUS = ("Normal", "MvNormal", "Gamma", "Exponential")
REAL = ("Normal", "MvNormal", "LinearGaussianChain", "GaussianRandomWalk")


@dataclass(frozen=True)
class Moved:
    """A network and how its answer follows from that of the one before.

    Its bound is higher by `offset`; variables are multiplied by `scale`, then moved by `shift`; and
    place i along a dim of `order` has the element that was at place order[i].
    """

    spec: Spec
    offset: float = 0.0
    scale: Mapping[str, float] = field(default_factory=dict)
    shift: Mapping[str, float] = field(default_factory=dict)
    order: Mapping[str, Array] = field(default_factory=dict)

    def mean(self, before: Spec, name: str, values: Array) -> Array:
        """Return the means of a variable that follow from those before."""
        return self.placed(before, name, values) * self.scale.get(name, 1.0) + self.shift.get(
            name, 0.0
        )

    def std(self, before: Spec, name: str, values: Array) -> Array:
        return self.placed(before, name, values) * abs(self.scale.get(name, 1.0))

    def placed(self, before: Spec, name: str, values: Array) -> Array:
        dims = before[name].dims
        for axis, dim in enumerate(dims):
            if dim in self.order:
                values = np.take(values, self.order[dim], axis=axis)
        if values.ndim > len(dims):  # probabilities of categories
            for dim in self.order:
                if before[name].kind in ("Categorical", "DiscreteMarkovChain"):
                    from .truth import category_dim

                    if category_dim(before, name) == dim:
                        values = np.take(values, self.order[dim], axis=-1)
        return values


def kind_of(d: Decl) -> str:
    return d.component if d.kind == "Mixture" and d.component else d.kind


def scaled(e: Expr, by: float) -> Expr:
    """Return an expression times a number, folded into the numbers that it has."""
    match e:
        case Number(value):
            return Number(value * by)
        case Add(terms):
            return Add(tuple(scaled(t, by) for t in terms))
        case Mul((Number(value), *rest)):
            return Mul((Number(value * by), *rest))
        case Mul(factors):
            return Mul((Number(by), *factors))
        case Diag(of, dim, other):
            return Diag(scaled(of, by), dim, other)
        case _:
            return Mul((Number(by), e))


def units(spec: Spec, factors: Mapping[str, float]) -> Moved:
    """Measure variables in other units: x' = c x."""
    in_dynamics = set().union(
        *(names(d[p]) for d in spec.declarations for p in ("A", "B", "init", "P", "z") if d.has(p))
    )
    factors = {
        name: (c if kind_of(spec[name]) in REAL else abs(c))
        for name, c in factors.items()
        if kind_of(spec[name]) in (*CONTINUOUS, *CHAINS, "Wishart") and name not in in_dynamics
        and spec[name].kind != "DiscreteMarkovChain"
    }  # fmt: skip

    def own(e: Expr) -> Expr:
        if isinstance(e, Ref | At) and e.name in factors:
            return Mul((Number(1 / factors[e.name]), e))
        return e

    power = {"mu": 1, "tau": -2, "init_mu": 1, "init_tau": -2}
    powers = {
        "Normal": power, "MvNormal": power, "LinearGaussianChain": {**power, "B": 1},
        "GaussianRandomWalk": power, "Gamma": {"beta": -1}, "Exponential": {"lam": -1},
        "Wishart": {"V": 1, "rate": -1},
    }  # fmt: skip
    arrays, offset, declarations = dict(spec.arrays), 0.0, []
    for d in spec.declarations:
        c = factors.get(d.name, 1.0)

        def changed(parameter: str, e: Expr, d: Decl = d, c: float = c) -> Expr:
            e = mapped(e, own)
            by = powers.get(kind_of(d), {}).get(parameter, 0)
            return scaled(e, c**by) if by and c != 1.0 else e

        declarations.append(with_parameters(d, changed))
        if d.observed is not None and c != 1.0:
            column = arrays[d.observed]
            arrays[d.observed] = replace(column, values=column.values * c)
            offset -= float(np.log(abs(c))) * int(known_mask(spec, d).sum())
    moved = replace(spec, arrays=arrays, declarations=tuple(declarations))
    return Moved(moved, offset, scale=factors)


def shifted(spec: Spec, by: Mapping[str, float]) -> Moved:
    """Measure Normals from another zero: x' = x + a."""
    in_dynamics = set().union(
        *(names(d[p]) for d in spec.declarations for p in ("A", "B") if d.has(p))
    )
    by = {
        n: a
        for n, a in by.items()
        if spec[n].kind in ("Normal", "MvNormal") and n not in in_dynamics
    }

    def own(e: Expr) -> Expr:
        if isinstance(e, Ref | At) and e.name in by:
            return Add((e, Number(-by[e.name])))
        return e

    arrays, declarations = dict(spec.arrays), []
    for d in spec.declarations:
        a = by.get(d.name, 0.0)

        def changed(parameter: str, e: Expr, a: float = a) -> Expr:
            e = mapped(e, own)
            if parameter != "mu" or a == 0.0:
                return e
            if isinstance(e, Number):
                return Number(e.value + a)
            return Add((*(e.terms if isinstance(e, Add) else (e,)), Number(a)))

        declarations.append(with_parameters(d, changed))
        if d.observed is not None and a != 0.0:
            column = arrays[d.observed]
            arrays[d.observed] = replace(column, values=column.values + a)
    return Moved(replace(spec, arrays=arrays, declarations=tuple(declarations)), shift=by)


def same(dim: str, other: str) -> bool:
    """Whether two dims have the same elements: those of lines and of columns of a matrix."""
    return dim.rstrip("_") == other.rstrip("_")


def permuted(spec: Spec, dim: str, order: Array) -> Moved:
    """Write the elements of a dim in another order; chains are given the order of their rows."""
    back = np.argsort(order)
    arrays: dict[str, Column] = {}
    for name, column in spec.arrays.items():
        values = column.values
        for axis, d in enumerate(column.dims):
            if same(d, dim):
                values = np.take(values, order, axis=axis)
        if column.of is not None and same(column.of, dim):
            values = back[values]
        arrays[name] = replace(column, values=values)
    declarations = []
    for d in spec.declarations:
        if d.kind in CHAINS and d.dims[0] == dim and not d.column("order"):
            name = f"{d.name}_order"
            arrays[name] = Column(order.copy(), (dim,))
            d = replace(d, columns=(*d.columns, ("order", name)))

        def moved(e: Expr) -> Expr:
            if isinstance(e, At):
                keys = (
                    int(back[k]) if isinstance(k, int) and same(own, dim) else k
                    for own, k in zip(spec[e.name].dims, e.keys, strict=False)
                )
                return At(e.name, tuple(keys))
            return e

        declarations.append(with_parameters(d, lambda _, e: mapped(e, moved)))
    labels = {
        d: tuple(own[i] for i in order) if same(d, dim) else own for d, own in spec.labels.items()
    }
    whole = {d: order for d in spec.sizes if same(d, dim)}
    found = replace(spec, arrays=arrays, declarations=tuple(declarations), labels=labels)
    return Moved(found, order=whole)


def redeclared(spec: Spec, rng: np.random.Generator) -> Moved:
    """Declare the variables in another order."""
    left, done = list(spec.declarations), []
    while left:
        known = {d.name for d in done}
        ready = [d for d in left if all(names(e) <= known for _, e in d.parameters)]
        pick = ready[rng.integers(len(ready))]
        done.append(pick)
        left.remove(pick)
    return Moved(replace(spec, declarations=tuple(done)))


def relabelled(spec: Spec, rng: np.random.Generator) -> Moved:
    """Give labels to the elements of dims that have none, and take those of others away."""
    labels = {}
    for dim, size in spec.sizes.items():
        if dim in spec.labels or dim.endswith("_"):
            continue
        codes = [f"L{i:03d}" for i in range(size)]
        labels[dim] = tuple(codes[i] for i in rng.permutation(size))
    return Moved(replace(spec, labels=labels))


def rows_taken(spec: Spec, dim: str, rows: Array) -> Spec:
    """Return the network for some rows of a dim."""
    arrays = {}
    for name, column in spec.arrays.items():
        values = column.values
        for axis, d in enumerate(column.dims):
            if d == dim:
                values = np.take(values, rows, axis=axis)
        arrays[name] = replace(column, values=values)
    labels = {d: tuple(own[i] for i in rows) if d == dim else own for d, own in spec.labels.items()}
    return replace(spec, sizes={**spec.sizes, dim: len(rows)}, arrays=arrays, labels=labels)


def twice_and_double(spec: Spec, d: Decl) -> tuple[Spec, Moved] | None:
    """Return the network with each row of a table twice, and the one with twice the weight."""
    if len(d.dims) != 1 or d.missing is not None:
        return None
    (row,) = d.dims
    if any(row in other.dims for other in spec.declarations if other.name != d.name):
        return None
    rows = np.tile(np.arange(spec.sizes[row]), 2)
    twice = rows_taken(spec, row, rows)
    y = np.asarray(spec.arrays[d.observed].values, float)
    arrays = dict(spec.arrays)
    new: Decl
    if d.kind == "Normal" and not names(d["tau"]):
        tau = np.broadcast_to(evaluate(spec, d["tau"], {}).along((row,)), y.shape)
        offset = 0.5 * np.log(tau / (4 * np.pi)).sum()
        new = with_parameters(d, lambda p, e: scaled(e, 2.0) if p == "tau" else e)
    elif d.kind == "Poisson":
        offset = (gammaln(2 * y + 1) - 2 * gammaln(y + 1) - 2 * y * np.log(2)).sum()
        new = with_parameters(d, lambda p, e: scaled(e, 2.0))
        arrays[d.observed] = replace(arrays[d.observed], values=(2 * y).astype(int))
    elif d.kind == "Binomial":
        n = np.asarray(spec.arrays[d["n"].name].values, float)
        offset = 2 * ways(n, y).sum() - ways(2 * n, 2 * y).sum()
        arrays["doubled"] = Column((2 * n).astype(int), (row,))
        arrays[d.observed] = replace(arrays[d.observed], values=(2 * y).astype(int))
        new = with_parameters(d, lambda p, e: Values("doubled", plain=True) if p == "n" else e)
    elif d.kind == "Bernoulli":
        offset = 0.0
        arrays["doubled"] = Column(np.full(len(y), 2), (row,))
        arrays[d.observed] = replace(arrays[d.observed], values=(2 * y).astype(int))
        twos = ("n", Values("doubled", plain=True))
        new = replace(d, kind="Binomial", parameters=(twos, *d.parameters))
    elif d.kind == "Exponential":
        offset = -np.log(2 * y).sum()
        arrays[d.observed] = replace(arrays[d.observed], values=2 * y)
        new = replace(d, kind="Gamma", parameters=(("alpha", Number(2.0)), ("beta", d["lam"])))
    else:
        return None
    declarations = tuple(new if o.name == d.name else o for o in spec.declarations)
    double = replace(spec, arrays=arrays, declarations=declarations)
    return twice, Moved(double, offset=-float(offset))


def ways(n: Array, x: Array) -> Array:
    return gammaln(n + 1) - gammaln(x + 1) - gammaln(n - x + 1)
