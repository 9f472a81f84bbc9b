"""Names of other libraries, above all of PyMC, and what is written here instead."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

HALF_CAUCHY = (
    "on a standard deviation it is two Gammas: rate = svmp.Gamma('rate', alpha=0.5, beta=1 / s**2) "
    "and the precision tau = svmp.Gamma('tau', alpha=0.5, beta=rate)"
)
HALF_STUDENT_T = (
    "on a standard deviation it is two Gammas: rate = svmp.Gamma('rate', alpha=0.5, beta=1 / s**2) "
    "and the precision tau = svmp.Gamma('tau', alpha=nu / 2, beta=nu * rate)"
)
ANY = "the network must be conjugate"
EXP = (
    "only sums and products are conjugate; a rate is a product of Gammas, as mu=a[group] * b[year] "
    "of a svmp.Poisson, and a numeric predictor of a log rate is not supported"
)
LOG = (
    "only sums and products are conjugate; take the logarithm of the data, as in "
    "svmp.Normal('y', ..., observed=np.log(y))"
)
LOGISTIC = "a logistic regression is svmp.Bernoulli('y', logit=...), or svmp.Binomial with logit="
ORDERED = (
    "ordered categories are not supported; model the probability of being above one threshold with "
    "svmp.Bernoulli('above', logit=...), or treat the scores as numbers with svmp.Normal"
)
SOFTMAX = (
    "categories with predictors are not supported; fit one svmp.Bernoulli with logit= for each "
    "category, or give each group probabilities with a svmp.Dirichlet"
)
SAMPLER = "use svmp.fit(model): the posterior is approximated, not sampled"

OTHER_NAMES = {
    "HalfNormal": f"it is not conjugate; take a half-Cauchy: {HALF_CAUCHY}",
    "HalfCauchy": HALF_CAUCHY,
    "HalfStudentT": HALF_STUDENT_T,
    "InverseGamma": "it is the prior of a variance; give the precision, 1 / variance, a svmp.Gamma",
    "StudentT": "write it as svmp.Normal with the precision tau * lam, and lam a "
    "svmp.Gamma(alpha=nu / 2, beta=nu / 2) for each row",
    "NegativeBinomial": "write it as svmp.Poisson with a svmp.Gamma rate for each row",
    "Uniform": "a probability has the prior svmp.Beta(alpha=1, beta=1), a location a wide "
    "svmp.Normal",
    "Flat": "give a proper prior, as svmp.Normal(mu=0, tau=1e-6)",
    "LKJCholeskyCov": "a precision matrix has the prior svmp.Wishart",
    "LKJCorr": "a precision matrix has the prior svmp.Wishart",
    "WishartBartlett": "a precision matrix has the prior svmp.Wishart",
    "Laplace": f"{ANY}; use svmp.Normal",
    "Cauchy": "write it as svmp.Normal with the precision tau * lam, and lam a "
    "svmp.Gamma(alpha=0.5, beta=0.5) for each row",
    "LogNormal": "use svmp.Normal for the logarithms of the data",
    "ZeroInflatedPoisson": "use svmp.Mixture of Poissons, one with a rate near 0",
    "NormalMixture": "use svmp.Mixture(name, z, svmp.Normal.dist(...)), with z a svmp.Categorical",
    "Deterministic": "an expression needs no name: use it as it is, and compute it from draws, "
    "fit.draw([...])",
    "OrderedLogistic": ORDERED,
    "OrderedProbit": ORDERED,
    "OrderedMultinomial": ORDERED,
    "Logistic": f"{ANY}; use svmp.Normal",
    "MvStudentT": "use svmp.MvNormal with the precision lam * W for each row, lam a svmp.Gamma",
    "AsymmetricLaplace": f"{ANY}; use svmp.Normal",
    "SkewNormal": f"{ANY}; use svmp.Normal for the data or for their logarithms",
    "ExGaussian": f"{ANY}; use svmp.Normal for the logarithms of the data",
    "Weibull": "durations have svmp.Exponential, or svmp.Gamma with a fixed alpha",
    "TruncatedNormal": f"{ANY}, so that densities cannot be truncated",
    "BetaBinomial": "write it as svmp.Binomial with a fixed svmp.Beta for each row",
    "DirichletMultinomial": "write it as svmp.Multinomial with a fixed svmp.Dirichlet for each row",
    "ZeroInflatedNegativeBinomial": "use svmp.Mixture of Poissons, one with a rate near 0",
    "ZeroInflatedBinomial": "use svmp.Mixture of Binomials, one with a probability near 0",
    "HurdlePoisson": "use svmp.Mixture of Poissons, one with a rate near 0",
    "ChiSquared": "it is svmp.Gamma with alpha=nu / 2 and beta=0.5",
    "Geometric": f"{ANY}; use svmp.Poisson with a svmp.Gamma rate for each row",
    "DiscreteUniform": "use svmp.Categorical with equal probabilities",
    "CAR": "use svmp.MvNormal with the matrix of the neighbours as tau, times a svmp.Gamma",
    "ICAR": "its prior is improper; use the basis of docs/gallery/31_smooth_maps.py",
    "RandomWalk": "use svmp.GaussianRandomWalk or svmp.local_level",
    "StickBreakingWeights": "use svmp.Dirichlet with small concentrations",
    "CustomDist": f"{ANY}: the densities are listed in docs/networks.md",
    "DensityDist": f"{ANY}: the densities are listed in docs/networks.md",
    "exp": EXP,
    "log": LOG,
    "sqrt": "only sums and products are conjugate; apply other functions to the data",
    "logit": LOGISTIC,
    "invlogit": LOGISTIC,
    "sigmoid": LOGISTIC,
    "softmax": SOFTMAX,
    "sum": 'write x.sum("axis")',
    "stack": "declare one variable with dims, and read it by keys, as x[key]",
    "concat": "declare one variable with dims, and read it by keys, as x[key]",
    "switch": "to choose between densities, use svmp.Mixture",
    "where": "to choose between densities, use svmp.Mixture",
    "Metropolis": SAMPLER,
    "HMC": SAMPLER,
    "VB": SAMPLER,
    "waic": "use svmp.compare({'a': fit, ...}, models)",
    "plot_trace": "use fit.plot_trace()",
    "GaussianARD": "use svmp.Normal with a svmp.Gamma precision for each feature",
    "SumMultiply": "use svmp.dot",
    "CategoricalMarkovChain": "use svmp.DiscreteMarkovChain",
    "GaussianMarkovChain": "use svmp.LinearGaussianChain",
    "Potential": f"{ANY}, so that terms of the log density cannot be added",
    "Censored": f"{ANY}, so that rows cannot be censored",
    "Truncated": f"{ANY}, so that densities cannot be truncated",
    "Data": "use svmp.data(values, dims=..., name=...)",
    "MutableData": "use svmp.data(values, dims=..., name=...)",
    "ConstantData": "use svmp.data(values, dims=...)",
    "set_data": "use model.with_data(x=...), which returns a new model",
    "sample": "use fit = svmp.fit(model), then fit.draw([...], size)",
    "sample_prior_predictive": "use svmp.prior_predictive(model, size)",
    "sample_posterior_predictive": "use fit.predict(model, name).draw(size)",
    "find_MAP": "use svmp.fit(model)",
    "ADVI": "use svmp.fit(model)",
    "NUTS": "use svmp.fit(model)",
    "summary": "use fit.summary()",
    "plot_posterior": "use fit.plot_posterior()",
    "loo": "use svmp.compare({'a': fit, ...}, models)",
    "math": "only sums and products are conjugate: +, -, *, @ and svmp.dot",
    "gp": "write a Gaussian process on a grid as svmp.MvNormal with a fixed matrix times a "
    "svmp.Gamma as tau",
    "Plate": "name the axes with dims=, and give their sizes in svmp.Model(coords=...)",
    "plate": "name the axes with dims=, and give their sizes in svmp.Model(coords=...)",
}
"""By name, what to write instead."""

OTHER_PARAMETERS = {
    "sigma": "tau is a precision, 1 / sigma**2",
    "sd": "tau is a precision, 1 / sd**2",
    "scale": "a rate or precision is 1 / scale, or 1 / scale**2 for a Normal",
    "loc": "the mean is mu",
    "mean": "the mean is mu",
    "cov": "tau is a precision matrix, the inverse of cov",
    "chol": "tau is a precision matrix, the inverse of chol @ chol.T",
    "precision": "the precision is tau",
    "rate": "the name of a rate is beta of a Gamma, lam of an Exponential, mu of a Poisson",
    "logit_p": "a linear predictor is given as logit=",
    "concentration": "the concentrations of a Dirichlet are a",
    "shape": "name the axes with dims=, and give their sizes in the model's coords",
    "size": "name the axes with dims=, and give their sizes in the model's coords",
    "plates": "name the axes with dims=, and give their sizes in the model's coords",
    "lower": "densities cannot be truncated",
    "upper": "densities cannot be truncated",
    "initval": "starting values are given by svmp.fit(model, init={...})",
    "testval": "starting values are given by svmp.fit(model, init={...})",
    "transform": "q is in the space of the variable, so leave it out",
    "total_size": "rows are drawn by the method, as svmp.Batch(100), so leave it out",
    "data": "values are given by observed=",
    "value": "values are given by observed=",
    "w": "the weights are those of a svmp.Categorical z that chooses: p=w",
}
"""By name of a parameter, what to write instead."""

OF_KIND = {
    ("Gamma", "mu"): "alpha is mu**2 / sigma**2 and beta is mu / sigma**2",
    ("Gamma", "sigma"): "alpha is mu**2 / sigma**2 and beta is mu / sigma**2",
    ("Beta", "mu"): "alpha is mu times the weight of the prior, and beta is (1 - mu) times it",
    ("Dirichlet", "p"): "its concentrations are a",
    ("Dirichlet", "alpha"): "its concentrations are a",
    ("Wishart", "n"): "the degrees of freedom are nu",
    ("Exponential", "beta"): "the rate is lam",
    ("Poisson", "lam"): "the rate is mu",
    ("Poisson", "log"): EXP,
    ("Poisson", "log_mu"): EXP,
    ("Poisson", "log_rate"): EXP,
    ("Poisson", "eta"): EXP,
    ("Exponential", "log"): EXP,
    ("Gamma", "log"): EXP,
    ("Categorical", "logit"): SOFTMAX,
    ("Categorical", "logit_p"): SOFTMAX,
    ("Categorical", "logits"): SOFTMAX,
    ("Multinomial", "logit"): SOFTMAX,
    ("Bernoulli", "logits"): "a linear predictor is given as logit=",
}
"""By density and parameter, what to write instead."""

OF_FIT = {
    "sample": "use fit.draw([...], size)",
    "samples": "use fit.draw([...], size)",
    "sample_posterior_predictive": "use fit.predict(model, name).draw(size)",
    "posterior_predictive": "use fit.predict(model, name)",
    "to_inference_data": "use fit.to_arviz()",
    "to_dataframe": "use fit.to_frame()",
    "to_pandas": "use fit.to_frame()",
    "elbo": "the evidence lower bound is fit.bound",
    "lower_bound": "the evidence lower bound is fit.bound",
    "loglike": "the evidence lower bound is fit.bound",
    "log_evidence": "its lower bound is fit.bound",
    "hist": "the bound during the run is fit.trace",
    "history": "the bound during the run is fit.trace",
    "losses": "the bound during the run is fit.trace",
    "converged": "compare fit.status with 'converged'",
    "loo": "use svmp.compare({'a': fit, ...}, models)",
    "waic": "use svmp.compare({'a': fit, ...}, models)",
    "params": "use fit['name'], fit.mean('name') or fit.summary()",
    "coef_": "use fit.mean('name')",
    "stddev": "use fit.std('name')",
    "sd": "use fit.std('name')",
    "cov": "use fit.covariance(model, [...])",
    "interval": "use fit['name'].interval(prob)",
    "hdi": "use fit['name'].interval(prob)",
    "quantile": "use fit['name'].quantile(p)",
    "score": "use fit.held_out(model, {...})",
    "forecast": "use fit.predict(model.with_data(...), name)",
    "fit": "use svmp.fit(model, init=fit) to go on",
}
"""By attribute that a Fit does not have, what to write instead."""
OF_MODEL = {
    "fit": "use svmp.fit(model)",
    "sample": "use fit = svmp.fit(model), then fit.draw([...], size)",
    "sample_prior_predictive": "use svmp.prior_predictive(model, size)",
    "predict": "use svmp.fit(model).predict(model, name)",
    "set_data": "use model.with_data(x=...), which returns a new model",
    "named_vars": "use model.variables",
    "basic_RVs": "use model.variables",
    "to_graphviz": "use model.draw()",
    "plot": "use model.draw()",
    "dims": "use model.coords",
    "add_coord": "give all dims in svmp.Model(coords=...)",
    "add_coords": "give all dims in svmp.Model(coords=...)",
    "logp": "the bound of the log evidence is svmp.fit(model).bound",
}
"""By attribute that a Model does not have, what to write instead."""


def refuse_attribute(owner: Any, hints: Mapping[str, str], name: str) -> NoReturn:
    """Raise the AttributeError of an object, with what to write instead."""
    instead = hints.get(name, "")
    if not instead and not name.startswith("_"):
        near = get_close_matches(name, [n for n in dir(owner) if not n.startswith("_")], n=1)
        instead = f"did you mean '{near[0]}'?" if near else ""
    says = f"'{type(owner).__name__}' object has no attribute '{name}'"
    raise AttributeError(f"{says}; {instead}" if instead else says)


def instead(kind: str, parameter: str) -> str:
    """Return a hint for a parameter that a density does not have; empty if there is none."""
    found = OF_KIND.get((kind, parameter)) or OTHER_PARAMETERS.get(parameter)
    return f"; {found}" if found else ""
