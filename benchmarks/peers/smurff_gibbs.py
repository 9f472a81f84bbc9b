"""SMURFF's Bayesian matrix factorization by Gibbs sampling: (seconds, held-out RMSE) by sample."""

import smurff
from exchange import Stopwatch, answer, load
from scipy import sparse


def measure(request):
    train, held, sizes = load(request)
    mean = train[2].mean()

    def matrix(user, item, rating):
        return sparse.coo_matrix((rating - mean, (user, item)), shape=sizes)

    session = smurff.TrainSession(
        priors=["normal", "normal"],
        num_latent=request["factors"],
        num_threads=request["threads"],
        burnin=request["burnin"],
        nsamples=request["samples"],
        seed=request["seed"],
        verbose=0,
    )
    session.addTrainAndTest(matrix(*train), matrix(*held), smurff.SampledNoise(1.0))
    watch, curve = Stopwatch(), []
    session.init()
    while (status := session.step()) is not None:
        curve.append((watch.seconds, min(status.rmse_avg, status.rmse_1sample)))
    return {"version": smurff.version, "curve": curve}


answer(measure)
