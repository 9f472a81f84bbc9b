"""A network as an immutable value: it is built into a `svmp.Model`, and printed as code.

A model is built by running the code that is printed, so that what a failure prints is what failed.
Expressions and arrays know the names of their axes; `evaluate` computes an expression from values
of the variables with these names alone, without svmp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import svmp

Array = np.ndarray
Dims = tuple[str, ...]


@dataclass(frozen=True)
class Number:
    """A number in the code."""

    value: float


@dataclass(frozen=True)
class Values:
    """An array of the network; `plain` ones are written without the names of their axes."""

    name: str
    plain: bool = False


@dataclass(frozen=True)
class Ref:
    """A variable."""

    name: str


@dataclass(frozen=True)
class At:
    """Elements of a variable: by axis the name of a key, a place, or None for all."""

    name: str
    keys: tuple[str | int | None, ...]


@dataclass(frozen=True)
class Add:
    """A sum of terms."""

    terms: tuple[Expr, ...]


@dataclass(frozen=True)
class Mul:
    """A product of factors."""

    factors: tuple[Expr, ...]


@dataclass(frozen=True)
class Dot:
    """A product of factors, summed over an axis."""

    factors: tuple[Expr, ...]
    dim: str


@dataclass(frozen=True)
class Diag:
    """A diagonal matrix, whose diagonal is along `dim`; its other axis is `other`."""

    of: Expr
    dim: str
    other: str


Expr = Number | Values | Ref | At | Add | Mul | Dot | Diag


@dataclass(frozen=True)
class Column:
    """An array: its values, the names of its axes, and the dim whose places its values are."""

    values: Array
    dims: Dims
    of: str | None = None


@dataclass(frozen=True)
class Decl:
    """A variable; `component` is the density that a mixture chooses, or a chain begins with."""

    kind: str
    name: str
    dims: Dims
    parameters: tuple[tuple[str, Expr], ...]
    observed: str | None = None
    missing: str | None = None
    missing_as: str = "mask"
    component: str | None = None
    columns: tuple[tuple[str, str], ...] = ()

    def __getitem__(self, parameter: str) -> Expr:
        return dict(self.parameters)[parameter]

    def has(self, parameter: str) -> bool:
        return parameter in dict(self.parameters)

    def column(self, name: str) -> str | None:
        return dict(self.columns).get(name)


EVENT = {"MvNormal": 1, "Dirichlet": 1, "Multinomial": 1, "Wishart": 2}
"""Number of the last axes that belong to one value."""
CHAINS = ("DiscreteMarkovChain", "LinearGaussianChain", "GaussianRandomWalk")


@dataclass(frozen=True)
class Spec:
    """A network: sizes of its dims, labels of some, arrays, and variables in their order."""

    sizes: Mapping[str, int]
    arrays: Mapping[str, Column]
    declarations: tuple[Decl, ...]
    labels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Decl:
        return next(d for d in self.declarations if d.name == name)

    @property
    def hidden(self) -> tuple[Decl, ...]:
        """The variables of which some values are not known."""
        return tuple(
            d for d in self.declarations
            if d.observed is None or (d.missing is not None and self.is_parent(d.name))
        )  # fmt: skip

    @property
    def observed(self) -> tuple[Decl, ...]:
        """The variables of which some values are known."""
        return tuple(d for d in self.declarations if d.observed is not None)

    def is_parent(self, name: str) -> bool:
        """Whether another variable reads this one."""
        return any(name in names(e) for d in self.declarations for _, e in d.parameters)

    def shape(self, dims: Dims) -> tuple[int, ...]:
        return tuple(self.sizes[d] for d in dims)

    def size(self, decl: Decl) -> int:
        return int(np.prod(self.shape(decl.dims), dtype=int))

    # --- code ---------------------------------------------------------------------------------

    def code(self) -> str:
        """Return code that declares the network as `model`, and runs on its own."""
        return "import numpy as np\n\nimport svmp\n\n" + self.declaring(self.arrays)

    def declaring(self, arrays: Mapping[str, Column]) -> str:
        """Return the declaration, with the code of some of its arrays."""
        lines = [f"{name} = {literal(c, self.labels)}" for name, c in arrays.items()]
        coords = ", ".join(
            f"{dim!r}: {list(self.labels[dim]) if dim in self.labels else size!r}"
            for dim, size in self.sizes.items()
        )
        lines.append(f"with svmp.Model(coords={{{coords}}}) as model:")
        lines += [f"    {self.declared(d)}" for d in self.declarations]
        return "\n".join(lines) + "\n"

    def declared(self, d: Decl) -> str:
        """Return the line that declares a variable."""
        given = {name: self.written(e) for name, e in d.parameters}
        given = {"_lambda" if name == "lambda" else name: e for name, e in given.items()}
        if d.kind == "Mixture":
            inner = ", ".join(f"{name}={e}" for name, e in given.items() if name != "z")
            given = {"z": given["z"], "component": f"svmp.{d.component}.dist({inner})"}
        elif d.kind in ("LinearGaussianChain", "GaussianRandomWalk"):
            mu, tau = given.pop("init_mu"), given.pop("init_tau")
            given = {"init": f"svmp.{d.component}.dist(mu={mu}, tau={tau})"} | given
        given |= dict(d.columns)
        if d.dims:
            one = len(d.dims) == 1
            given["dims"] = repr(d.dims[0]) if one else repr(d.dims)
        if d.observed is not None:
            given["observed"] = d.observed
            if d.missing is not None and d.missing_as == "mask":
                given["missing"] = d.missing
            elif d.missing is not None and d.missing_as == "nan":
                given["observed"] = f"np.where({d.missing}, np.nan, {d.observed})"
                given["missing"] = "True"
            elif d.missing is not None:
                given["observed"] = f"np.ma.array({d.observed}, mask={d.missing})"
        arguments = ", ".join([repr(d.name), *(f"{name}={e}" for name, e in given.items())])
        return f"{d.name} = svmp.{d.kind}({arguments})"

    def written(self, e: Expr, inside: bool = False) -> str:
        """Return the code of an expression; `inside` a product, sums have parentheses."""
        match e:
            case Number(value):
                return f"({value!r})" if inside and value < 0 else repr(value)
            case Values(name, plain):
                dims = self.arrays[name].dims
                return name if plain or not dims else f"svmp.data({name}, dims={dims!r})"
            case Ref(name):
                return name
            case At(name, keys):
                return f"{name}[{', '.join(self.key(k) for k in keys)}]"
            case Add(terms):
                text = " + ".join(self.written(t, True) for t in terms)
                return f"({text})" if inside else text
            case Mul(factors):
                return " * ".join(self.written(f, True) for f in factors)
            case Dot(factors, dim):
                inner = ", ".join(self.written(f) for f in factors)
                return f"svmp.dot({inner}, dim={dim!r})"
            case Diag(of):
                return f"svmp.diag({self.written(of)})"

    def key(self, key: str | int | None) -> str:
        if key is None:
            return ":"
        if isinstance(key, int):
            return str(key)
        return f"svmp.data({key}, dims={self.arrays[key].dims!r})"

    def build(self) -> svmp.Model:
        """Run the code that declares the network."""
        scope: dict[str, Any] = {"np": np, "svmp": svmp}
        for name, column in self.arrays.items():
            scope[name] = given(column, self.labels)
        exec(self.declaring({}), scope)
        return scope["model"]

    def __repr__(self) -> str:
        return self.code()


def given(column: Column, labels: Mapping[str, tuple[Any, ...]]) -> Array:
    """Return the array that svmp is given: labels instead of the places along some dims."""
    if column.of in labels:
        return np.array(labels[column.of])[column.values]
    return column.values.copy()


def literal(column: Column, labels: Mapping[str, tuple[Any, ...]]) -> str:
    """Return the code of an array."""
    values = given(column, labels)
    kind = ", dtype=int" if values.size == 0 and values.dtype.kind == "i" else ""
    return f"np.array({values.tolist()!r}{kind})".replace("nan", "np.nan").replace("inf", "np.inf")


# --- walking ------------------------------------------------------------------------------------


def parts_of(e: Expr) -> tuple[Expr, ...]:
    match e:
        case Add(terms):
            return terms
        case Mul(factors) | Dot(factors, _):
            return factors
        case Diag(of):
            return (of,)
    return ()


def names(e: Expr) -> set[str]:
    """Return the names of the variables in an expression."""
    own = {e.name} if isinstance(e, Ref | At) else set()
    return own.union(*(names(part) for part in parts_of(e)))


def arrays_in(e: Expr) -> set[str]:
    """Return the names of the arrays in an expression, keys too."""
    own: set[str] = set()
    if isinstance(e, Values):
        own = {e.name}
    elif isinstance(e, At):
        own = {k for k in e.keys if isinstance(k, str)}
    return own.union(*(arrays_in(part) for part in parts_of(e)))


def mapped(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Return an expression with its leaves changed."""
    match e:
        case Add(terms):
            return Add(tuple(mapped(t, change) for t in terms))
        case Mul(factors):
            return Mul(tuple(mapped(f, change) for f in factors))
        case Dot(factors, dim):
            return Dot(tuple(mapped(f, change) for f in factors), dim)
        case Diag(of, dim, other):
            return Diag(mapped(of, change), dim, other)
    return change(e)


