"""Exponential families, one file each."""

from svmp.families.bernoulli import Bernoulli
from svmp.families.beta import Beta
from svmp.families.binomial import Binomial
from svmp.families.categorical import Categorical
from svmp.families.dirichlet import Dirichlet
from svmp.families.exponential import Exponential
from svmp.families.gamma import Gamma
from svmp.families.multinomial import Multinomial
from svmp.families.mvnormal import MvNormal
from svmp.families.normal import Normal
from svmp.families.poisson import Poisson
from svmp.families.wishart import Wishart

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Dirichlet",
    "Exponential",
    "Gamma",
    "Multinomial",
    "MvNormal",
    "Normal",
    "Poisson",
    "Wishart",
]
