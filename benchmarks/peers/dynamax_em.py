"""dynamax's GaussianHMM by EM on the processor: seconds of its fastest iteration.

In double precision, as svmp computes; `fit_em` would run the same two functions in a loop.
"""

import jax
import numpy as np
from exchange import Stopwatch, answer

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

import dynamax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from dynamax.hidden_markov_model import DiagonalGaussianHMM  # noqa: E402


def measure(request):
    with np.load(request["data"]) as table:
        y = jnp.asarray(table["y"].reshape(len(table["lengths"]), -1, 1))
    model = DiagonalGaussianHMM(request["states"], emission_dim=1)
    centres = jnp.linspace(y.min(), y.max(), request["states"])[:, None]
    params, props = model.initialize(jax.random.PRNGKey(0), emission_means=centres)
    state = model.initialize_m_step_state(params, props)

    @jax.jit
    def iterate(params, state):
        found, logs = jax.vmap(lambda one: model.e_step(params, one))(y)
        params, state = model.m_step(params, props, found, state)
        return params, state, logs.sum()

    params, state, log = jax.block_until_ready(iterate(params, state))  # compiles
    times, first = [], float(log)
    for _ in range(request["iterations"]):
        watch = Stopwatch()
        params, state, log = jax.block_until_ready(iterate(params, state))
        times.append(watch.seconds)
    return {
        "version": dynamax.__version__,
        "seconds": min(times),
        "log_likelihood": [first, float(log)],
    }


answer(measure)
