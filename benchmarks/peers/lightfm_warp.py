"""LightFM with the WARP loss, as lightfm-next builds it."""

from importlib.metadata import version

from exchange import Stopwatch, answer, best, load, tested
from lightfm import LightFM
from scipy import sparse


def measure(request):
    (user, item, rating), _, sizes = load(request)
    model = LightFM(
        no_components=request["factors"],
        loss="warp",
        learning_rate=request["rate"],
        random_state=request["seed"],
    )
    watch = Stopwatch()
    events = sparse.coo_matrix((rating, (user, item)), shape=sizes)
    model.fit(events, epochs=request["epochs"], num_threads=request["threads"])
    seconds = watch.seconds

    def scores(users):
        return model.user_embeddings[users] @ model.item_embeddings.T + model.item_biases

    top = best(scores, tested(request), events.tocsr(), request["first"])
    return {"version": version("lightfm-next"), "seconds": seconds, "top": top}


answer(measure)
