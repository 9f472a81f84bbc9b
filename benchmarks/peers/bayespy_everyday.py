"""BayesPy's VMP on ordinary networks: processor seconds of a sweep, and the last bound.

The networks are those of everyday_networks.py, by name. q factorises in the same way.
"""

import numpy as np
from bayespy.nodes import (
    Add,
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    Gaussian,
    GaussianARD,
    Mixture,
    Poisson,
    SumMultiply,
    Take,
    Wishart,
)
from exchange import answer, sweeps

# Each function returns the hidden nodes, in the order of their updates, and the observed node.


def regression(d, alpha, tau, hidden):
    w = GaussianARD(0, alpha, shape=d["x"].shape[1:])
    return [w, *hidden], GaussianARD(SumMultiply("i,i", w, d["x"]), tau)


def regression_ard(d):
    alpha, tau = Gamma(0.01, 0.01, plates=d["x"].shape[1:]), Gamma(1, 1)
    return regression(d, alpha, tau, [alpha, tau])


def regression_known_noise(d):
    return regression(d, 1, 1, [])


def regression_by_group(d):
    size, tau = d["x"].shape[1], Gamma(1, 1)
    prior = Wishart(12, 12 * np.eye(size))
    w = Gaussian(np.zeros(size), prior, plates=(int(d["groups"]),))
    return [w, prior, tau], GaussianARD(SumMultiply("i,i", Take(w, d["g"]), d["x"]), tau)


def regression_factorised(d):
    w, tau = [GaussianARD(0, 1) for _ in d["x"].T], Gamma(1, 1)
    terms = [SumMultiply(",", a, x) for a, x in zip(w, d["x"].T, strict=True)]
    return [*w, tau], GaussianARD(Add(*terms), tau)


def robust_regression(d):
    w, scale = GaussianARD(0, 1, shape=d["x"].shape[1:]), Gamma(1, 1)
    u = Gamma(2, scale, plates=(len(d["y"]),))
    return [w, u, scale], GaussianARD(SumMultiply("i,i", w, d["x"]), u)


def mean_and_precision(d):
    mu, tau = GaussianARD(0, 0.01), Gamma(1, 1)
    return [mu, tau], GaussianARD(mu, tau, plates=d["y"].shape)


def anova(d):
    a, between, tau = GaussianARD(0, 0.01), Gamma(1, 1), Gamma(1, 1)
    b = GaussianARD(0, between, plates=(int(d["groups"]),))
    return [a, b, between, tau], GaussianARD(Add(a, Take(b, d["g"])), tau)


def crossed_effects(d):
    a, tau_b, tau_c, tau = GaussianARD(0, 0.01), Gamma(1, 1), Gamma(1, 1), Gamma(1, 1)
    b = GaussianARD(0, tau_b, plates=(int(d["subjects"]),))
    c = GaussianARD(0, tau_c, plates=(int(d["items"]),))
    mean = Add(a, Take(b, d["i"]), Take(c, d["j"]))
    return [a, b, c, tau_b, tau_c, tau], GaussianARD(mean, tau)


def random_slopes(d):
    centre, tau = Gaussian(np.zeros(2), 0.01 * np.eye(2)), Gamma(1, 1)
    spread = Wishart(3, 3 * np.eye(2))
    w = Gaussian(centre, spread, plates=(int(d["groups"]),))
    mean = SumMultiply("i,i", Take(w, d["g"]), d["x"])
    return [w, centre, spread, tau], GaussianARD(mean, tau)


def hierarchy(d):
    tau_d, tau_s, tau = Gamma(1, 1), Gamma(1, 1), Gamma(1, 1)
    district = GaussianARD(0, tau_d, plates=(int(d["districts"]),))
    school = GaussianARD(Take(district, d["district"]), tau_s)
    return [school, district, tau_d, tau_s, tau], GaussianARD(Take(school, d["school"]), tau)


def noise_by_group(d):
    plates = (int(d["groups"]),)
    mu, tau = GaussianARD(0, 0.1, plates=plates), Gamma(1, 1, plates=plates)
    return [mu, tau], GaussianARD(Take(mu, d["g"]), Take(tau, d["g"]))


def covariance(d):
    mu, tau = Gaussian(np.zeros(5), 0.01 * np.eye(5)), Wishart(6, np.eye(5))
    return [mu, tau], Gaussian(mu, tau, plates=d["y"].shape[:1])


def mixture(d):
    count = int(d["components"])
    share = Dirichlet(np.ones(count))
    z = Categorical(share, plates=d["y"].shape)
    mu, tau = GaussianARD(0, 0.01, plates=(count,)), Gamma(1, 1, plates=(count,))
    z.initialize_from_random()
    return [mu, tau, share, z], Mixture(z, GaussianARD, mu, tau)


def mixture_with_covariances(d):
    count = int(d["components"])
    share = Dirichlet(np.ones(count))
    z = Categorical(share, plates=d["y"].shape[:1])
    mu = Gaussian(np.zeros(3), 0.01 * np.eye(3), plates=(count,))
    tau = Wishart(4, np.eye(3), plates=(count,))
    z.initialize_from_random()
    return [mu, tau, share, z], Mixture(z, Gaussian, mu, tau)


def counts_by_group(d):
    scale = Gamma(1, 1)
    rate = Gamma(2, scale, plates=(int(d["groups"]),))
    return [rate, scale], Poisson(Take(rate, d["g"]))


def shares_by_group(d):
    p = Beta([1, 1], plates=(int(d["groups"]),))
    return [p], Bernoulli(Take(p, d["g"]))


def categories_by_group(d):
    p = Dirichlet(np.ones(int(d["categories"])), plates=(int(d["groups"]),))
    return [p], Categorical(Take(p, d["g"]))


def latent_classes(d):
    count, (people, items) = int(d["classes"]), d["y"].shape
    share = Dirichlet(np.ones(count))
    z = Categorical(share, plates=(people, 1))
    p = Beta([1, 1], plates=(items, count))
    z.initialize_from_random()
    return [p, share, z], Mixture(z, Bernoulli, p)


def topics(d):
    documents, count = int(d["documents"]), int(d["topics"])
    theta = Dirichlet(np.full(count, 0.5), plates=(documents,))
    phi = Dirichlet(np.full(500, 0.1), plates=(count,))
    z = Categorical(Take(theta, d["document"]))
    z.initialize_from_random()
    return [phi, theta, z], Mixture(z, Categorical, phi)


def factor_analysis(d):
    (times, sensors), factors = d["y"].shape, int(d["factors"])
    alpha, tau = Gamma(0.01, 0.01, plates=(factors,)), Gamma(1, 1)
    w = GaussianARD(0, alpha, shape=(factors,), plates=(1, sensors))
    x = GaussianARD(0, 1, shape=(factors,), plates=(times, 1))
    x.initialize_from_random()
    return [w, x, alpha, tau], GaussianARD(SumMultiply("i,i", x, w), tau)


def products(d):
    """The sum over factors of products of scalars, each looked up by a key."""
    tau, hidden, terms = Gamma(1, 1), [], []
    for _ in range(int(d["factors"])):
        own = [GaussianARD(0, 1, plates=(int(n),)) for n in d["sizes"]]
        for node in own:
            node.initialize_from_random()
        commas = "," * (len(own) - 1)
        taken = [Take(node, key) for node, key in zip(own, d["keys"], strict=True)]
        terms.append(SumMultiply(commas, *taken))
        hidden += own
    return [*hidden, tau], GaussianARD(Add(*terms), tau)


matrix_factorization = tensor = products


answer(lambda request: sweeps(request, globals()[request["network"]]))
