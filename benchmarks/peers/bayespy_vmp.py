"""BayesPy's VMP on the paper's matrix factorization: seconds of each sweep, and the last bound.

q either factorises over all scalars, as svmp's Normal (K nodes a side), or has a covariance for
each user and item, as svmp's MvNormal (one node a side).
"""

import time

import numpy as np
from bayespy.nodes import Add, GaussianARD, SumMultiply, Take
from exchange import answer


def factorised(user, item, means):
    u, v = ([GaussianARD(0, 1, plates=(len(m),)) for _ in m.T] for m in means)
    for side, mean in zip((u, v), means, strict=True):
        for k, node in enumerate(side):
            node.initialize_from_parameters(mean[:, k], 1.0)
    pairs = zip(u, v, strict=True)
    terms = [SumMultiply(",", Take(a, user), Take(b, item)) for a, b in pairs]
    return [*u, *v], Add(*terms)


def vectors(user, item, means):
    u, v = (GaussianARD(0, 1, shape=m.shape[1:], plates=m.shape[:1]) for m in means)
    for node, mean in zip((u, v), means, strict=True):
        node.initialize_from_parameters(mean, np.ones_like(mean))
    return [u, v], SumMultiply("i,i", Take(u, user), Take(v, item))


def measure(request):
    with np.load(request["data"]) as table:
        user, item, rating, *means = (table[x] for x in ("user", "item", "rating", "u", "v"))
    form = vectors if request["vectors"] else factorised
    hidden, mean = form(user, item, means)
    node = GaussianARD(mean, 1)
    node.observe(rating)
    seconds = []
    for _ in range(request["sweeps"]):
        began = time.perf_counter()
        for factor in hidden:
            factor.update()
        seconds.append(time.perf_counter() - began)
    bound = sum(float(x.lower_bound_contribution()) for x in (*hidden, node))
    return {"seconds": min(seconds), "bound": bound}


answer(measure)
