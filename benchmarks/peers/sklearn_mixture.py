"""scikit-learn's BayesianGaussianMixture, timed from the q that it has after one iteration."""

import warnings

import numpy as np
import sklearn
from exchange import Stopwatch, answer
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture


def standard(model):
    """q, in the parameters of its Dirichlet, Normals and Wisharts."""
    nu = model.degrees_of_freedom_
    return {
        "a": model.weight_concentration_,
        "mu": model.means_,
        "tau": model.mean_precision_[:, None, None] * model.precisions_,
        "nu": nu,
        "V": model.precisions_ / nu[:, None, None],
    }


def measure(request):
    x = np.load(request["data"])["x"]
    width = x.shape[1]
    model = BayesianGaussianMixture(
        n_components=request["components"],
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=request["a"],
        mean_precision_prior=request["beta"],
        mean_prior=np.zeros(width),
        degrees_of_freedom_prior=request["nu"],
        covariance_prior=np.eye(width),
        init_params="k-means++",
        random_state=request["seed"],
        reg_covar=0,
        warm_start=True,
        max_iter=1,
    )
    warnings.simplefilter("ignore", ConvergenceWarning)
    model.fit(x)
    np.savez(request["first"], **standard(model))
    model.max_iter = request["iterations"]
    watch = Stopwatch()
    model.fit(x)
    seconds = watch.seconds
    np.savez(request["last"], **standard(model))
    return {"version": sklearn.__version__, "seconds": seconds, "iterations": int(model.n_iter_)}


answer(measure)
