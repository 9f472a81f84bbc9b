"""The distributions that a network is declared with, under PyMC's names; tau is a precision.

`Normal("x", mu=..., tau=..., dims=..., observed=...)` declares a variable in the open model.
`Normal.dist(mu=..., tau=...)` is the same density without a name, as a component of a Mixture.
"""

from __future__ import annotations

import functools
import inspect
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from svmp import factors
from svmp.errors import ModelError
from svmp.network.expressions import Expression
from svmp.network.model import current
from svmp.network.other_names import instead
from svmp.network.validation import article, shown, text
from svmp.network.variable import Component, Dims, Variable


def _checked(kind: str, dist: Callable[..., Component]) -> Callable[..., Component]:
    """Turn errors about unknown or missing arguments of a density into a ModelError."""
    takes = ", ".join(inspect.signature(dist).parameters)

    @functools.wraps(dist)
    def checked(*args: Any, **parameters: Any) -> Component:
        try:
            return dist(*args, **parameters)
        except TypeError as error:
            raise ModelError(f"{kind} takes {takes}: {error}") from None

    return checked


class Distribution(Variable):
    """A variable with the density of `dist`, the one method that a subclass needs."""

    _known: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        name: str,
        *args: Any,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: bool | ArrayLike = False,
        **parameters: Any,
    ) -> None:
        text(name, "a variable's name")
        kind, known = type(self).__name__, self._known
        for parameter in parameters:
            if parameter not in known:
                raise ModelError(
                    f"'{name}' has {article(parameter)}, but {kind} takes {', '.join(known)}"
                    f"{instead(kind, parameter)}"
                )
        try:
            component = self.dist(*args, **parameters)
        except ModelError as error:
            raise ModelError(f"'{name}': {error}") from None
        model = current(name)
        super().__init__(model.coords, model.free_name(name), component, dims, observed, missing)
        model.add(self)

    def __init_subclass__(cls) -> None:
        """Give the class the signature of `dist`, for `help`."""
        own = [inspect.Parameter("name", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str)]
        rest = list(inspect.signature(Distribution.__init__).parameters.values())
        shared = [p for p in rest if p.name in ("dims", "observed", "missing")]
        dist = list(inspect.signature(cls.dist).parameters.values())
        cls._known = tuple(p.name for p in dist)
        cls.dist = staticmethod(_checked(cls.__name__, cls.dist))  # type: ignore[method-assign]
        cls.__signature__ = inspect.Signature([*own, *dist, *shared])  # type: ignore[attr-defined]

    @staticmethod
    @abstractmethod
    def dist(*args: Any, **parameters: Any) -> Component:
        """Return the density alone, without a name."""


class Normal(Distribution):
    """Normal with mean `mu` and precision `tau`.

    `mu` may be any expression that is linear in each Normal or MvNormal in it; `tau` a positive
    number, a Gamma, or a product of them.

    >>> import svmp
    >>> with svmp.Model() as model:
    ...     mu = svmp.Normal("mu", mu=0, tau=1)
    ...     x = svmp.Normal("x", mu=mu, tau=2, observed=[1.0, 3.0])
    >>> svmp.fit(model, svmp.FullVB()).mean("mu")
    array(1.6)
    """

    @staticmethod
    def dist(mu: Any = 0.0, tau: Any = 1.0) -> Component:
        """Return the density alone, without a name."""
        return Component(factors.Normal(), {"mu": mu, "tau": tau})


class MvNormal(Distribution):
    """Normal vector with mean `mu` and precision matrix `tau`; its last dim is that of the vector.

    `mu` may be numbers or an MvNormal; `tau` a positive definite matrix, a Wishart (also multiplied
    by numbers and Gammas), or `svmp.diag` of Gammas.
    """

    @staticmethod
    def dist(mu: Any, tau: Any) -> Component:
        """Return the density alone, without a name."""
        return Component(factors.MvNormal(), {"mu": mu, "tau": tau})


class Gamma(Distribution):
    """Gamma with shape `alpha` (numbers) and rate `beta` (numbers, a Gamma, or a product)."""

    @staticmethod
    def dist(alpha: Any, beta: Any) -> Component:
        """Return the density alone, without a name."""
        return Component(factors.Gamma(), {"alpha": alpha, "beta": beta})


class Wishart(Distribution):
    """Wishart with `nu` degrees of freedom and scale matrix `V`: E[X] = nu V; or with `rate`.

    The rate is the inverse of V: a positive definite matrix, a Wishart (also multiplied by numbers
    and Gammas), or `svmp.diag` of Gammas. Its last two dims are those of the matrix, and may have
    the same name.

    Under the prior of Huang and Wand (2013) for the covariance of k effects the standard deviations
    have half-t priors with scale 10, and the correlations are uniform:

    >>> import svmp
    >>> with svmp.Model(coords={"school": 20, "own": 2}) as model:
    ...     rate = svmp.Gamma("rate", alpha=0.5, beta=1 / 10**2, dims="own")
    ...     tau = svmp.Wishart("tau", nu=3, rate=svmp.diag(4 * rate), dims=("own", "own"))
    ...     effect = svmp.MvNormal("effect", mu=0, tau=tau, dims=("school", "own"))
    """

    @staticmethod
    def dist(nu: Any, V: Any = None, rate: Any = None) -> Component:
        """Return the density alone, without a name."""
        if (V is None) == (rate is None):
            raise TypeError("give one of V and rate")
        if rate is None:
            return Component(factors.Wishart(), {"nu": nu, "V": V})
        return Component(factors.WishartRate(), {"nu": nu, "rate": rate})


