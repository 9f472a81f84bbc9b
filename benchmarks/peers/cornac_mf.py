"""Cornac's matrix factorization with biases, by stochastic gradient descent."""

import cornac
import numpy as np
from exchange import Stopwatch, answer, load, rmse


def measure(request):
    train, held, _ = load(request)
    rows = list(zip(*(x.tolist() for x in train), strict=True))
    data = cornac.data.Dataset.from_uir(rows, seed=request["seed"])
    model = cornac.models.MF(
        k=request["factors"],
        max_iter=request["iterations"],
        learning_rate=request["rate"],
        lambda_reg=request["lambda"],
        num_threads=request["threads"],
        seed=request["seed"],
    )
    watch = Stopwatch()
    model.fit(data)
    seconds = watch.seconds
    return {
        "version": cornac.__version__,
        "curve": [(seconds, rmse(predict(model, data, *held[:2]), held[2]))],
    }


def predict(model, data, user, item):
    """Score pairs; Cornac numbers users and items anew, and 0 stands for those it has not seen."""
    places = ((data.uid_map, user), (data.iid_map, item))
    u, i = (np.array([known.get(x, -1) for x in keys.tolist()]) for known, keys in places)
    dot = np.einsum("rk,rk->r", model.u_factors[u], model.i_factors[i])
    score = model.global_mean + np.where(u < 0, 0, model.u_biases[u])
    return score + np.where(i < 0, 0, model.i_biases[i]) + np.where((u < 0) | (i < 0), 0, dot)


answer(measure)
