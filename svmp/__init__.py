"""Stochastic variational message passing for conditionally conjugate Bayesian networks.

Names are imported when they are first used: `import svmp` imports neither Numba nor SciPy, and rows
in parts, terminals and files cost nothing where they are not used.
"""

# ruff: noqa: E402
from svmp.interrupts import end_quietly

end_quietly()

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from svmp.errors import (
        ConvergenceWarning,
        DivergenceWarning,
        FileError,
        ImproperError,
        ModelError,
        RatingsError,
        SvmpError,
    )
    from svmp.fitting.calibration import calibrate
    from svmp.fitting.fit import explain, fit
    from svmp.inference.methods import Batch, Children, FullVB, Growing, Memoized
    from svmp.inference.steps import (
        Constant,
        Grow,
        HoldThenDecay,
        Nodewise,
        RobbinsMonro,
        StepContext,
    )
    from svmp.network.chains.linear_chains import LinearGaussianChain
    from svmp.network.chains.markov_chains import DiscreteMarkovChain
    from svmp.network.chains.structural import Structure, local_level, local_trend, seasonal
    from svmp.network.chains.time_series import AR, GaussianRandomWalk
    from svmp.network.data_arrays import data
    from svmp.network.distributions import (
        Bernoulli,
        Beta,
        Binomial,
        Categorical,
        Dirichlet,
        Exponential,
        Gamma,
        Mixture,
        Multinomial,
        MvNormal,
        Normal,
        Poisson,
        Wishart,
    )
    from svmp.network.expressions import diag, dot
    from svmp.network.model import Model
    from svmp.network.variable import Variable
    from svmp.parts.parquet_files import parquet
    from svmp.parts.parts import Parts
    from svmp.parts.sources import from_dask
    from svmp.parts.splitting import frames, split
    from svmp.posterior.checks.comparison import compare
    from svmp.posterior.prediction.prediction import Prediction
    from svmp.posterior.prediction.prior import prior_predictive
    from svmp.posterior.result.result import Fit, load

__version__ = "0.1.0"

_NAMES = {
    "svmp.errors": (
        "ConvergenceWarning",
        "DivergenceWarning",
        "FileError",
        "ImproperError",
        "ModelError",
        "RatingsError",
        "SvmpError",
    ),
    "svmp.fitting.fit": (
        "explain",
        "fit",
    ),
    "svmp.inference.methods": (
        "Batch",
        "Children",
        "FullVB",
        "Growing",
        "Memoized",
    ),
    "svmp.posterior.prediction.prediction": ("Prediction",),
    "svmp.posterior.prediction.prior": ("prior_predictive",),
    "svmp.posterior.result.result": (
        "Fit",
        "load",
    ),
    "svmp.inference.steps": (
        "Constant",
        "Grow",
        "HoldThenDecay",
        "Nodewise",
        "RobbinsMonro",
        "StepContext",
    ),
    "svmp.fitting.calibration": ("calibrate",),
    "svmp.posterior.checks.comparison": ("compare",),
    "svmp.network.distributions": (
        "Bernoulli",
        "Beta",
        "Binomial",
        "Categorical",
        "Dirichlet",
        "Exponential",
        "Gamma",
        "Mixture",
        "Multinomial",
        "MvNormal",
        "Normal",
        "Poisson",
        "Wishart",
    ),
    "svmp.network.data_arrays": ("data",),
    "svmp.network.expressions": (
        "diag",
        "dot",
    ),
    "svmp.network.chains.linear_chains": ("LinearGaussianChain",),
    "svmp.network.chains.markov_chains": ("DiscreteMarkovChain",),
    "svmp.network.model": ("Model",),
    "svmp.network.chains.structural": ("Structure", "local_level", "local_trend", "seasonal"),
    "svmp.network.chains.time_series": ("AR", "GaussianRandomWalk"),
    "svmp.network.variable": ("Variable",),
    "svmp.parts.parquet_files": ("parquet",),
    "svmp.parts.parts": ("Parts",),
    "svmp.parts.sources": ("from_dask",),
    "svmp.parts.splitting": (
        "frames",
        "split",
    ),
}
"""By module, the names that it has for `svmp`."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
_ROOMS = ("errors", "factors", "families", "inference", "kernels", "network", "parts")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a name when it is first used."""
        if name in _ROOMS:
            return import_module(f"svmp.{name}")
        if name not in _MODULES:
            hint = import_module("svmp.network.other_names").OTHER_NAMES.get(name)
            there = f"module 'svmp' has no attribute '{name}'" + (f"; {hint}" if hint else "")
            raise AttributeError(there, name=name, obj=None)
        found = globals()[name] = vars(import_module(_MODULES[name]))[name]
        return found


def __dir__() -> list[str]:
    """Return all names, also those that were not used yet."""
    return sorted({*globals(), *__all__, *_ROOMS})


__all__ = [
    "AR",
    "Batch",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Children",
    "Constant",
    "ConvergenceWarning",
    "Dirichlet",
    "DiscreteMarkovChain",
    "DivergenceWarning",
    "Exponential",
    "FileError",
    "Fit",
    "FullVB",
    "Gamma",
    "GaussianRandomWalk",
    "Grow",
    "Growing",
    "HoldThenDecay",
    "ImproperError",
    "LinearGaussianChain",
    "Memoized",
    "Mixture",
    "Model",
    "ModelError",
    "Multinomial",
    "MvNormal",
    "Nodewise",
    "Normal",
    "Parts",
    "Poisson",
    "Prediction",
    "RatingsError",
    "RobbinsMonro",
    "StepContext",
    "Structure",
    "SvmpError",
    "Variable",
    "Wishart",
    "calibrate",
    "compare",
    "data",
    "diag",
    "dot",
    "explain",
    "fit",
    "frames",
    "from_dask",
    "load",
    "local_level",
    "local_trend",
    "parquet",
    "prior_predictive",
    "seasonal",
    "split",
]
