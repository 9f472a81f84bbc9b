"""The distributions that a network is declared with, under PyMC's names; tau is a precision.

`Normal("x", mu=..., tau=..., dims=..., observed=...)` declares a variable in the open model.
`Normal.dist(mu=..., tau=...)` is the same density without a name, for a Mixture's components.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from svmp import factors
from svmp.errors import ModelError
from svmp.network.variable import Component, Dims, Variable

Missing = bool | ArrayLike


class Normal(Variable):
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

    def __init__(
        self,
        name: str,
        mu: Any = 0.0,
        tau: Any = 1.0,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: Missing = False,
    ) -> None:
        super().__init__(name, self.dist(mu, tau), dims, observed, missing)

    @staticmethod
    def dist(mu: Any = 0.0, tau: Any = 1.0) -> Component:
        """Return the density alone."""
        return Component(factors.Normal(), {"mu": mu, "tau": tau})


class MvNormal(Variable):
    """Normal vector with mean `mu` and precision matrix `tau`; its last dim is the vector's.

    `mu` may be numbers or an MvNormal; `tau` a positive definite matrix or a Wishart.
    """

    def __init__(
        self,
        name: str,
        mu: Any,
        tau: Any,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: Missing = False,
    ) -> None:
        super().__init__(name, self.dist(mu, tau), dims, observed, missing)

    @staticmethod
    def dist(mu: Any, tau: Any) -> Component:
        """Return the density alone."""
        return Component(factors.MvNormal(), {"mu": mu, "tau": tau})


class Gamma(Variable):
    """Gamma with shape `alpha` (numbers) and rate `beta` (numbers, a Gamma, or a product)."""

    def __init__(
        self,
        name: str,
        alpha: Any,
        beta: Any,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: Missing = False,
    ) -> None:
        super().__init__(name, self.dist(alpha, beta), dims, observed, missing)

    @staticmethod
    def dist(alpha: Any, beta: Any) -> Component:
        """Return the density alone."""
        return Component(factors.Gamma(), {"alpha": alpha, "beta": beta})


class Wishart(Variable):
    """Wishart with `nu` degrees of freedom and scale matrix `V`: E[X] = nu V.

    Its last two dims are the matrix's, and may have the same name.
    """

    def __init__(
        self,
        name: str,
        nu: Any,
        V: Any,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: Missing = False,
    ) -> None:
        super().__init__(name, self.dist(nu, V), dims, observed, missing)

    @staticmethod
    def dist(nu: Any, V: Any) -> Component:
        """Return the density alone."""
        return Component(factors.Wishart(), {"nu": nu, "V": V})


class Beta(Variable):
    """Beta with numbers `alpha` and `beta`."""

    def __init__(
        self,
        name: str,
        alpha: Any,
        beta: Any,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: Missing = False,
    ) -> None:
        super().__init__(name, self.dist(alpha, beta), dims, observed, missing)

    @staticmethod
    def dist(alpha: Any, beta: Any) -> Component:
        """Return the density alone."""
        return Component(factors.Beta(), {"alpha": alpha, "beta": beta})


class Dirichlet(Variable):
    """Dirichlet with numbers `a`, one for each category or one for all; its last dim is theirs."""

    def __init__(
        self,
        name: str,
        a: Any,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: Missing = False,
    ) -> None:
        super().__init__(name, self.dist(a), dims, observed, missing)

    @staticmethod
    def dist(a: Any) -> Component:
        """Return the density alone."""
        return Component(factors.Dirichlet(), {"a": a})


class Bernoulli(Variable):
    """Bernoulli with probability `p`: a number or a Beta."""

    def __init__(
        self,
        name: str,
        p: Any,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: Missing = False,
    ) -> None:
        super().__init__(name, self.dist(p), dims, observed, missing)

    @staticmethod
    def dist(p: Any) -> Component:
        """Return the density alone."""
        return Component(factors.Bernoulli(), {"p": p})


class Binomial(Variable):
    """Binomial of `n` trials (numbers) with probability `p`: a number or a Beta."""

    def __init__(
        self,
        name: str,
        n: Any,
        p: Any,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: Missing = False,
    ) -> None:
        super().__init__(name, self.dist(n, p), dims, observed, missing)

    @staticmethod
    def dist(n: Any, p: Any) -> Component:
        """Return the density alone."""
        return Component(factors.Binomial(), {"n": n, "p": p})


class Categorical(Variable):
    """Categorical with values 0, 1, ... and probabilities `p`: numbers or a Dirichlet."""

    def __init__(
        self,
        name: str,
        p: Any,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: Missing = False,
    ) -> None:
        super().__init__(name, self.dist(p), dims, observed, missing)

    @staticmethod
    def dist(p: Any) -> Component:
        """Return the density alone."""
        return Component(factors.Categorical(), {"p": p})


class Multinomial(Variable):
    """Multinomial counts of `n` trials (numbers); `p` numbers or a Dirichlet."""

    def __init__(
        self,
        name: str,
        n: Any,
        p: Any,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: Missing = False,
    ) -> None:
        super().__init__(name, self.dist(n, p), dims, observed, missing)

    @staticmethod
    def dist(n: Any, p: Any) -> Component:
        """Return the density alone."""
        return Component(factors.Multinomial(), {"n": n, "p": p})


class Poisson(Variable):
    """Poisson with rate `mu`: positive numbers, a Gamma, or a product of them."""

    def __init__(
        self,
        name: str,
        mu: Any,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: Missing = False,
    ) -> None:
        super().__init__(name, self.dist(mu), dims, observed, missing)

    @staticmethod
    def dist(mu: Any) -> Component:
        """Return the density alone."""
        return Component(factors.Poisson(), {"mu": mu})


class Exponential(Variable):
    """Exponential with rate `lam`: positive numbers, a Gamma, or a product of them."""

    def __init__(
        self,
        name: str,
        lam: Any,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: Missing = False,
    ) -> None:
        super().__init__(name, self.dist(lam), dims, observed, missing)

    @staticmethod
    def dist(lam: Any) -> Component:
        """Return the density alone."""
        return Component(factors.Exponential(), {"lam": lam})


class Mixture(Variable):
    """A mixture: the Categorical `z` chooses which of the components each row comes from.

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
        z: Any,
        component: Component,
        *,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: Missing = False,
    ) -> None:
        if not isinstance(component, Component):
            raise ModelError(
                f"the component of '{name}' must be a density such as svmp.Normal.dist(...), "
                f"not {type(component).__name__}"
            )
        super().__init__(name, component, dims, observed, missing, selector=z)