def with_parameters(d: Decl, change: Callable[[str, Expr], Expr]) -> Decl:
    """Return a variable with its parameters changed."""
    return replace(d, parameters=tuple((name, change(name, e)) for name, e in d.parameters))


def ancestors(spec: Spec, name: str) -> set[str]:
    """Return the names of all variables that a variable depends on."""
    direct = set().union(*(names(e) for _, e in spec[name].parameters))
    return direct.union(*(ancestors(spec, parent) for parent in direct))


def informed(spec: Spec) -> set[str]:
    """Return the names of the hidden variables that have an observed descendant."""
    return set().union(*(ancestors(spec, d.name) for d in spec.observed))


def used_arrays(spec: Spec) -> Iterator[str]:
    for d in spec.declarations:
        for _, e in d.parameters:
            yield from arrays_in(e)
        yield from (name for name in (d.observed, d.missing) if name is not None)
        yield from (name for column, name in d.columns if column != "sequence_dim")


# --- values -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Named:
    """An array whose axes have names."""

    values: Array
    dims: Dims

    def along(self, dims: Dims) -> Array:
        """Return the values with these axes, of length 1 where they have none."""
        order = [self.dims.index(d) for d in dims if d in self.dims]
        shape = [self.values.shape[self.dims.index(d)] if d in self.dims else 1 for d in dims]
        assert len(order) == len(self.dims), (self.dims, dims)
        return self.values.transpose(order).reshape(shape)


