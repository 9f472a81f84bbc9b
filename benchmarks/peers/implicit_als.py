"""implicit's alternating least squares."""

import implicit
from exchange import Stopwatch, answer, load, tested
from scipy import sparse


def measure(request):
    (user, item, rating), _, sizes = load(request)
    events = sparse.csr_matrix((rating, (user, item)), shape=sizes)
    model = implicit.als.AlternatingLeastSquares(
        factors=request["factors"],
        alpha=request["alpha"],
        regularization=request["lambda"],
        iterations=request["iterations"],
        num_threads=request["threads"],
        random_state=request["seed"],
    )
    watch = Stopwatch()
    model.fit(events, show_progress=False)
    seconds = watch.seconds
    users = tested(request)
    top, _ = model.recommend(users, events[users], N=request["first"])
    return {"version": implicit.__version__, "seconds": seconds, "top": top.tolist()}


answer(measure)
