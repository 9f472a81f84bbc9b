"""LIBMF's parallel stochastic gradient descent."""

from importlib.metadata import version

import numpy as np
from exchange import Stopwatch, answer, load, rmse
from libmf import mf


def measure(request):
    train, held, _ = load(request)
    mean = train[2].mean()
    table = np.column_stack([*train[:2], train[2] - mean]).astype(np.float32)
    model = mf.MF(
        k=request["factors"],
        nr_threads=request["threads"],
        nr_iters=request["iterations"],
        lambda_p1=0.0,
        lambda_q1=0.0,
        lambda_p2=request["lambda"],
        lambda_q2=request["lambda"],
        quiet=True,
    )
    watch = Stopwatch()
    model.fit(table)
    seconds = watch.seconds
    prediction = mean + model.predict(np.asfortranarray(np.column_stack(held[:2]), np.float32))
    return {"version": version("libmf"), "curve": [(seconds, rmse(prediction, held[2]))]}


answer(measure)
