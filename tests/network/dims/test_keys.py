"""Keys of every shape on every axis, against closed forms and against networks without keys.

A network whose rows are Normals with a mean that is linear in all variables together has a Gaussian
posterior. The optimal q has its means, and the diagonal blocks of its precision matrix for the
elements; the bound is the log evidence minus KL(q || posterior).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import stats

import svmp
from svmp.network.network import Network

from ..polynomials import Polynomials, constant, read
from ..tools import anywhere, bound, copy, fitted, optimum

PLATE = ("p", "q")
SIZES = {"p": 2, "q": 3, "a": 2, "b": 3, "k": 2, "d": 3, "one": 1}


def spread(rng: np.random.Generator, size: int) -> np.ndarray:
    root = rng.normal(size=(size, size))
    return root @ root.T / size + 2 * np.eye(size)


@dataclass
class Keyed:
    """A mean with keys: as an svmp expression, without keys, and as polynomials."""

    rng: np.random.Generator
    variables: list[svmp.Variable]
    ours: Any = 0.0
    plain: Any = 0.0
    exact: Polynomials = field(default_factory=lambda: constant(0.0, (), SIZES))

    def index(self, dim: str) -> tuple[Any, Any]:
        """Draw the index of an axis: in full, an integer, or an array, plain or with dims."""
        kind = self.rng.choice(["full", "place", "row", "table", "named", "summed"])
        if kind == "full" and dim in PLATE:
            return slice(None), dim
        if kind == "place":
            at = int(self.rng.integers(SIZES[dim]))
            return at, at
        axes = {"table": PLATE, "named": ("p",), "summed": ("q", "k")}.get(kind, ("q",))
        keys = self.rng.integers(SIZES[dim], size=tuple(SIZES[a] for a in axes))
        named = kind in ("named", "summed") or self.rng.random() < 0.3
        return (svmp.data(keys, dims=axes) if named else keys), (axes, keys)

    def leaf(self, variable: svmp.Variable) -> tuple[Any, Any, Polynomials]:
        """Index a variable by random keys, and by products with one-hot rows."""
        index = [self.index(dim) for dim in variable.dims]
        ours = variable[tuple(i for i, _ in index)] if index else variable
        some = tuple(
            i if dim in PLATE else slice(None)
            for dim, (i, _) in zip(variable.dims, index, strict=True)
        )
        plain: Any = variable[some] if index else variable
        for dim, (_, how) in zip(variable.dims, index, strict=True):
            if dim in PLATE:  # a sum over an axis of the plate cannot keep that axis
                continue
            axes, keys = how if isinstance(how, tuple) else ((), np.array(how))
            chosen = svmp.data(np.eye(SIZES[dim])[keys], dims=(*axes, dim))
            plain = (plain * chosen).sum(dim)
        return ours, plain, read(variable.name, [how for _, how in index], SIZES)

    def add(self, *variables: svmp.Variable) -> None:
        """Add a product of variables, times a number or an array."""
        ours, plain, exact = self.leaf(variables[0])
        for other in variables[1:]:
            right = self.leaf(other)
            ours, plain, exact = ours * right[0], plain * right[1], exact * right[2]
        axes = [(), ("q",), PLATE][self.rng.integers(3)]
        number = self.rng.normal(size=tuple(SIZES[a] for a in axes)).round(2)
        ours, plain = ours * number, plain * number
        exact = exact * constant(number, axes, SIZES)
        if "k" in exact.axes:
            ours, plain, exact = ours.sum("k"), plain.sum("k"), exact.sum("k")
        self.ours, self.plain = self.ours + ours, self.plain + plain
        self.exact = self.exact + exact

    def rows(self) -> list[Any]:
        """Return the polynomial of every row."""
        shape = tuple(SIZES[a] for a in PLATE)
        return [self.exact.at(PLATE, place) for place in np.ndindex(shape)]


def gaussians(rng: np.random.Generator, prior: dict[str, Any]) -> list[svmp.Variable]:
    """Declare Normals and MvNormals with and without plates, on axes of any size."""
    found = []
    for name, dims, vector in [
        ("s", (), False), ("n", ("a",), False), ("m", ("b", "p"), False),
        ("v", ("d",), True), ("w", ("a", "d"), True), ("x", ("p", "b", "one"), True),
        ("y", ("one",), True),
    ]:  # fmt: skip
        shape = tuple(SIZES[d] for d in dims)
        mu = rng.normal(size=shape)
        tau = spread(rng, shape[-1]) if vector else 2.0
        prior[name] = mu, np.atleast_2d(tau)
        if vector:
            declared: svmp.Variable = svmp.MvNormal(name, mu, tau, dims=dims)
        else:
            declared = svmp.Normal(name, mu, tau, dims=dims)
        found.append(declared)
    return found


def posterior(
    keyed: Keyed, prior: dict[str, Any], y: np.ndarray, tau: float
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], float]:
    """Return means and precisions of the optimal factorised q, and its bound."""
    places = [(name, i) for name, (mu, _) in prior.items() for i in np.ndindex(mu.shape)]
    number = {place: at for at, place in enumerate(places)}
    design, mean = np.zeros((y.size, len(places))), np.zeros(y.size)
    for r, polynomial in enumerate(keyed.rows()):
        for monomial, coefficient in polynomial.items():
            if monomial:
                design[r, number[monomial[0]]] += coefficient
            else:
                mean[r] += coefficient
    precision, blocks, start = np.zeros((len(places),) * 2), [], 0
    for mu, matrix in prior.values():
        for _ in range(mu.size // len(matrix)):
            here = slice(start, start + len(matrix))
            precision[here, here] = matrix
            blocks.append(here)
            start += len(matrix)
    centre = np.concatenate([np.ravel(mu) for mu, _ in prior.values()])
    evidence = stats.multivariate_normal.logpdf(
        y.ravel(),
        mean + design @ centre,
        np.eye(y.size) / tau + design @ np.linalg.solve(precision, design.T),
    )
    after = precision + tau * design.T @ design
    means = np.linalg.solve(after, precision @ centre + tau * design.T @ (y.ravel() - mean))
    logdet = sum(np.linalg.slogdet(after[b, b])[1] for b in blocks)
    kl = 0.5 * (logdet - np.linalg.slogdet(after)[1])
    q_means, q_taus, at, block = {}, {}, 0, 0
    for name, (mu, matrix) in prior.items():
        q_means[name] = means[at : at + mu.size].reshape(mu.shape)
        count = mu.size // len(matrix)
        q_taus[name] = np.array([after[b, b] for b in blocks[block : block + count]])
        at, block = at + mu.size, block + count
    return q_means, q_taus, evidence - kl


def linear_model(seed: int) -> tuple[svmp.Model, Keyed, dict[str, Any], np.ndarray]:
    rng, prior = np.random.default_rng(seed), {}
    y = rng.normal(size=tuple(SIZES[a] for a in PLATE))
    with svmp.Model(coords=SIZES) as model:
        keyed = Keyed(rng, gaussians(rng, prior))
        count = rng.integers(1, 5)
        for number in rng.choice(len(keyed.variables), count):
            keyed.add(keyed.variables[number])
        svmp.Normal("r", mu=keyed.ours, tau=0.7, dims=PLATE, observed=y)
    return model, keyed, prior, y


def check_closed_form(seed: int, **options: Any) -> None:
    model, keyed, prior, y = linear_model(seed)
    fit = fitted(model, **options)
    means, precisions, best = posterior(keyed, prior, y, 0.7)
    assert fit.bound == pytest.approx(best, rel=1e-8)
    for name, mean in means.items():
        np.testing.assert_allclose(fit.mean(name, corrected=False), mean, atol=1e-5)
        tau = np.reshape(fit.posteriors[name].tau, precisions[name].shape)
        np.testing.assert_allclose(tau, precisions[name], rtol=1e-9, atol=1e-9)
    check_counts(model, keyed)


def check_counts(model: svmp.Model, keyed: Keyed) -> None:
    """The child count of an element is the number of rows that refer to it."""
    network = Network(model)
    for name, variable in network.hidden.items():
        expected = np.zeros(variable.size, dtype=int)
        shape = variable.plate.shape
        for polynomial in keyed.rows():
            read_here = {
                int(np.ravel_multi_index(place[: len(shape)], shape)) if shape else 0
                for monomial in polynomial
                for scalar, place in monomial
                if scalar == name
            }
            expected[list(read_here)] += 1
        np.testing.assert_array_equal(network.child_counts[name], expected, err_msg=name)


@pytest.mark.parametrize("seed", range(40))
def test_a_linear_network_matches_the_closed_form(seed: int) -> None:
    check_closed_form(seed, kernels=False)


def twins(seed: int, place: str) -> tuple[Network, Network]:
    """Return a network with products of variables indexed by keys, and the same without keys."""
    found = []
    for keyless in (False, True):
        rng = np.random.default_rng(seed)
        shape = tuple(SIZES[a] for a in PLATE)
        values = rng.normal(size=shape)
        with svmp.Model(coords={**SIZES, "component": 2}) as model:
            keyed = Keyed(rng, gaussians(rng, {}))
            for _ in range(rng.integers(1, 4)):
                some = rng.permutation(len(keyed.variables))[: rng.integers(1, 4)]
                keyed.add(*(keyed.variables[i] for i in some))
            mean = keyed.plain if keyless else keyed.ours
            if place == "logit":
                svmp.Bernoulli("r", logit=mean, dims=PLATE, observed=values > 0)
            elif place == "mean":
                svmp.Normal("r", mu=mean, tau=1.3, dims=PLATE, observed=values)
            else:
                z = svmp.Categorical("z", p=svmp.Dirichlet("c", a=2, dims="component"), dims="q")
                shift = svmp.Normal("shift", mu=0, tau=1, dims="component")
                slope = svmp.MvNormal("slope", mu=0, tau=np.eye(2), dims="component")
                component = svmp.Normal.dist(mu=mean * slope + shift, tau=1.3)
                svmp.Mixture("r", z, component, dims=PLATE, observed=values)
        found.append(Network(model))
    return found[0], found[1]


def check_twins(seed: int, place: str) -> None:
    """For any q, the two have the same bound and the same optimum of every variable."""
    keyed, keyless = twins(seed, place)
    q = anywhere(keyed, seed)
    assert bound(keyed, q) == pytest.approx(bound(keyless, q), rel=1e-11)
    for name in keyed.hidden:
        ours, plain = optimum(keyed, q, name), optimum(keyless, q, name)
        np.testing.assert_allclose(ours, plain, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("place", ["mean", "logit", "mixture"])
@pytest.mark.parametrize("seed", range(15))
def test_keys_are_the_same_as_one_hot_designs(seed: int, place: str) -> None:
    check_twins(seed, place)


def check_methods(seed: int, place: str, kernels: bool) -> None:
    """Every method runs, and reports the bound of the q that it returns."""
    keyed, keyless = twins(seed, place)
    methods = [None, svmp.FullVB(), svmp.Children(2), svmp.Batch(4)]
    with contextlib.suppress(svmp.ModelError):  # not every network can be grouped
        keyed.grouped("q")
        methods.append(svmp.Batch(1, over="q"))
    for method in methods:
        fit = svmp.fit(keyed.model, method, max_sweeps=3, kernels=kernels, seed=seed)
        q = copy(anywhere(keyed, 0))
        for name, variable in keyed.hidden.items():
            natural = variable.family.natural(**fit.posteriors[name].parameters)
            q.natural[name] = np.reshape(natural, (variable.size, -1))
            q.moments[name] = variable.family.moments(q.natural[name])
        assert fit.bound == pytest.approx(bound(keyless, q), rel=1e-8)


@pytest.mark.parametrize("place", ["mean", "logit", "mixture"])
@pytest.mark.parametrize("seed", range(4))
def test_every_method_supports_keys(seed: int, place: str) -> None:
    check_methods(seed, place, kernels=False)


def places(rng: np.random.Generator, dims: tuple[str, ...]) -> tuple[Any, np.ndarray]:
    """Return random keys for each axis of a plate, and the element that each row refers to."""
    index, flat = [], np.zeros(tuple(SIZES[a] for a in PLATE), dtype=int)
    for dim in dims:
        kind = rng.choice(["place", "row", "table", "named"])
        axes = {"place": (), "table": PLATE, "named": ("p",)}.get(kind, ("q",))
        keys = rng.integers(SIZES[dim], size=tuple(SIZES[a] for a in axes))
        named = kind == "named" or (kind != "place" and rng.random() < 0.3)
        index.append(svmp.data(keys, dims=axes) if named else int(keys) if not axes else keys)
        flat = flat * SIZES[dim] + (keys[:, None] if kind == "named" else keys)
    return tuple(index), flat.ravel()


@pytest.mark.parametrize("dims", [("a",), ("a", "b"), ("one", "b"), ("b", "one", "a")], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_every_kind_of_parameter_supports_keys(dims: tuple[str, ...], seed: int) -> None:
    """Each posterior is its prior plus the statistics of the rows that refer to the element."""
    rng = np.random.default_rng([seed, len(dims)])
    rows = tuple(SIZES[a] for a in PLATE)
    shape = tuple(SIZES[d] for d in dims)
    size = int(np.prod(shape))
    keys = {name: places(rng, dims) for name in "gpdmw"}

    def count(name: str, values: Any = 1.0) -> np.ndarray:
        weights = np.broadcast_to(values, rows).ravel()
        return np.bincount(keys[name][1], weights, size).reshape(shape)

    x, heads, words = rng.normal(size=rows), rng.integers(0, 2, rows), rng.integers(0, 3, rows)
    v, u = rng.normal(size=(2, *rows, 3))
    with svmp.Model(coords=SIZES) as model:
        g = svmp.Gamma("g", alpha=2, beta=3, dims=dims)
        svmp.Normal("x", mu=0, tau=g[keys["g"][0]], dims=PLATE, observed=x)
        p = svmp.Beta("p", alpha=2, beta=3, dims=dims)
        svmp.Bernoulli("heads", p=p[keys["p"][0]], dims=PLATE, observed=heads)
        d = svmp.Dirichlet("d", a=0.5, dims=(*dims, "d"))
        svmp.Categorical("words", p=d[keys["d"][0]], dims=PLATE, observed=words)
        m = svmp.MvNormal("m", mu=1, tau=np.eye(3), dims=(*dims, "d"))
        svmp.MvNormal("v", mu=m[keys["m"][0]], tau=2 * np.eye(3), dims=(*PLATE, "d"), observed=v)
        w = svmp.Wishart("w", nu=4, V=np.eye(3), dims=(*dims, "d", "d"))
        svmp.MvNormal("u", mu=0, tau=w[keys["w"][0]], dims=(*PLATE, "d"), observed=u)
    fit = fitted(model, kernels=False)
    np.testing.assert_allclose(fit["g"].alpha, 2 + count("g") / 2)
    np.testing.assert_allclose(fit["g"].beta, 3 + count("g", x**2) / 2)
    np.testing.assert_allclose(fit["p"].alpha, 2 + count("p", heads))
    np.testing.assert_allclose(fit["p"].beta, 3 + count("p", 1 - heads))
    for word in range(3):
        np.testing.assert_allclose(fit["d"].a[..., word], 0.5 + count("d", words == word))
        mean = (1 + 2 * count("m", v[..., word])) / (1 + 2 * count("m"))
        np.testing.assert_allclose(fit["m"].mean[..., word], mean)
        for other in range(3):
            inverse = (word == other) + count("w", u[..., word] * u[..., other])
            found = np.linalg.inv(fit["w"].V)[..., word, other]
            np.testing.assert_allclose(found, inverse, atol=1e-9)
    np.testing.assert_allclose(fit["w"].nu, 4 + count("w"))


@pytest.mark.parametrize("kind", ["mean", "sum", "product", "logit", "dot"])
def test_an_array_of_keys_along_a_vector(kind: str) -> None:
    """x[[0, 1, 1]] of a vector without a plate, as the rows of a design."""
    y, key = np.array([1.0, 0.0, 1.0, 1.0]), [0, 1, 1, 2]
    fits = []
    for keyless in (False, True):
        with svmp.Model(coords={"d": 3}) as model:
            x = svmp.MvNormal("x", mu=0, tau=np.eye(3) + 0.3, dims="d")
            a = svmp.Normal("a", mu=1, tau=1)
            entry = svmp.dot(np.eye(3)[key], x) if keyless else x[key]
            mean = {"sum": entry + a, "product": 2 * entry * [1, 2, 3, 4], "dot": entry * a}
            if kind == "logit":
                svmp.Bernoulli("y", logit=entry, observed=y)
            else:
                svmp.Normal("y", mu=mean.get(kind, entry), tau=1, observed=y)
        fits.append(fitted(model, kernels=False, seed=1))
    assert fits[0].bound == pytest.approx(fits[1].bound, rel=1e-9)
    np.testing.assert_allclose(fits[0].mean("x"), fits[1].mean("x"), atol=1e-5)
    np.testing.assert_allclose(fits[0]["x"].tau, fits[1]["x"].tau, atol=1e-5)


def test_one_entry_of_a_vector_is_the_mean_of_all_entries_of_a_row() -> None:
    y, key = np.random.default_rng(0).normal(size=(6, 3)), np.arange(6) % 3
    with svmp.Model(coords={"d": 3, "row": 6}) as model:
        m = svmp.MvNormal("m", mu=0, tau=np.eye(3), dims="d")
        mu = m[svmp.data(key, "row")]
        svmp.MvNormal("r", mu, np.eye(3), dims=("row", "d"), observed=y)
    design = np.equal.outer(np.repeat(key, 3), np.arange(3)).astype(float)
    exact = np.linalg.solve(np.eye(3) + design.T @ design, design.T @ y.ravel())
    np.testing.assert_allclose(svmp.fit(model).mean("m"), exact, rtol=1e-10)


@pytest.mark.parametrize(
    "key", [0, [0, 1], svmp.data([0, 1], "row")], ids=["place", "array", "named"]
)
def test_part_of_a_vector_is_refused_where_all_of_it_is_needed(key: Any) -> None:
    with svmp.Model(coords={"d": 3, "row": 2}):
        w = svmp.Wishart("w", nu=4, V=np.eye(3), dims=("d", "d"))
        p = svmp.Dirichlet("p", a=1, dims="d")
        for declare in (
            lambda: svmp.MvNormal("r", 0, w[key], dims=("row", "d")),
            lambda: svmp.MvNormal("r", 0, 2 * w[key], dims=("row", "d")),
            lambda: svmp.Categorical("r", p[key], dims="row"),
            lambda: svmp.Multinomial("r", 4, p[key], dims=("row", "d")),
        ):
            with pytest.raises(svmp.ModelError, match=r"'r': '[wp]' cannot be indexed along"):
                declare()


@pytest.mark.parametrize("seed", range(10))
def test_no_row_reads_more_elements_than_are_counted(seed: int) -> None:
    model, keyed, _, _ = linear_model(seed)
    slot = model["r"].conditional.slots["mu"]
    for variable in slot.variables:
        depth = len(variable.plate.shape)
        for polynomial in keyed.rows():
            scalars = {s for monomial in polynomial for s in monomial}
            elements = {place[:depth] for name, place in scalars if name == variable.name}
            assert len(elements) <= slot.width(variable)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 150))
def test_many_networks_with_keys(seed: int) -> None:
    check_closed_form(seed)
    for place in ("mean", "logit", "mixture"):
        check_twins(seed, place)
        check_methods(seed, place, kernels=True)
