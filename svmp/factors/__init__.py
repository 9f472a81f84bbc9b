"""Conditional densities, one file each."""

from svmp.factors.bernoulli import Bernoulli
from svmp.factors.bernoulli_logit import BernoulliLogit
from svmp.factors.beta import Beta
from svmp.factors.binomial import Binomial
from svmp.factors.binomial_logit import BinomialLogit
from svmp.factors.categorical import Categorical
from svmp.factors.dirichlet import Dirichlet
from svmp.factors.exponential import Exponential
from svmp.factors.gamma import Gamma
from svmp.factors.multinomial import Multinomial
from svmp.factors.mvnormal import MvNormal
from svmp.factors.normal import Normal
from svmp.factors.poisson import Poisson
from svmp.factors.wishart import Wishart
from svmp.factors.wishart_rate import WishartRate

__all__ = [
    "Bernoulli",
    "BernoulliLogit",
    "Beta",
    "Binomial",
    "BinomialLogit",
    "Categorical",
    "Dirichlet",
    "Exponential",
    "Gamma",
    "Multinomial",
    "MvNormal",
    "Normal",
    "Poisson",
    "Wishart",
    "WishartRate",
]