class Beta(Distribution):
    """Beta with numbers `alpha` and `beta`."""

    @staticmethod
    def dist(alpha: Any, beta: Any) -> Component:
        """Return the density alone, without a name."""
        return Component(factors.Beta(), {"alpha": alpha, "beta": beta})


class Dirichlet(Distribution):
    """Dirichlet with numbers `a`, one per category or for all; the last dim is the categories'."""

    @staticmethod
    def dist(a: Any) -> Component:
        """Return the density alone, without a name."""
        return Component(factors.Dirichlet(), {"a": a})


class Bernoulli(Distribution):
    """Bernoulli with probability `p`, a number or a Beta; or with `logit`, as the mu of a Normal.

    With a logit the density is replaced by the lower bound of Jaakkola and Jordan.

    >>> import svmp
    >>> dose, dead = [-2.0, -1.0, 0.0, 1.0, 2.0], [0, 0, 1, 0, 1]
    >>> with svmp.Model() as model:
    ...     slope = svmp.Normal("slope", mu=0, tau=1)
    ...     svmp.Bernoulli("dead", logit=slope * dose, observed=dead)
    <observed Bernoulli 'dead' {'dead_dim_0': 5}>
    >>> svmp.fit(model).mean("slope").round(2)
    np.float64(0.65)
    """

    @staticmethod
    def dist(p: Any = None, logit: Any = None) -> Component:
        """Return the density alone, without a name."""
        if (p is None) == (logit is None):
            raise TypeError("give one of them")
        if logit is None:
            return Component(factors.Bernoulli(), {"p": p})
        return Component(factors.BernoulliLogit(), {"logit": logit})


class Binomial(Distribution):
    """Binomial of `n` trials (numbers) with `p`, a number or a Beta; or with `logit`.

    A logit is given as the mu of a Normal. The density is then replaced by the lower bound of
    Jaakkola and Jordan, as that of `n` Bernoullis with the same logit is.
    """

    @staticmethod
    def dist(n: Any, p: Any = None, logit: Any = None) -> Component:
        """Return the density alone, without a name."""
        if (p is None) == (logit is None):
            raise TypeError("give one of p and logit")
        if logit is None:
            return Component(factors.Binomial(), {"n": n, "p": p})
        return Component(factors.BinomialLogit(), {"n": n, "logit": logit})


class Categorical(Distribution):
    """Categorical with values 0, 1, ... and probabilities `p`: numbers or a Dirichlet."""

    @staticmethod
    def dist(p: Any) -> Component:
        """Return the density alone, without a name."""
        return Component(factors.Categorical(), {"p": p})


class Multinomial(Distribution):
    """Multinomial counts of `n` trials (numbers); `p` numbers or a Dirichlet."""

    @staticmethod
    def dist(n: Any, p: Any) -> Component:
        """Return the density alone, without a name."""
        return Component(factors.Multinomial(), {"n": n, "p": p})


class Poisson(Distribution):
    """Poisson with rate `mu`: positive numbers, a Gamma, or a product of them."""

    @staticmethod
    def dist(mu: Any) -> Component:
        """Return the density alone, without a name."""
        return Component(factors.Poisson(), {"mu": mu})


class Exponential(Distribution):
    """Exponential with rate `lam`: positive numbers, a Gamma, or a product of them."""

    @staticmethod
    def dist(lam: Any) -> Component:
        """Return the density alone, without a name."""
        return Component(factors.Exponential(), {"lam": lam})


class Mixture(Variable):
    """A mixture: the Categorical `z` selects the component of each row.

    `component` is any density, as in `svmp.MvNormal.dist(mu=mu, tau=tau)`. Its parameters that
    have the dimension of z's categories have one value for each component; others are shared.

    >>> import svmp
    >>> with svmp.Model(coords={"row": 4, "component": 2}) as model:
    ...     weight = svmp.Dirichlet("weight", a=1, dims="component")
    ...     z = svmp.Categorical("z", p=weight, dims="row")
    ...     rate = svmp.Gamma("rate", alpha=1, beta=0.1, dims="component")
    ...     x = svmp.Mixture(
    ...         "x", z, svmp.Poisson.dist(mu=rate), dims="row", observed=[0, 1, 30, 31]
    ...     )
    >>> bool(svmp.fit(model, svmp.FullVB(), seed=1).mean("z")[0].max() > 0.99)
    True
    """

    def __init__(
        self,
        name: str,
        z: Any = None,
        component: Any = None,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: bool | ArrayLike = False,
        **other: Any,
    ) -> None:
        text(name, "a variable's name")
        for parameter in other:
            raise ModelError(
                f"'{name}' has {article(parameter)}, but Mixture takes z, component"
                f"{instead('Mixture', parameter)}"
            )

        def kind(given: Any) -> str:
            return (
                article(type(given).__name__) if isinstance(given, list | tuple) else shown(given)
            )

        if not isinstance(component, Component):
            raise ModelError(
                f"the component of '{name}' must be one density such as svmp.Normal.dist(...), "
                f"with parameters that have the dimension that z chooses, not {kind(component)}"
            )
        if not isinstance(z, Expression):
            raise ModelError(
                f"z of '{name}' is {kind(z)}; the choice among components needs a Categorical, as "
                f"z = svmp.Categorical('z', p=w, dims=...)"
            )
        model = current(name)
        super().__init__(
            model.coords, model.free_name(name), component, dims, observed, missing, selector=z
        )
        model.add(self)
