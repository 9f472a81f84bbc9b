"""Networks of everything that can be declared, as a Hypothesis strategy.

A network has one or two tables that share groups, variables and precisions. The structure is drawn
by Hypothesis, so that a failure is shrunk; numbers come from a generator with a drawn seed, and are
rounded. Values are of the order of 1: other scales come from `transform.py`, which keeps the truth
known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .spec import (
    Add,
    Array,
    At,
    Column,
    Decl,
    Diag,
    Dims,
    Dot,
    Expr,
    Mul,
    Number,
    Ref,
    Spec,
    Values,
)  # fmt: skip

ROWS = (1, 2, 3, 4, 6, 10, 30)
MANY = (300, 3000)
LABELS: dict[str, Callable[[int], tuple[Any, ...]]] = {
    "letters": lambda n: tuple(f"{'zyxwv'[i % 5]}{i}" for i in range(n)),
    "years": lambda n: tuple(range(2000 + n, 2000, -1)),
}


class Writer:
    """Collects the parts of a network while they are drawn."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 2**16)))
        self.sizes: dict[str, int] = {}
        self.arrays: dict[str, Column] = {}
        self.declarations: list[Decl] = []
        self.known = self.yes()
        """Whether all precisions are numbers."""
        self.products = not self.known and self.yes()
        """Whether variables are multiplied by each other."""
        self.chained: set[str] = set()
        self.sequences: dict[str, dict[str, str]] = {}

    # --- draws --------------------------------------------------------------------------------

    def yes(self) -> bool:
        return bool(self.draw(st.booleans()))

    def rarely(self) -> bool:
        return self.draw(st.integers(0, 5)) == 5

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def size(self, least: int = 1, most: int = 3) -> int:
        return int(self.draw(st.integers(least, most)))

    def normal(self, *shape: int) -> Array:
        return np.round(self.rng.normal(size=shape), 2)

    def positive(self, *shape: int) -> Array:
        return np.round(self.rng.gamma(2.0, 0.7, size=shape) + 0.05, 2)

    def matrix(self, size: int) -> Array:
        half = self.rng.normal(size=(size, size))
        return np.round(half @ half.T / size + np.eye(size), 2)

    def shares(self, *shape: int) -> Array:
        p = np.round(self.rng.dirichlet(np.ones(shape[-1]), shape[:-1]).clip(0.05), 3)
        p = p / p.sum(axis=-1, keepdims=True)
        return p

    # --- parts --------------------------------------------------------------------------------

    def free(self, stem: str) -> str:
        taken = {*self.sizes, *self.arrays, *(d.name for d in self.declarations)}
        return next(n for n in (stem, *(f"{stem}{i}" for i in range(2, 99))) if n not in taken)

    def dim(self, stem: str, size: int) -> str:
        name = self.free(stem)
        self.sizes[name] = size
        return name

    def array(self, stem: str, values: Array, dims: Dims = (), of: str | None = None) -> str:
        name = self.free(stem)
        self.arrays[name] = Column(np.asarray(values), dims, of)
        return name

    def declare(
        self,
        kind: str,
        stem: str,
        dims: Dims = (),
        observed: Array | None = None,
        missing: bool = True,
        component: str | None = None,
        columns: dict[str, str] | None = None,
        of: str | None = None,
        **parameters: Expr,
    ) -> str:
        """Declare a variable, observed with some values missing or hidden; return its name."""
        name = self.free(stem)
        self.declarations.append(Decl("", name, (), ()))  # takes the name
        values = gaps = None
        if observed is not None:
            values = self.array(f"{name}_values", observed, dims, of)
            if missing and self.rarely():
                plate = self.plate(component or kind, dims)
                gap = self.rng.random(self.shape(plate)) < 0.4
                if not gap.all():
                    gaps = self.array(f"{name}_missing", gap, plate)
        self.declarations[[d.name for d in self.declarations].index(name)] = Decl(
            kind, name, dims, tuple(parameters.items()), values, gaps,
            self.pick("mask", "nan", "masked") if gaps and self.real(component or kind) else "mask",
            component, tuple((columns or {}).items()),
        )  # fmt: skip
        # its parents were declared while its parameters were drawn, and come first
        return name

    def real(self, kind: str) -> bool:
        return kind in ("Normal", "Gamma", "Exponential")

    def plate(self, kind: str, dims: Dims) -> Dims:
        events = {"MvNormal": 1, "Multinomial": 1, "Dirichlet": 1, "Wishart": 2}.get(kind, 0)
        return dims[: len(dims) - events]

    def shape(self, dims: Dims) -> tuple[int, ...]:
        return tuple(self.sizes[d] for d in dims)

    def numbers(self, dims: Dims = (), positive: bool = False) -> Expr:
        """Return a number, or an array along some of the dims."""
        some = tuple(d for d in dims if self.rarely())
        if not some:
            return Number(float(self.positive() if positive else self.normal()))
        values = self.positive(*self.shape(some)) if positive else self.normal(*self.shape(some))
        return Values(self.array("c", values, some))

    def group(self, row: str) -> tuple[str, str]:
        """Return a dim of groups and a key from the rows to it, new or old."""
        old = [(c.of, n) for n, c in self.arrays.items() if c.of and c.dims == (row,)]
        old = [(of, n) for of, n in old if n.startswith("key")]
        if old and self.yes():
            return self.pick(*old)
        groups = [d for d in self.sizes if d.startswith("group")]
        dim = self.pick(*groups) if groups and self.yes() else self.dim("group", self.size(1, 4))
        key = self.rng.integers(self.sizes[dim], size=self.sizes[row])
        return dim, self.array("key", key, (row,), dim)

    # --- precisions and rates -----------------------------------------------------------------

    def precision(self, dims: Dims, row: str | None = None) -> Expr:
        """Return a precision or rate that may vary along dims."""
        if self.known or self.yes():
            return self.numbers(dims, positive=True)
        return self.gamma(dims, row)

    def gamma(self, dims: Dims, row: str | None) -> Expr:
        old = [d for d in self.declarations if d.kind == "Gamma" and not d.observed]
        old = [d for d in old if set(d.dims) <= set(dims)]
        if old and self.yes():
            found: Expr = Ref(self.pick(*old).name)
        elif row is not None and self.rarely():
            dim, key = self.group(row)
            found = At(self.declare("Gamma", "g", (dim,), **self.prior_of_gamma((dim,))), (key,))
        else:
            own = tuple(d for d in dims if self.rarely() and self.sizes[d] <= 4)
            found = Ref(self.declare("Gamma", "g", own, **self.prior_of_gamma(own)))
        if self.rarely():
            return Mul((self.numbers(dims, positive=True), found))
        return found

    def prior_of_gamma(self, dims: Dims) -> dict[str, Expr]:
        alpha = Number(self.pick(2.0, 1.0, 0.5, 10.0))
        if self.rarely() and self.products:
            return {"alpha": alpha, "beta": Ref(self.declare(
                "Gamma", "h", (), alpha=Number(2.0), beta=Number(1.0)
            ))}  # fmt: skip
        return {"alpha": alpha, "beta": Number(self.pick(1.0, 2.0, 0.1))}

    # --- effects ------------------------------------------------------------------------------

    def prior(self, dims: Dims) -> dict[str, Expr]:
        """Return the mean and precision of a Normal effect."""
        mu = self.numbers(dims)
        if dims and self.rarely():
            mu = Ref(self.scalar())
        return {"mu": mu, "tau": self.precision(dims)}

    def scalar(self) -> str:
        """Return a Normal without dims."""
        old = [d.name for d in self.declarations if d.kind == "Normal" and not d.dims]
        old = [n for n in old if self.hidden(n)]
        if old and self.yes():
            return self.pick(*old)
        return self.declare("Normal", "a", (), **self.prior(()))

    def hidden(self, name: str) -> bool:
        return next(d for d in self.declarations if d.name == name).observed is None

    def effect(self, row: str, beside: Dims = (), walk: bool = True) -> Expr:
        """Return one term of the mean of the rows of a table; `beside` are its other dims."""
        kinds = ["intercept", "group", "slope", "regression", "vector", "own", "group slope"]
        if beside:
            kinds += ["beside", "loading"]
        if walk and not self.chained:
            kinds += ["walk", "chain"]
        if not self.known:
            kinds += ["covariate"]
        kind = self.pick(*kinds)
        if kind == "intercept":
            return Ref(self.scalar())
        if kind == "beside":
            (dim,) = beside[:1]
            return Ref(self.declare("Normal", "b", (dim,), **self.prior((dim,))))
        if kind in ("group", "group slope"):
            dim, key = self.group(row)
            old = [d.name for d in self.declarations if d.dims == (dim,) and d.kind == "Normal"]
            old = [n for n in old if self.hidden(n)]
            if old and self.rarely():
                name = self.pick(*old)
            else:
                name = self.declare("Normal", "b", (dim,), **self.prior((dim,)))
            term: Expr = At(name, (key,))
            return Mul((self.covariate(row), term)) if kind == "group slope" else term
        if kind == "slope":
            return Mul((Ref(self.scalar()), self.covariate(row)))
        if kind == "own":
            return Ref(self.declare("Normal", "e", (row,), **self.prior((row,))))
        if kind == "regression":
            k = self.dim("k", self.size(1, 3))
            if self.yes():
                name = self.declare("Normal", "w", (k,), **self.prior((k,)))
            else:
                name = self.vector("w", (k,))
            design = self.array("X", self.normal(self.sizes[row], self.sizes[k]), (row, k))
            return Dot((Values(design), Ref(name)), k)
        if kind == "vector":
            dim, key = self.group(row)
            k = self.dim("k", self.size(1, 2))
            name = self.vector("v", (dim, k))
            if self.yes():
                design = self.array("X", self.normal(self.sizes[row], self.sizes[k]), (row, k))
                return Dot((Values(design), At(name, (key, None))), k)
            return At(name, (key, 0))
        if kind == "loading":
            dim = beside[0]
            k = self.dim("k", self.size(1, 2))
            name = self.declare("Normal", "l", (dim, k), **self.prior((dim, k)))
            design = self.array("X", self.normal(self.sizes[row], self.sizes[k]), (row, k))
            return Dot((Values(design), Ref(name)), k)
        if kind == "walk":
            return Ref(self.walk(row))
        if kind == "chain":
            name, k = self.chain(row)
            if self.yes():
                return At(name, (None, 0))
            return Dot((Values(self.array("L", self.normal(self.sizes[k]), (k,))), Ref(name)), k)
        x = self.declare(
            "Normal", "x", (row,), observed=self.normal(self.sizes[row]), **self.prior((row,))
        )
        return Mul((Ref(self.scalar()), Ref(x)))

    def covariate(self, row: str) -> Expr:
        old = [n for n, c in self.arrays.items() if n.startswith("u") and c.dims == (row,)]
        if old and self.yes():
            return Values(self.pick(*old))
        return Values(self.array("u", self.normal(self.sizes[row]), (row,)))

    def vector(self, stem: str, dims: Dims) -> str:
        """Declare an MvNormal effect."""
        k = dims[-1]
        size = self.sizes[k]
        mu: Expr = Number(0.0)
        kind = self.pick("matrix", "matrix", "mean", "diag", "scaled", "Wishart")
        if kind == "mean" and len(dims) > 1:
            mu = Ref(self.declare(
                "MvNormal", "m", (k,), mu=Number(0.5), tau=self.fixed(k, size)
            ))  # fmt: skip
        if self.known or kind in ("matrix", "mean"):
            tau: Expr = self.fixed(k, size)
        elif kind == "diag":
            g = self.declare("Gamma", "g", (k,), alpha=Number(2.0), beta=Number(1.0))
            tau = Diag(Ref(g), k, f"{k}_")
        elif kind == "scaled":
            g = self.declare("Gamma", "g", (), alpha=Number(2.0), beta=Number(1.0))
            tau = Mul((Ref(g), self.fixed(k, size)))
        else:
            other = f"{k}_"
            self.sizes[other] = size
            V = self.array("V", np.eye(size), (k, other))
            prior: dict[str, Expr] = {"V": Values(V, plain=True)}
            rate = self.pick("V", "V", "diag", "matrix") if kind == "Wishart" else "V"
            if rate == "diag":
                g = self.declare("Gamma", "g", (k,), alpha=Number(0.5), beta=Number(1.0))
                prior = {"rate": Diag(Ref(g), k, other)}
            elif rate == "matrix":
                R = self.declare("Wishart", "R", (k, other), nu=Number(float(size + 1)), **prior)
                prior = {"rate": Mul((Number(0.5), Ref(R)))}
            W = self.declare("Wishart", "W", (k, other), nu=Number(float(size + 2)), **prior)
            tau = Ref(W)
        return self.declare("MvNormal", stem, dims, mu=mu, tau=tau)

    def fixed(self, k: str, size: int) -> Expr:
        other = f"{k}_"
        self.sizes[other] = size
        return Values(self.array("T", self.matrix(size), (k, other)), plain=True)

    def product(self, row: str) -> Expr:
        """Return a product of two variables."""
        if self.yes():
            return Mul((self.simple(row), self.simple(row)))
        k = self.dim("k", self.size(1, 2))
        pair = []
        for _ in range(2):
            dim, key = self.group(row)
            if self.yes():
                name = self.declare("Normal", "f", (dim, k), **self.prior((dim, k)))
            else:
                name = self.vector("f", (dim, k))
            pair.append(At(name, (key, None)))
        return Dot(tuple(pair), k)

    def simple(self, row: str) -> Expr:
        """Return a new Normal, alone or by a key, so that no product has it twice."""
        if self.yes():
            return Ref(self.declare("Normal", "a", (), **self.prior(())))
        dim, key = self.group(row)
        return At(self.declare("Normal", "b", (dim,), **self.prior((dim,))), (key,))

    def mean(self, row: str, beside: Dims = (), walk: bool = True) -> Expr:
        terms = [self.effect(row, beside, walk) for _ in range(self.size(1, 3))]
        if self.products and self.yes():
            terms.append(self.product(row))
        if self.rarely():
            terms.append(self.numbers((row,)))
        if self.rarely():
            terms[-1] = Mul((Number(float(self.pick(-1.0, 0.5, 3.0))), terms[-1]))
        return terms[0] if len(terms) == 1 else Add(tuple(terms))

    # --- chains -------------------------------------------------------------------------------

    def sequence(self, row: str) -> dict[str, str]:
        """Return the columns that divide the rows into sequences."""
        if row in self.sequences and self.yes():
            return dict(self.sequences[row])
        n, columns = self.sizes[row], {}
        if self.yes():
            key = np.unique(self.rng.integers(max(1, n // 3) + 1, size=n), return_inverse=True)[1]
            columns["sequence"] = self.array("s", key, (row,))
            columns["sequence_dim"] = f"'{self.free('sequence')}_{row}'"
            if self.rarely():
                columns["order"] = self.array("o", self.rng.permutation(n), (row,))
        if row in self.sequences:
            columns["sequence_dim"] = f"'{self.free('series')}_{row}'"
        self.sequences[row] = dict(columns)
        return columns

    def walk(self, row: str) -> str:
        self.chained.add(row)
        columns = self.sequence(row)
        if self.rarely():
            columns["step"] = self.array("dt", self.positive(self.sizes[row]), (row,))
        more = {"mu": Number(0.5)} if self.rarely() else {}
        return self.declare(
            "GaussianRandomWalk", "x", (row,), component="Normal", columns=columns,
            tau=self.one_precision(), init_mu=Number(0.0), init_tau=Number(self.pick(1.0, 0.1)),
            **more,
        )  # fmt: skip

    def one_precision(self) -> Expr:
        if self.known or self.yes():
            return Number(float(self.positive()))
        return Ref(self.declare("Gamma", "g", (), alpha=Number(2.0), beta=Number(1.0)))

    def chain(self, row: str) -> tuple[str, str]:
        """Declare a chain of vectors; return its name and the dim of its vectors."""
        self.chained.add(row)
        k = self.dim("state", self.size(1, 2))
        size = self.sizes[k]
        columns = self.sequence(row)
        if self.rarely():
            columns["step"] = self.array("dt", self.positive(self.sizes[row]), (row,))
        kind = self.pick("number", "matrix", "diag", "learned")
        if kind == "learned" and not self.known and "step" not in columns:
            source = self.dim(f"{k}_", size)
            A: Expr = Ref(self.declare(
                "MvNormal", "A", (k, source), mu=Number(0.0), tau=self.fixed(source, size)
            ))  # fmt: skip
        elif kind in ("matrix", "learned"):
            source = self.dim(f"{k}_", size)
            values = np.round(0.5 * self.normal(size, size) + 0.5 * np.eye(size), 2)
            A = Values(self.array("A", values, (k, source)), plain=True)
        elif kind == "diag":
            source = self.dim(f"{k}_", size)
            A = Diag(
                Values(self.array("c", 0.3 * self.positive(size), (k,)), plain=True), k, source
            )
        else:
            A = Number(self.pick(1.0, 0.9))
        tau = self.pick("number", "matrix", "gamma")
        if tau == "matrix":
            step: Expr = self.fixed(k, size)
        elif tau == "gamma" and not self.known:
            step = Ref(self.declare("Gamma", "g", (k,), alpha=Number(2.0), beta=Number(1.0)))
        else:
            step = Number(float(self.positive()))
        more: dict[str, Expr] = {}
        if self.rarely():
            source = self.dim("input", self.size(1, 2))
            inputs = self.normal(self.sizes[row], self.sizes[source])
            columns["u"] = self.array("push", inputs, (row, source))
            B = self.array("B", self.normal(size, self.sizes[source]), (k, source))
            more["B"] = Values(B, plain=True)
        elif self.rarely() and not self.known:
            z, component = self.choice(row)
            shape = self.sizes[component], size
            step = Values(self.array("steps", self.positive(*shape), (component, k)))
            more["switch"] = Ref(z)
        name = self.declare(
            "LinearGaussianChain", "x", (row, k), component="Normal", columns=columns,
            A=A, tau=step, init_mu=Number(0.0), init_tau=Number(self.pick(1.0, 0.1)), **more,
        )  # fmt: skip
        return name, k

    def states(self, row: str) -> tuple[str, str]:
        """Declare a chain of states; return its name and the dim of the states."""
        state = self.dim("state", self.size(2, 3))
        size = self.sizes[state]
        to = self.dim(f"{state}_", size)
        columns = self.sequence(row)
        if self.known or self.yes():
            init: Expr = Values(self.array("init", self.shares(size), (state,)), plain=True)
            init = Values(init.name)
            P: Expr = Values(self.array("P", self.shares(size, size), (state, to)), plain=True)
        else:
            init = Ref(self.declare("Dirichlet", "start", (state,), a=Number(1.0)))
            P = Ref(self.declare("Dirichlet", "move", (state, to), a=Number(1.0)))
        name = self.declare("DiscreteMarkovChain", "z", (row,), columns=columns, init=init, P=P)
        return name, state

    # --- tables -------------------------------------------------------------------------------

    def row(self) -> str:
        old = [d for d in self.sizes if d.startswith("row")]
        if old and self.yes():
            return self.pick(*old)
        if self.rarely() and self.rarely():
            return self.dim("row", self.pick(*MANY))
        return self.dim("row", self.pick(*ROWS))

    def normals(self) -> None:
        """A table of numbers."""
        row = self.row()
        dims: Dims = (row,)
        if self.rarely():
            dims = (row, self.dim("sensor", self.size(2, 3)))
        mean, tau = self.mean(row, dims[1:]), self.precision(dims, row)
        y = self.normal(*self.shape(dims)) * self.pick(1.0, 1.0, 3.0)
        if self.rarely():
            own = self.declare("Normal", "m", dims, mu=mean, tau=tau)
            self.declare("Normal", "y", dims, y, mu=Ref(own), tau=self.precision(dims))
        else:
            self.declare("Normal", "y", dims, y, mu=mean, tau=tau)

    def outcomes(self) -> None:
        """A table of vectors."""
        row = self.row()
        d = self.dim("d", self.size(1, 3))
        y = self.normal(self.sizes[row], self.sizes[d])
        kind = self.pick("vector", "effects")
        if kind == "vector":
            dim, key = self.group(row)
            mu: Expr = At(self.vector("v", (dim, d)), (key, None))
            if self.yes():
                mu = Add((mu, Ref(self.scalar())))
        else:
            mu = self.mean(row, (d,), walk=False)
        if self.known or self.yes():
            tau: Expr = self.fixed(d, self.sizes[d])
        else:
            other = f"{d}_"
            self.sizes[other] = self.sizes[d]
            V = self.array("V", np.eye(self.sizes[d]), (d, other))
            tau = Ref(self.declare(
                "Wishart", "W", (d, other), nu=Number(float(self.sizes[d] + 2)),
                V=Values(V, plain=True),
            ))  # fmt: skip
        self.declare("MvNormal", "y", (row, d), y, mu=mu, tau=tau)

    def logits(self) -> None:
        """A table of Bernoullis or Binomials with logits."""
        row = self.row()
        logit = self.mean(row, walk=self.rarely())
        n = self.sizes[row]
        if self.yes():
            x = self.rng.integers(0, 2, n)
            self.declare("Bernoulli", "x", (row,), x, logit=logit)
        else:
            trials = self.rng.integers(1, 6, n)
            name = self.array("n", trials, (row,))
            x = self.rng.binomial(trials, 0.4)
            self.declare("Binomial", "x", (row,), x, n=Values(name, plain=True), logit=logit)

    def rates(self) -> None:
        """Counts, waits and sizes with a rate."""
        row = self.row()
        n = self.sizes[row]
        rate = self.gamma((row,), row)
        if self.products and self.yes():
            rate = Mul((rate, self.simple_rate(row)))
        kind = self.pick("Poisson", "Exponential", "Gamma")
        if kind == "Poisson":
            self.declare("Poisson", "x", (row,), self.rng.poisson(2.0, n), mu=rate)
        elif kind == "Exponential":
            self.declare("Exponential", "x", (row,), self.positive(n), lam=rate)
        else:
            alpha = self.numbers((row,), positive=True)
            self.declare("Gamma", "x", (row,), self.positive(n), alpha=alpha, beta=rate)

    def simple_rate(self, row: str) -> Expr:
        dim, key = self.group(row)
        prior = {"alpha": Number(2.0), "beta": Number(1.0)}
        return At(self.declare("Gamma", "g", (dim,), **prior), (key,))

    def coins(self) -> None:
        """Bernoullis and Binomials with a probability."""
        row = self.row()
        n = self.sizes[row]
        dim, key = self.group(row)
        prior = {"alpha": Number(self.pick(1.0, 0.5, 3.0)), "beta": Number(self.pick(1.0, 2.0))}
        if self.yes():
            p: Expr = At(self.declare("Beta", "p", (dim,), **prior), (key,))
        else:
            p = Ref(self.declare("Beta", "p", (), **prior))
        if self.yes():
            self.declare("Bernoulli", "x", (row,), self.rng.integers(0, 2, n), p=p)
        else:
            trials = self.rng.integers(1, 6, n)
            name = self.array("n", trials, (row,))
            self.declare(
                "Binomial", "x", (row,), self.rng.binomial(trials, 0.3),
                n=Values(name, plain=True), p=p,
            )  # fmt: skip

    def words(self) -> None:
        """Categoricals and Multinomials with shares."""
        row = self.row()
        n = self.sizes[row]
        word = self.dim("word", self.size(2, 4))
        size = self.sizes[word]
        a = Number(self.pick(1.0, 0.3, 5.0))
        if self.yes():
            dim, key = self.group(row)
            p: Expr = At(self.declare("Dirichlet", "p", (dim, word), a=a), (key, None))
        else:
            p = Ref(self.declare("Dirichlet", "p", (word,), a=a))
        if self.yes():
            x = self.rng.integers(size, size=n)
            self.declare("Categorical", "x", (row,), x, of=word, p=p)
        else:
            trials = self.rng.integers(1, 6, n)
            name = self.array("n", trials, (row,))
            x = np.array([self.rng.multinomial(t, np.ones(size) / size) for t in trials])
            self.declare("Multinomial", "x", (row, word), x, n=Values(name, plain=True), p=p)

    def mixture(self) -> None:
        """Rows whose density is chosen by a Categorical, or by a chain of states."""
        row = self.row()
        z, component = self.choice(row)
        for _ in range(self.pick(1, 1, 2)):
            self.chosen(row, z, component)

    def choice(self, row: str) -> tuple[str, str]:
        if self.yes():
            return self.states(row)
        component = self.dim("component", self.size(2, 3))
        size = self.sizes[component]
        kind = self.pick("known", "shared", "grouped")
        if self.known or kind == "known":
            p: Expr = Values(self.array("p", self.shares(size), (component,)))
        elif kind == "shared":
            p = Ref(self.declare("Dirichlet", "weight", (component,), a=Number(1.0)))
        else:
            dim, key = self.group(row)
            p = At(
                self.declare("Dirichlet", "weight", (dim, component), a=Number(1.0)), (key, None)
            )
        return self.declare("Categorical", "z", (row,), p=p), component

    def chosen(self, row: str, z: str, component: str) -> None:
        """A table of which z chooses the densities."""
        n, k = self.sizes[row], self.sizes[component]
        kinds = (
            "Normal",
            "Normal",
            "Poisson",
            "Exponential",
            "Bernoulli",
            "Categorical",
            "MvNormal",
        )
        kind = self.pick(*kinds)
        dims: Dims = (row,)
        along = (component,)
        if kind == "Normal":
            if self.yes():
                mu: Expr = Ref(self.declare(
                    "Normal", "c", along, mu=Values(self.array("c0", self.normal(k), along)),
                    tau=self.precision(along),
                ))  # fmt: skip
            else:
                mu = Values(self.array("c0", 2 * self.normal(k), along))
            if self.rarely():
                mu = Add((mu, self.effect(row, walk=False)))
            tau = self.precision(along)
            parameters, y = {"mu": mu, "tau": tau}, 2 * self.normal(n)
        elif kind in ("Poisson", "Exponential"):
            rate: Expr = Values(self.array("rate", self.positive(k), along))
            if not self.known and self.yes():
                prior = {"alpha": Number(2.0), "beta": Number(1.0)}
                rate = Ref(self.declare("Gamma", "rate", along, **prior))
            parameters = {"mu" if kind == "Poisson" else "lam": rate}
            y = self.rng.poisson(2.0, n) if kind == "Poisson" else self.positive(n)
        elif kind == "Bernoulli":
            p: Expr = Values(self.array("q", np.round(self.rng.uniform(0.1, 0.9, k), 2), along))
            if not self.known and self.yes():
                p = Ref(self.declare("Beta", "q", along, alpha=Number(1.0), beta=Number(1.0)))
            parameters, y = {"p": p}, self.rng.integers(0, 2, n)
        elif kind == "Categorical":
            word = self.dim("word", self.size(2, 3))
            size = self.sizes[word]
            p = Values(self.array("q", self.shares(k, size), (component, word)))
            if not self.known and self.yes():
                p = Ref(self.declare("Dirichlet", "q", (component, word), a=Number(1.0)))
            parameters, y = {"p": p}, self.rng.integers(size, size=n)
            self.declare("Mixture", "y", dims, y, component=kind, of=word, z=Ref(z), **parameters)
            return
        else:
            d = self.dim("d", self.size(1, 2))
            dims = (row, d)
            mu = Ref(self.vector("c", (component, d)))
            parameters, y = (
                {"mu": mu, "tau": self.fixed(d, self.sizes[d])},
                self.normal(n, self.sizes[d]),
            )
        self.declare("Mixture", "y", dims, y, component=kind, z=Ref(z), **parameters)

    def series(self) -> None:
        """A chain of vectors, read by several sensors."""
        row = self.row()
        name, k = self.chain(row)
        sensor = self.dim("sensor", self.size(1, 3))
        shape = self.shape((row, sensor))
        if self.known or self.yes():
            C: Expr = Values(self.array("C", self.normal(shape[1], self.sizes[k]), (sensor, k)))
        else:
            C = Ref(self.declare(
                "MvNormal", "C", (sensor, k), mu=Number(0.0), tau=self.fixed(k, self.sizes[k])
            ))  # fmt: skip
        mu: Expr = Dot((C, Ref(name)), k)
        if self.rarely():
            mu = Add((mu, self.effect(row, (sensor,), walk=False)))
        tau = self.precision((row, sensor))
        self.declare("Normal", "y", (row, sensor), self.normal(*shape), mu=mu, tau=tau)

    def barren(self) -> None:
        """A variable that no observed row depends on."""
        normals = [d for d in self.declarations if d.kind == "Normal" and not d.dims]
        if normals and self.yes():
            self.declare("Normal", "later", (), mu=Ref(self.pick(*normals).name), tau=Number(2.0))
        else:
            self.declare("Gamma", "later", (), alpha=Number(2.0), beta=Number(1.0))

    def network(self) -> Spec:
        tables = (
            self.normals, self.normals, self.outcomes, self.logits, self.rates, self.coins,
            self.words, self.mixture, self.mixture, self.series,
        )  # fmt: skip
        for _ in range(self.pick(1, 1, 1, 2)):
            self.pick(*tables)()
        if self.rarely():
            self.barren()
        labels = {}
        for dim, size in self.sizes.items():
            if dim.startswith(("group", "word")) and self.rarely():
                labels[dim] = LABELS[self.pick(*LABELS)](size)
        return Spec(self.sizes, self.arrays, ordered(self.declarations), labels)


def ordered(declarations: list[Decl]) -> tuple[Decl, ...]:
    """Return the declarations with parents before their children."""
    from .spec import names

    done: list[Decl] = []
    left = list(declarations)
    while left:
        known = {d.name for d in done}
        ready = next(d for d in left if all(names(e) <= known for _, e in d.parameters))
        done.append(ready)
        left.remove(ready)
    return tuple(done)


@st.composite
def networks(draw: Callable[..., Any]) -> Spec:
    """Draw a network."""
    return Writer(draw).network()
