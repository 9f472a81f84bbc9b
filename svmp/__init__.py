"""Stochastic variational message passing for conditionally conjugate Bayesian networks."""

# ruff: noqa: E402
from svmp.interrupts import end_quietly

end_quietly()

from svmp.errors import (
    ConvergenceWarning,
    FileError,
    ImproperError,
    ModelError,
    RatingsError,
    SvmpError,
)
from svmp.inference.fit import explain, fit
from svmp.inference.methods import Batch, Children, FullVB, Growing, Memoized
from svmp.inference.result import Fit, load
from svmp.inference.steps import Constant, Grow, HoldThenDecay, Nodewise, RobbinsMonro, StepContext
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
from svmp.network.expressions import data, diag, dot
from svmp.network.model import Model
from svmp.network.variable import Variable
from svmp.parts.parquet_files import parquet
from svmp.parts.parts import Parts
from svmp.parts.sources import from_dask
from svmp.parts.splitting import frames, split

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Children",
    "Constant",
    "ConvergenceWarning",
    "Dirichlet",
    "Exponential",
    "FileError",
    "Fit",
    "FullVB",
    "Gamma",
    "Grow",
    "Growing",
    "HoldThenDecay",
    "ImproperError",
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
    "RatingsError",
    "RobbinsMonro",
    "StepContext",
    "SvmpError",
    "Variable",
    "Wishart",
    "data",
    "diag",
    "dot",
    "explain",
    "fit",
    "frames",
    "from_dask",
    "load",
    "parquet",
    "split",
]
