"""Hierarchical Poisson factorization, by hpfrec."""

from importlib.metadata import version

import hpfrec
import pandas as pd
from exchange import Stopwatch, answer, best, load, tested
from scipy import sparse


def measure(request):
    (user, item, rating), _, sizes = load(request)
    table = pd.DataFrame({"UserId": user, "ItemId": item, "Count": rating})
    model = hpfrec.HPF(
        k=request["factors"],
        reindex=True,
        verbose=False,
        ncores=request["threads"],
        random_seed=request["seed"] + 1,
    )
    watch = Stopwatch()
    model.fit(table)
    seconds = watch.seconds
    place = pd.Series(range(sizes[1]))
    items = pd.Index(model.item_mapping_).get_indexer(place)
    users = pd.Index(model.user_mapping_).get_indexer(range(sizes[0]))

    def scores(some):
        found = model.Theta[users[some]] @ model.Beta[items].T
        found[:, items < 0] = 0
        return found

    events = sparse.csr_matrix((rating, (user, item)), shape=sizes)
    top = best(scores, tested(request), events, request["first"])
    return {"version": version("hpfrec"), "seconds": seconds, "top": top}


answer(measure)
