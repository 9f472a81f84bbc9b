"""myFM's factorization machine, variational or by Gibbs: (seconds, held-out RMSE) by iteration."""

import myfm
import numpy as np
from exchange import Stopwatch, answer, load, rmse
from scipy import sparse


def one_hot(user, item, users, items):
    rows, ones = np.arange(len(user)), np.ones(len(user))
    parts = [
        sparse.csr_matrix((ones, (rows, key)), shape=(len(user), size))
        for key, size in ((user, users), (item, items))
    ]
    return sparse.hstack(parts, format="csr")


def measure(request):
    train, held, sizes = load(request)
    X, X_held = one_hot(*train[:2], *sizes), one_hot(*held[:2], *sizes)
    variational = request["solver"] == "variational"
    kind = myfm.VariationalFMRegressor if variational else myfm.MyFMGibbsRegressor
    machine = kind(rank=request["factors"], random_seed=request["seed"])
    total, curve = np.zeros(len(held[2])), []

    def look(i, fm, hyper, history):
        def error():
            score = np.asarray(fm.predict_score(X_held, []))
            if variational:
                return rmse(score, held[2])
            total[:] += score if i >= request["burnin"] else 0
            return rmse(total / max(i - request["burnin"] + 1, 1), held[2])

        curve.append((watch.seconds, watch.pause(error)))
        return False, None

    watch = Stopwatch()
    machine.fit(
        X,
        train[2],
        group_shapes=sizes,
        n_iter=request["iterations"],
        callback=look,
        **({} if variational else {"n_kept_samples": 1}),
    )
    return {"version": myfm.__version__, "curve": curve}


answer(measure)
