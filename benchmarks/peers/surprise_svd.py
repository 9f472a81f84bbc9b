"""Surprise's SVD: biases and factors by stochastic gradient descent."""

import numpy as np
import surprise
from exchange import Stopwatch, answer, load, rmse


def measure(request):
    train, held, _ = load(request)
    rows = [(u, i, r, None) for u, i, r in zip(*(x.tolist() for x in train), strict=True)]
    data = surprise.Dataset(
        surprise.Reader(rating_scale=(float(train[2].min()), float(train[2].max())))
    )
    data = data.construct_trainset(rows)
    model = surprise.SVD(
        n_factors=request["factors"],
        n_epochs=request["iterations"],
        lr_all=request["rate"],
        reg_all=request["lambda"],
        random_state=request["seed"],
    )
    watch = Stopwatch()
    model.fit(data)
    seconds = watch.seconds
    guess = [model.predict(u, i).est for u, i in zip(*(x.tolist() for x in held[:2]), strict=True)]
    return {"version": surprise.__version__, "curve": [(seconds, rmse(np.array(guess), held[2]))]}


answer(measure)
