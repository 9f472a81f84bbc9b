"""implicit's batch recommendations from given factors: seconds of each call."""

import implicit
import numpy as np
from exchange import Stopwatch, answer
from scipy import sparse


def measure(request):
    with np.load(request["data"]) as arrays:
        users, items, begin, seen = (arrays[x] for x in ("users", "items", "begin", "seen"))
    shape = len(users), len(items)
    events = sparse.csr_matrix((np.ones(len(seen), np.float32), seen, begin), shape=shape)
    model = implicit.als.AlternatingLeastSquares(
        factors=users.shape[1], num_threads=request["threads"]
    )
    model.user_factors, model.item_factors = users, items
    seconds = []
    for _ in range(request["repeat"]):
        watch = Stopwatch()
        model.recommend(np.arange(len(users)), events, N=request["first"])
        seconds.append(watch.seconds)
    return {"version": implicit.__version__, "seconds": seconds}


answer(measure)
