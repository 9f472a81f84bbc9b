"""BayesPy's VMP on the networks of more_networks.py, by name; as in bayespy_everyday.py."""

import numpy as np
from bayespy.nodes import (
    Add,
    Bernoulli,
    Beta,
    Categorical,
    CategoricalMarkovChain,
    Dirichlet,
    Gamma,
    Gaussian,
    GaussianARD,
    GaussianMarkovChain,
    Mixture,
    Multinomial,
    Poisson,
    SumMultiply,
    Take,
    Wishart,
)
from exchange import answer, sweeps


def outcomes_alike(d):
    plates = (1, d["y"].shape[1])
    w = GaussianARD(0, 0.01, shape=d["x"].shape[1:], plates=plates)
    tau = Gamma(1, 1, plates=plates)
    return [w, tau], GaussianARD(SumMultiply("i,i", w, d["x"][:, None, :]), tau)


def outcomes_correlated(d):
    size = d["y"].shape[1]
    w = [GaussianARD(0, 0.01, shape=(size,)) for _ in d["x"].T]
    tau = Wishart(size + 1, size * np.eye(size))
    terms = [SumMultiply(",i->i", x, a) for x, a in zip(d["x"].T, w, strict=True)]
    return [*w, tau], Gaussian(Add(*terms), tau)


def mixture_of_counts(d):
    count = int(d["components"])
    share, rate = Dirichlet(np.ones(count)), Gamma(1, 0.1, plates=(count,))
    z = Categorical(share, plates=d["y"].shape)
    z.initialize_from_random()
    return [rate, share, z], Mixture(z, Poisson, rate)


def mixture_of_answers(d):
    count, (people, items) = int(d["components"]), d["y"].shape
    share, p = Dirichlet(np.ones(count)), Beta([1, 1], plates=(items, count))
    z = Categorical(share, plates=(people, 1))
    z.initialize_from_random()
    return [p, share, z], Mixture(z, Bernoulli, p)


def principal_components(d):
    (times, sensors), factors = d["y"].shape, int(d["factors"])
    alpha, tau = Gamma(0.01, 0.01, plates=(factors,)), Gamma(1, 1)
    w = GaussianARD(0, alpha, shape=(factors,), plates=(1, sensors))
    x = GaussianARD(0, 1, shape=(factors,), plates=(times, 1))
    x.initialize_from_random()
    return [w, x, alpha, tau], GaussianARD(SumMultiply("i,i", x, w), tau)


def short_chain(d):
    count = int(d["states"])
    first, move = Dirichlet(np.ones(count)), Dirichlet(np.ones(count), plates=(count,))
    z = CategoricalMarkovChain(first, move, states=len(d["y"]))
    p = Dirichlet(np.ones(12), plates=(count,))
    p.initialize_from_random()
    return [z, p, first, move], Mixture(z, Categorical, p)


def few_robust(d):
    mu, u = GaussianARD(0, 0.01), Gamma(2, 2, plates=d["y"].shape)
    return [u, mu], GaussianARD(mu, u)


def categories(d):
    p = Dirichlet(np.ones(5))
    return [p], Categorical(p, plates=d["y"].shape)


def few_groups(d):
    b = GaussianARD(0, 1, plates=(int(d["groups"]),))
    return [b], GaussianARD(Take(b, d["g"]), 1)


def few_counts(d):
    count, (rows, words) = int(d["components"]), d["y"].shape
    share, p = Dirichlet(np.ones(count)), Dirichlet(np.ones(words), plates=(count,))
    z = Categorical(share, plates=(rows,))
    z.initialize_from_random()
    return [p, share, z], Mixture(z, Multinomial, 20, p)


def short_states(d):
    (sensors, times), size = d["y"].shape, int(d["size"])
    alpha, tau = Gamma(0.01, 0.01, plates=(size,)), Gamma(1, 1)
    a = GaussianARD(0, alpha, shape=(size,), plates=(size,))
    a.initialize_from_value(0.9 * np.eye(size))
    x = GaussianMarkovChain(np.zeros(size), 0.1 * np.eye(size), a, np.ones(size), n=times)
    c = GaussianARD(0, 1, shape=(size,), plates=(sensors, 1))
    c.initialize_from_random()
    return [x, c, a, alpha, tau], GaussianARD(SumMultiply("i,i", c, x), tau)


def process_on_grid(d):
    series, times = d["y"].shape
    f, tau = Gaussian(np.zeros(times), d["precision"]), Gamma(1, 1)
    return [f, tau], GaussianARD(f, tau, ndim=1, plates=(series,))


def whole_tensor(d):
    (first, second, third), factors = d["y"].shape, int(d["factors"])
    plates = [(first, 1, 1), (second, 1), (third,)]
    x = [GaussianARD(0, 1, shape=(factors,), plates=p) for p in plates]
    for part in x:
        part.initialize_from_random()
    tau = Gamma(1, 1)
    return [*x, tau], GaussianARD(SumMultiply("i,i,i", *x), tau)


def autoregression(d):
    size = d["y"].shape[1]
    alpha, tau = Gamma(0.01, 0.01, plates=(size,)), Gamma(1, 1, plates=(size,))
    a = GaussianARD(0, alpha, shape=(size,), plates=(1, size))
    return [a, alpha, tau], GaussianARD(SumMultiply("i,i", a, d["x"][:, None]), tau)


def known_errors(d):
    m = GaussianARD(0, 0.01)
    return [m], GaussianARD(m, d["precision"])


answer(lambda request: sweeps(request, globals()[request["network"]]))
