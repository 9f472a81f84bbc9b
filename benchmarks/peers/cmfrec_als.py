"""cmfrec's collective matrix factorization by alternating least squares."""

from importlib.metadata import version

import cmfrec
import pandas as pd
from exchange import Stopwatch, answer, load, rmse


def measure(request):
    train, held, _ = load(request)
    table = pd.DataFrame(dict(zip(("UserId", "ItemId", "Rating"), train, strict=True)))
    model = cmfrec.CMF(
        k=request["factors"],
        lambda_=request["lambda"],
        nthreads=request["threads"],
        random_state=request["seed"],
        verbose=False,
        use_float=True,
    )
    watch = Stopwatch()
    model.fit(table)
    seconds = watch.seconds
    return {
        "version": version("cmfrec"),
        "curve": [(seconds, rmse(model.predict(*held[:2]), held[2]))],
    }


answer(measure)