def union(*dims: Dims) -> Dims:
    return tuple(dict.fromkeys(d for some in dims for d in some))


def combined(function: Callable[[Array, Array], Array], one: Named, other: Named) -> Named:
    dims = union(one.dims, other.dims)
    return Named(function(one.along(dims), other.along(dims)), dims)


def evaluate(spec: Spec, e: Expr, env: Mapping[str, Named]) -> Named:
    """Compute an expression; the variables may have more axes than those they are declared with."""
    match e:
        case Number(value):
            return Named(np.array(float(value)), ())
        case Values(name):
            column = spec.arrays[name]
            return Named(np.asarray(column.values, float), column.dims)
        case Ref(name):
            return env[name]
        case At(name, keys):
            return taken(spec, env[name], spec[name].dims, keys)
        case Add(terms):
            total = evaluate(spec, terms[0], env)
            for term in terms[1:]:
                total = combined(np.add, total, evaluate(spec, term, env))
            return total
        case Mul(factors):
            product = evaluate(spec, factors[0], env)
            for factor in factors[1:]:
                product = combined(np.multiply, product, evaluate(spec, factor, env))
            return product
        case Dot(factors, dim):
            product = evaluate(spec, Mul(factors), env)
            rest = tuple(d for d in product.dims if d != dim)
            return Named(product.along((*rest, dim)).sum(axis=-1), rest)
        case Diag(of, dim, other):
            diagonal = evaluate(spec, of, env)
            rest = tuple(d for d in diagonal.dims if d != dim)
            values = diagonal.along((*rest, dim))
            size = spec.sizes[dim]
            values = np.broadcast_to(values, (*values.shape[:-1], size))
            return Named(values[..., None] * np.eye(size), (*rest, dim, other))


def taken(spec: Spec, of: Named, dims: Dims, keys: tuple[str | int | None, ...]) -> Named:
    """Return elements by keys for the axes `dims`; other axes are kept."""
    found: dict[str, Named] = {}
    for dim, key in zip(dims, (*keys, *[None] * (len(dims) - len(keys))), strict=True):
        if isinstance(key, str):
            found[dim] = Named(spec.arrays[key].values, spec.arrays[key].dims)
        elif isinstance(key, int):
            found[dim] = Named(np.array(key), ())
    for dim, size in zip(of.dims, of.values.shape, strict=True):
        found.setdefault(dim, Named(np.arange(size), (dim,)))
    out = union(*(found[dim].dims for dim in of.dims))
    return Named(of.values[tuple(found[dim].along(out) for dim in of.dims)], out)
