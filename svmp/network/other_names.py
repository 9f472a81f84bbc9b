"""Names of other libraries, above all of PyMC, and what is written here instead."""

from __future__ import annotations

SCALE = "a scale has no conjugate prior; give the precision tau = 1 / sigma**2 a svmp.Gamma prior"
HALF_CAUCHY = (
    "on a standard deviation it is two Gammas: rate = svmp.Gamma('rate', alpha=0.5, beta=1 / s**2) "
    "and the precision tau = svmp.Gamma('tau', alpha=0.5, beta=rate)"
)
HALF_STUDENT_T = (
    "on a standard deviation it is two Gammas: rate = svmp.Gamma('rate', alpha=0.5, beta=1 / s**2) "
    "and the precision tau = svmp.Gamma('tau', alpha=nu / 2, beta=nu * rate)"
)
ANY = "the network must be conjugate"

OTHER_NAMES = {
    "HalfNormal": SCALE,
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
    ("Bernoulli", "logits"): "a linear predictor is given as logit=",
}
"""By density and parameter, what to write instead."""


def instead(kind: str, parameter: str) -> str:
    """Return a hint for a parameter that a density does not have; empty if there is none."""
    found = OF_KIND.get((kind, parameter)) or OTHER_PARAMETERS.get(parameter)
    return f"; {found}" if found else ""
