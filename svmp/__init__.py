"""Stochastic variational message passing for conditionally conjugate Bayesian networks."""

from svmp.errors import FileError, ImproperError, ModelError, SvmpError
from svmp.inference.fit import fit
from svmp.inference.result import Fit, load
from svmp.inference.selection import FullVB
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
from svmp.network.expressions import data, dot
from svmp.network.model import Model
from svmp.network.variable import Variable

__version__ = "0.1.0"

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Dirichlet",
    "Exponential",
    "FileError",
    "Fit",
    "FullVB",
    "Gamma",
    "ImproperError",
    "Mixture",
    "Model",
    "ModelError",
    "Multinomial",
    "MvNormal",
    "Normal",
    "Poisson",
    "SvmpError",
    "Variable",
    "Wishart",
    "data",
    "dot",
    "fit",
    "load",
]
