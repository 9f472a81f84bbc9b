"""The log evidence and the posterior of small networks, from the densities alone.

Hidden numbers are of three kinds. Given the others, Normals whose residuals are linear in them are
integrated by dense algebra: each density is exp(c - |e0 + J x|^2 / 2). Choices and states are
summed over by enumeration. Up to two others, such as precisions and probabilities, are integrated
by the trapezoidal rule on a scale where they are unbounded, over a range that is narrowed until it
has the peak; a rule with half of the points must agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.special import expit, gammaln, logsumexp

from .spec import (
    CHAINS,
    EVENT,
    Add,
    Array,
    Decl,
    Diag,
    Dot,
    Expr,
    Mul,
    Named,
    Spec,
    combined,
    evaluate,
    informed,
    names,
    union,
)  # fmt: skip

LOG_2PI = np.log(2 * np.pi)
GAUSSIAN = ("Normal", "MvNormal", "LinearGaussianChain", "GaussianRandomWalk")
DISCRETE = ("Categorical", "Bernoulli", "DiscreteMarkovChain")
SCALARS = ("Gamma", "Exponential", "Beta", "Dirichlet")
MOST_COMBINATIONS, MOST_NORMALS, MOST_WORK = 2000, 60, 3e7
POINTS, COARSE = {1: 241, 2: 141}, {1: 241, 2: 61}
NATS = 28.0
"""Densities below the peak by more than this are left out."""


@dataclass(frozen=True)
class Truth:
    """Log evidence, and by variable the mean (of choices: probabilities) and the variance."""

    log_evidence: float
    mean: Mapping[str, Array]
    var: Mapping[str, Array]


@dataclass(frozen=True)
class Unknown:
    """The unknown entries of a variable, by their places in the flat array."""

    decl: Decl
    places: Array


class Inapplicable(Exception):
    """The network is too large, or of another kind."""


def truth(spec: Spec) -> Truth | None:
    """Return the exact log evidence and posterior, if they can be computed."""
    try:
        found = [Exact(spec, part).truth() for part in components(spec)]
    except Inapplicable:
        return None
    return Truth(
        sum(part.log_evidence for part in found),
        {name: m for part in found for name, m in part.mean.items()},
        {name: v for part in found for name, v in part.var.items()},
    )


def components(spec: Spec) -> list[set[str]]:
    """Divide the variables that matter into sets that share nothing unknown."""
    live = informed(spec) | {d.name for d in spec.observed}
    groups: list[set[str]] = []
    for d in spec.declarations:
        if d.name not in live:
            continue
        around = {d.name}.union(*(names(e) for _, e in d.parameters))
        around = {n for n in around if n == d.name or not known_mask(spec, spec[n]).all()}
        own = {n for n in around if not (n == d.name and known_mask(spec, d).all())}
        touched = [g for g in groups if g & own]
        groups = [g for g in groups if g not in touched]
        groups.append(around.union(*touched))
    return groups


def known_mask(spec: Spec, d: Decl) -> Array:
    """Return which entries of a variable are observed."""
    shape = spec.shape(d.dims)
    if d.observed is None:
        return np.zeros(shape, bool)
    if d.missing is None:
        return np.ones(shape, bool)
    mask = spec.arrays[d.missing].values
    return np.broadcast_to(~mask.reshape(mask.shape + (1,) * (len(shape) - mask.ndim)), shape)


def category_dim(spec: Spec, name: str) -> str:
    """Return the dim of the categories that a variable chooses from."""
    d = spec[name]
    p = d["init"] if d.kind == "DiscreteMarkovChain" else d["p"]
    dims = dims_of(spec, p)
    return next(dim for dim in dims if dim not in d.dims)


def dims_of(spec: Spec, e: Expr) -> tuple[str, ...]:
    env = {d.name: Named(np.zeros(spec.shape(d.dims)), d.dims) for d in spec.declarations}
    return evaluate(spec, e, env).dims


def sequences(spec: Spec, d: Decl) -> tuple[Array, Array, Array]:
    """Return the first rows of the sequences of a chain, and its pairs of rows before and after."""
    rows = spec.sizes[d.dims[0]]
    key, order = d.column("sequence"), d.column("order")
    label = spec.arrays[key].values if key else np.zeros(rows, int)
    time = spec.arrays[order].values if order else np.arange(rows)
    place = np.lexsort((time, label))
    first = np.r_[True, label[place][1:] != label[place][:-1]]
    after = np.flatnonzero(~first)
    return place[first], place[after - 1], place[after]


class Exact:
    """The integral over all unknown entries of a network."""

    def __init__(self, spec: Spec, part: set[str]) -> None:
        self.spec = spec
        live = informed(spec)
        self.present = [d for d in spec.declarations if d.name in part]
        self.unknown = [
            Unknown(d, np.flatnonzero(~known_mask(spec, d)))
            for d in self.present
            if d.name in live and not known_mask(spec, d).all()
        ]
        self.sort()

    def sort(self) -> None:
        """Divide the unknown variables into Normals, choices and scalars to integrate over."""
        kind = {u.decl.name: u.decl.kind for u in self.unknown}
        if any(k == "Mixture" for k in kind.values()):
            raise Inapplicable
        gaussian = {n for n, k in kind.items() if k in GAUSSIAN}
        for d in self.present:
            for name, e in d.parameters:
                if name == "logit" or (name in ("A", "B") and d.kind in CHAINS):
                    gaussian -= names(e)
        count = {u.decl.name: u.places.size for u in self.unknown}
        while pair := next(self.pairs(gaussian), None):
            gaussian -= {min(pair, key=lambda n: (count[n], n))}
        self.normal = [u for u in self.unknown if u.decl.name in gaussian]
        self.discrete = [u for u in self.unknown if u.decl.kind in DISCRETE]
        self.scalar = [u for u in self.unknown if u not in self.normal and u not in self.discrete]
        if any(u.decl.kind not in (*SCALARS, "Normal") for u in self.scalar):
            raise Inapplicable
        if any(
            u.decl.kind == "Dirichlet" and self.spec.sizes[u.decl.dims[-1]] != 2
            for u in self.scalar
        ):
            raise Inapplicable
        self.normals = sum(u.places.size for u in self.normal)
        self.scalars = sum(u.places.size // EVENTS(u.decl) for u in self.scalar)
        logs = [u.places.size * np.log(self.categories(u.decl)) for u in self.discrete]
        combinations = np.exp(min(sum(logs), 50.0))
        if combinations > MOST_COMBINATIONS or self.normals > MOST_NORMALS or self.scalars > 2:
            raise Inapplicable
        self.choices = self.enumerated()
        rows = sum(self.spec.size(d) for d in self.present)
        nodes = COARSE.get(self.scalars, 1) ** self.scalars
        if combinations * nodes * (self.normals + 1) * rows > MOST_WORK:
            raise Inapplicable

    def pairs(self, gaussian: set[str]) -> Iterator[set[str]]:
        """Yield pairs of Normals that are multiplied by each other."""

        def within(e: Expr) -> Iterator[set[str]]:
            match e:
                case Mul(factors) | Dot(factors, _):
                    sets = [names(f) & gaussian for f in factors]
                    for i, one in enumerate(sets):
                        for other in sets[i + 1 :]:
                            for a, b in product(sorted(one), sorted(other)):
                                yield {a, b}
                    for f in factors:
                        yield from within(f)
                case Add(terms):
                    for t in terms:
                        yield from within(t)
                case Diag(of):
                    yield from within(of)

        for d in self.present:
            for _, e in d.parameters:
                yield from within(e)

    def categories(self, d: Decl) -> int:
        return 2 if d.kind == "Bernoulli" else self.spec.sizes[category_dim(self.spec, d.name)]

    def enumerated(self) -> Array:
        """Return all combinations of the choices, one in each line."""
        ranges = [range(self.categories(u.decl)) for u in self.discrete for _ in u.places]
        combinations = list(product(*ranges))
        return np.array(combinations, int).reshape(len(combinations), len(ranges))

    # --- the density --------------------------------------------------------------------------

    def environment(self, points: Array, choices: Array) -> dict[str, Named]:
        """Return the values of all variables, along "@c" for points and "@x" for Normals."""
        env: dict[str, Named] = {}
        columns, first = points.shape[1], 0
        used = 0
        for d in self.spec.declarations:
            values = np.zeros(self.spec.shape(d.dims))
            if d.observed is not None:
                values = np.where(known_mask(self.spec, d), self.spec.arrays[d.observed].values, 0)
            env[d.name] = Named(values.astype(float), d.dims)
        for u in self.normal:
            flat = np.broadcast_to(
                env[u.decl.name].values.ravel(), (self.normals + 1, env[u.decl.name].values.size)
            ).copy()
            flat[first + 1 + np.arange(u.places.size), u.places] = 1
            first += u.places.size
            shape = (self.normals + 1, *self.spec.shape(u.decl.dims))
            env[u.decl.name] = Named(flat.reshape(shape), ("@x", *u.decl.dims))
        for u in self.scalar:
            some = u.places.size // EVENTS(u.decl)
            block = points[:, used : used + some]
            used += some
            values = unbounded(u.decl.kind)[0](block)
            self.fill(env, u, values.reshape(len(points), -1))
            if u.decl.kind == "Beta":  # 1 - p, without cancellation
                shape = self.spec.shape(u.decl.dims)
                env[OTHER + u.decl.name] = Named(np.zeros(shape), u.decl.dims)
                self.fill(env, u, expit(-block).reshape(len(points), -1), OTHER)
        assert used == columns
        used = 0
        for u in self.discrete:
            self.fill(env, u, choices[:, used : used + u.places.size])
            used += u.places.size
        return env

    def fill(self, env: dict[str, Named], u: Unknown, values: Array, stem: str = "") -> None:
        """Write values, one line for each point, into the unknown places of a variable."""
        flat = np.broadcast_to(
            env[stem + u.decl.name].values.ravel(), (len(values), self.spec.size(u.decl))
        )
        flat = flat.copy()
        flat[:, u.places] = values
        shape = (len(values), *self.spec.shape(u.decl.dims))
        env[stem + u.decl.name] = Named(flat.reshape(shape), ("@c", *u.decl.dims))

    def solved(self, scalars: Array) -> tuple[Array, Array, Array]:
        """Return log integrals, means and variances of the Normals, by point and combination."""
        points = np.repeat(scalars, len(self.choices), axis=0)
        choices = np.tile(self.choices, (len(scalars), 1))
        env = self.environment(points, choices)
        count = len(points)
        total, residuals = np.zeros(count), [np.zeros((count, self.normals + 1, 0))]
        used = 0
        for u in self.scalar:
            some = u.places.size // EVENTS(u.decl)
            total += unbounded(u.decl.kind)[1](points[:, used : used + some]).sum(axis=1)
            used += some
        for d in self.present:
            for term in Density(self.spec, d, env).terms():
                if isinstance(term, Residual):
                    rest = tuple(x for x in term.error.dims if x not in ("@c", "@x"))
                    values = term.error.along(("@c", "@x", *rest))
                    values = values.reshape(*values.shape[:2], -1)
                    shape = (count, self.normals + 1, values.shape[2])
                    residuals.append(np.broadcast_to(values, shape))
                    total += summed(term.log, count) - 0.5 * LOG_2PI * term.numbers
                else:
                    total += summed(term, count)
        e = np.concatenate(residuals, axis=2)
        if not self.normals:
            none = np.zeros((count, 0))
            return total - 0.5 * (e[:, 0] ** 2).sum(axis=1), none, none
        J = (e[:, 1:] - e[:, :1]).swapaxes(1, 2)  # count, residuals, Normals
        if J.shape[1] < self.normals:
            raise Inapplicable
        Q, R = np.linalg.qr(J)
        size = np.abs(np.diagonal(R, axis1=1, axis2=2))
        near = size.min(axis=1) > 1e-12 * size.max(axis=1)  # others are far in the tails
        if not near.any() or (not self.scalars and size.min() <= 1e-9 * size.max()):
            raise Inapplicable
        R[~near] = np.eye(self.normals)
        right = np.einsum("cri,cr->ci", Q, e[:, 0])
        x = -np.linalg.solve(R, right[..., None])[..., 0]
        least = ((e[:, 0] + np.einsum("crn,cn->cr", J, x)) ** 2).sum(axis=1)
        inverse = np.linalg.inv(R)
        log = total - 0.5 * least + 0.5 * self.normals * LOG_2PI - np.log(size).sum(axis=1)
        log[~near] = -np.inf
        return log, x, (inverse**2).sum(axis=2)

    # --- the integral -------------------------------------------------------------------------

    def truth(self) -> Truth:
        """Return the integral."""
        grid, log_step = self.grid()
        log, x, var = self.solved(grid)
        by_node = logsumexp(log.reshape(len(grid), -1), axis=1)
        evidence = float(logsumexp(log) + log_step)
        if self.scalars:
            side = POINTS[self.scalars]
            every = by_node.reshape((side,) * self.scalars)[(slice(None, None, 2),) * self.scalars]
            half = float(logsumexp(every) + log_step + self.scalars * np.log(2))
            if not abs(half - evidence) < 1e-5:  # the error of the rule itself is its square
                raise Inapplicable
        weight = np.exp(log - logsumexp(log))
        mean: dict[str, Array] = {}
        variance: dict[str, Array] = {}
        m = weight @ x
        v = weight @ (var + (x - m) ** 2)
        first = 0
        for u in self.normal:
            span = slice(first, first + u.places.size)
            self.put(mean, variance, u, m[span], v[span])
            first += u.places.size
        choices = np.tile(self.choices, (len(grid), 1))
        env = self.environment(np.repeat(grid, len(self.choices), axis=0), choices)
        for u in self.scalar:
            values = env[u.decl.name].values.reshape(len(weight), -1)[:, u.places]
            centre = weight @ values
            self.put(mean, variance, u, centre, weight @ (values - centre) ** 2)
        first = 0
        for u in self.discrete:
            if u.decl.observed is None:
                z = choices[:, first : first + u.places.size]
                p = np.stack([weight @ (z == k) for k in range(self.categories(u.decl))], axis=-1)
                p = p[..., 1] if u.decl.kind == "Bernoulli" else p
                mean[u.decl.name] = p.reshape(*self.spec.shape(u.decl.dims), *p.shape[1:])
            first += u.places.size
        return Truth(evidence, mean, variance)

    def put(
        self, mean: dict[str, Array], var: dict[str, Array], u: Unknown, m: Array, v: Array
    ) -> None:
        shape = self.spec.shape(u.decl.dims)
        centre, spread = np.zeros(shape).ravel(), np.zeros(shape).ravel()
        if u.decl.observed is not None:
            centre = np.array(self.spec.arrays[u.decl.observed].values, float).ravel()
        centre[u.places], spread[u.places] = m, v
        mean[u.decl.name], var[u.decl.name] = centre.reshape(shape), spread.reshape(shape)

    def grid(self) -> tuple[Array, float]:
        """Return the points of the rule and the logarithm of the volume of each."""
        if not self.scalars:
            return np.zeros((1, 0)), 0.0
        kinds = [u.decl.kind for u in self.scalar for _ in range(u.places.size // EVENTS(u.decl))]
        low = np.array([RANGE[k][0] for k in kinds])
        high = np.array([RANGE[k][1] for k in kinds])

        def nodes_of(side: int) -> Array:
            axes = [np.linspace(a, b, side) for a, b in zip(low, high, strict=True)]
            return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

        side = COARSE[self.scalars]
        for _ in range(12):
            nodes = nodes_of(side)
            by_node = logsumexp(self.solved(nodes)[0].reshape(len(nodes), -1), axis=1)
            inside = nodes[by_node > np.nanmax(by_node) - NATS]
            step = (high - low) / (side - 1)
            new_low = np.maximum(low, inside.min(axis=0) - step)
            new_high = np.minimum(high, inside.max(axis=0) + step)
            if np.all(new_high - new_low > 0.8 * (high - low)):
                step = (high - low) / (POINTS[self.scalars] - 1)
                return nodes_of(POINTS[self.scalars]), float(np.log(step).sum())
            low, high = new_low, new_high
        raise Inapplicable


OTHER = "1 - "
"""Before the name of a probability: that of the other outcome."""


def EVENTS(d: Decl) -> int:
    """Return how many entries of an unknown variable are one number: both shares of a Dirichlet."""
    return 2 if d.kind == "Dirichlet" else 1


RANGE = {"Gamma": (-120.0, 60.0), "Exponential": (-120.0, 60.0), "Normal": (-60.0, 60.0)}
RANGE |= {"Beta": (-120.0, 120.0), "Dirichlet": (-120.0, 120.0)}


def unbounded(kind: str) -> tuple:
    """Return the values of unbounded numbers, and the logarithm of their derivative."""
    if kind in ("Gamma", "Exponential"):
        return np.exp, lambda t: t
    if kind == "Beta":
        return expit, lambda t: -np.logaddexp(0, t) - np.logaddexp(0, -t)
    if kind == "Dirichlet":
        return (
            lambda t: np.stack([expit(t), expit(-t)], axis=-1),
            lambda t: -np.logaddexp(0, t) - np.logaddexp(0, -t),
        )
    return lambda t: t, np.zeros_like


# --- densities ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Residual:
    """log - numbers log(2 pi) / 2 - |error|^2 / 2."""

    log: Named
    error: Named
    numbers: int


def summed(of: Named, count: int) -> Array:
    rest = tuple(d for d in of.dims if d != "@c")
    values = of.along(("@c", *rest))
    return np.broadcast_to(values.reshape(values.shape[0], -1).sum(axis=1), (count,))


@dataclass(frozen=True)
class Density:
    """The log density of the values of one variable given those of the others."""

    spec: Spec
    d: Decl
    env: Mapping[str, Named]

    def at(self, parameter: str) -> Named:
        """Return a parameter; that of a mixture is the chosen one."""
        found = evaluate(self.spec, self.d[parameter], self.env)
        if self.d.kind != "Mixture" or parameter == "z":
            return found
        (z_name,) = names(self.d["z"])
        dim = category_dim(self.spec, z_name)
        if dim not in found.dims:
            return found
        z = evaluate(self.spec, self.d["z"], self.env)
        index = {
            d: Named(np.arange(n), (d,))
            for d, n in zip(found.dims, found.values.shape, strict=True)
        }
        index[dim] = Named(z.values.astype(int), z.dims)
        out = union(*(index[d].dims for d in found.dims))
        return Named(found.values[tuple(index[d].along(out) for d in found.dims)], out)

    def other_share(self) -> Named:
        """Return 1 - p, without cancellation where p is a Beta."""
        others = {n.removeprefix(OTHER): v for n, v in self.env.items() if n.startswith(OTHER)}
        if names(self.d["p"]) & set(others):
            return replace(self, env={**self.env, **others}).at("p")
        p = self.at("p")
        return Named(1 - p.values, p.dims)

    def present(self) -> Array | None:
        """Return which rows of the plate count: all, or those that were observed of a leaf."""
        if self.d.missing is None or self.spec.is_parent(self.d.name):
            return None
        return ~self.spec.arrays[self.d.missing].values

    def kept(self, of: Named) -> Named:
        """Leave out rows that are missing, and repeat what does not depend on the row."""
        kind = self.d.component if self.d.kind == "Mixture" else self.d.kind
        plate = self.d.dims[: len(self.d.dims) - EVENT.get(kind, 0)]
        outer = tuple(x for x in of.dims if x not in plate)
        values = of.along((*outer, *plate))
        shape = values.shape[: len(outer)]
        values = np.broadcast_to(values, (*shape, *self.spec.shape(plate)))
        values = values.reshape(*shape, -1)
        present = self.present()
        if present is not None:
            values = values[..., present.ravel()]
        return Named(values, (*outer, "@rows"))

    def terms(self) -> Iterator[Residual | Named]:
        """Yield the terms of the log density."""
        kind = self.d.component if self.d.kind == "Mixture" else self.d.kind
        if self.d.kind in CHAINS:
            yield from self.chain()
            return
        x = self.env[self.d.name]
        if kind == "Normal":
            tau = self.at("tau")
            error = combined(np.subtract, x, self.at("mu"))
            error = self.kept(combined(np.multiply, error, root(tau)))
            log = self.kept(halved_log(tau))
            yield Residual(log, error, log.values.shape[-1])
        elif kind == "MvNormal":
            yield self.vectors(x)
        else:
            yield self.kept(self.other(kind, x))

    def vectors(self, x: Named) -> Residual:
        dim = self.d.dims[-1]
        tau = self.at("tau")
        other = tau.dims[-1]
        if dim not in tau.dims:
            raise Inapplicable
        error = combined(np.subtract, x, self.at("mu"))
        white, log = whitened(tau, error, dim, other)
        white, log = self.kept(white), self.kept(log)
        return Residual(log, white, log.values.shape[-1] * self.spec.sizes[dim])

    def other(self, kind: str, x: Named) -> Named:
        """Return the log density by row, of other families."""

        def of(function, *arguments: Named) -> Named:
            dims = union(*(a.dims for a in arguments))
            with np.errstate(divide="ignore", invalid="ignore"):
                return Named(function(*(a.along(dims) for a in arguments)), dims)

        if kind == "Gamma":
            return of(
                lambda x, a, b: a * np.log(b) - gammaln(a) + (a - 1) * np.log(x) - b * x,
                x, self.at("alpha"), self.at("beta"),
            )  # fmt: skip
        if kind == "Exponential":
            return of(lambda x, b: np.log(b) - b * x, x, self.at("lam"))
        if kind == "Poisson":
            return of(lambda x, m: x * np.log(m) - m - gammaln(x + 1), x, self.at("mu"))
        if kind == "Beta":
            return of(
                lambda x, a, b, y: gammaln(a + b) - gammaln(a) - gammaln(b)
                + power(a - 1, x) + power(b - 1, y),
                x, self.at("alpha"), self.at("beta"), self.env[OTHER + self.d.name],
            )  # fmt: skip
        if kind == "Bernoulli" and self.d.has("logit"):
            return of(lambda x, z: x * z - np.logaddexp(0, z), x, self.at("logit"))
        if kind == "Bernoulli":
            return of(
                lambda x, p, q: power(x, p) + power(1 - x, q), x, self.at("p"), self.other_share()
            )
        if kind == "Binomial":
            n = self.at("n")

            def ways(x, n):
                return gammaln(n + 1) - gammaln(x + 1) - gammaln(n - x + 1)

            if self.d.has("logit"):
                return of(
                    lambda x, n, z: ways(x, n) + x * z - n * np.logaddexp(0, z),
                    x, n, self.at("logit"),
                )  # fmt: skip
            return of(
                lambda x, n, p, q: ways(x, n) + power(x, p) + power(n - x, q),
                x, n, self.at("p"), self.other_share(),
            )  # fmt: skip
        if kind == "Categorical":
            p = self.at("p")
            dim = next(d for d in p.dims if d not in (*self.d.dims, "@c", "@x"))
            index = {
                d: Named(np.arange(n), (d,)) for d, n in zip(p.dims, p.values.shape, strict=True)
            }
            index[dim] = Named(x.values.astype(int), x.dims)
            out = union(*(index[d].dims for d in p.dims))
            with np.errstate(divide="ignore"):
                return Named(np.log(p.values[tuple(index[d].along(out) for d in p.dims)]), out)
        dim = self.d.dims[-1]
        if kind == "Dirichlet":
            a = self.at("a")
            a = combined(np.add, a, Named(np.zeros(self.spec.sizes[dim]), (dim,)))
            terms = of(lambda x, a: power(a - 1, x) - gammaln(a), x, a)
            whole = total(a, dim)
            return combined(np.add, total(terms, dim), Named(gammaln(whole.values), whole.dims))
        if kind == "Multinomial":
            terms = total(of(lambda x, p: power(x, p) - gammaln(x + 1), x, self.at("p")), dim)
            return combined(np.add, terms, of(lambda n: gammaln(n + 1), self.at("n")))
        raise Inapplicable

    # --- chains -------------------------------------------------------------------------------

    def chain(self) -> Iterator[Residual | Named]:
        first, before, after = sequences(self.spec, self.d)
        row = self.d.dims[0]
        x = self.env[self.d.name]

        def rows(of: Named, some: Array) -> Named:
            if row not in of.dims:
                return of
            axis = of.dims.index(row)
            return Named(np.take(of.values, some, axis=axis), of.dims)

        if self.d.kind == "DiscreteMarkovChain":
            init, P = self.at("init"), self.at("P")
            (state,) = [d for d in init.dims if d not in ("@c", row)]
            (to,) = [d for d in P.dims if d not in ("@c", row, state)]
            outer = ("@c", row)
            z = x.along(outer).astype(int)
            with np.errstate(divide="ignore"):
                start = np.log(rows(init, first).along((*outer, state)))
                move = np.log(rows(P, after).along((*outer, state, to)))
            many = len(z)
            c = np.arange(many)[:, None]
            start = np.broadcast_to(start, (many, len(first), start.shape[-1]))
            yield Named(start[c, np.arange(len(first)), z[:, first]], outer)
            if len(after):
                move = np.broadcast_to(move, (many, len(after), *move.shape[2:]))
                yield Named(move[c, np.arange(len(after)), z[:, before], z[:, after]], outer)
            return
        if self.d.has("switch"):
            raise Inapplicable
        vector = self.d.kind == "LinearGaussianChain"
        mu0, tau0 = self.at("init_mu"), self.at("init_tau")
        start = combined(np.subtract, rows(x, first), mu0)
        size = self.spec.sizes[self.d.dims[1]] if vector else 1
        yield self.steps(start, tau0, row, len(first), size)
        if not len(after):
            return
        A = self.at("A") if self.d.has("A") else Named(np.array(1.0), ())
        previous = rows(x, before)
        if vector and (matrix := [d for d in A.dims if d not in ("@c", "@x", row)]):
            to, source = matrix
            turned = Named(previous.values, tuple(source if d == to else d for d in previous.dims))
            moved = total(combined(np.multiply, rows(A, after), turned), source)
        else:
            moved = combined(np.multiply, A, previous)
        step = self.d.column("step")
        error = combined(np.subtract, rows(x, after), moved)
        if inputs := self.d.column("u"):
            column = self.spec.arrays[inputs]
            push = combined(np.multiply, self.at("B"), Named(column.values[after], column.dims))
            error = combined(np.subtract, error, total(push, column.dims[1]))
        if self.d.has("mu"):
            drift = self.at("mu")
            if step:
                time = Named(self.spec.arrays[step].values[after], (row,))
                drift = combined(np.multiply, drift, time)
            error = combined(np.subtract, error, drift)
        tau = rows(self.at("tau"), after)
        if step:
            tau = combined(np.divide, tau, Named(self.spec.arrays[step].values[after], (row,)))
        yield self.steps(error, tau, row, len(after), size)

    def steps(self, error: Named, tau: Named, row: str, count: int, size: int) -> Residual:
        """Return the residual of some rows of a chain."""
        matrix = [d for d in tau.dims if d not in ("@c", "@x", *self.d.dims)]
        if matrix:
            white, log = whitened(tau, error, self.d.dims[1], matrix[0])
            log = combined(np.add, log, Named(np.zeros(count), (row,)))
            return Residual(log, white, count * size)
        white = combined(np.multiply, error, root(tau))
        log = halved_log(tau)
        log = combined(np.add, log, Named(np.zeros(count), (row,)))
        if len(self.d.dims) > 1:
            log = combined(np.add, log, Named(np.zeros(size), (self.d.dims[1],)))
        return Residual(log, white, count * size)


def whitened(tau: Named, error: Named, dim: str, other: str) -> tuple[Named, Named]:
    """Return L' error and log|L| for tau = L L'."""
    rest = tuple(d for d in tau.dims if d not in (dim, other))
    L = np.linalg.cholesky(tau.along((*rest, dim, other)))
    log = Named(np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1), rest)
    white = total(combined(np.multiply, Named(L, (*rest, dim, other)), error), dim)
    return Named(white.values, tuple(dim if d == other else d for d in white.dims)), log


def root(of: Named) -> Named:
    return Named(np.sqrt(of.values), of.dims)


def halved_log(of: Named) -> Named:
    return Named(0.5 * np.log(of.values), of.dims)


def total(of: Named, dim: str) -> Named:
    rest = tuple(d for d in of.dims if d != dim)
    return Named(of.along((*rest, dim)).sum(axis=-1), rest)


def power(exponent: Array, base: Array) -> Array:
    """Return exponent * log(base), which is 0 where the exponent is."""
    return np.where(exponent == 0, 0.0, exponent * np.log(np.where(exponent == 0, 1.0, base)))
