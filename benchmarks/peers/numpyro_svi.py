"""NumPyro's SVI with AutoNormal on the paper's matrix factorization: (seconds, exact bound).

All ratings are in every step, with Adam, as in NumPyro's own examples.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from exchange import Stopwatch, answer
from numpyro import distributions as dist
from numpyro.infer import SVI, TraceMeanField_ELBO, init_to_value
from numpyro.infer.autoguide import AutoNormal
from numpyro.optim import Adam


def exact_bound(q, user, item, rating):
    """E[log p(r | u, v)] - KL(q(u) || p) - KL(q(v) || p), in closed form."""
    (mu, su), (mv, sv) = q
    squares = (rating - np.einsum("rk,rk->r", mu[user], mv[item])) ** 2
    squares += np.einsum("rk,rk->r", (mu**2 + su**2)[user], (mv**2 + sv**2)[item])
    squares -= np.einsum("rk,rk->r", (mu**2)[user], (mv**2)[item])
    divergence = sum(0.5 * np.sum(m**2 + s**2 - 1 - 2 * np.log(s)) for m, s in q)
    return float(-0.5 * (squares.sum() + len(rating) * np.log(2 * np.pi)) - divergence)


def measure(request):
    with np.load(request["data"]) as table:
        data = tuple(table[x] for x in ("user", "item", "rating"))
        start = {x: jnp.asarray(table[x]) for x in "uv"}

    def model(user, item, rating):
        u, v = (
            numpyro.sample(name, dist.Normal(0, 1).expand(mean.shape).to_event(2))
            for name, mean in start.items()
        )
        mean = jnp.sum(u[user] * v[item], axis=1)
        numpyro.sample("r", dist.Normal(mean, 1).to_event(1), obs=rating)

    guide = AutoNormal(model, init_loc_fn=init_to_value(values=start), init_scale=0.3)
    svi = SVI(model, guide, Adam(request["rate"]), TraceMeanField_ELBO())
    table = tuple(jnp.asarray(x) for x in data)
    state = svi.init(jax.random.PRNGKey(request["seed"]), *table)

    @jax.jit
    def several(state, *table):
        return jax.lax.fori_loop(0, request["every"], lambda i, s: svi.update(s, *table)[0], state)

    def bound(state):
        params = svi.get_params(state)
        q = [
            [np.asarray(params[f"{x}_auto_{kind}"], np.float64) for kind in ("loc", "scale")]
            for x in "uv"
        ]
        return exact_bound(q, *data)

    jax.block_until_ready(several(state, *table))  # compiles
    curve, watch = [], Stopwatch()
    for _ in range(request["steps"] // request["every"]):
        state = jax.block_until_ready(several(state, *table))
        curve.append((watch.seconds, watch.pause(bound, state)))
    return {"version": numpyro.__version__, "curve": curve}


answer(measure)
