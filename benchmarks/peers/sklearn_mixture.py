"""scikit-learn's BayesianGaussianMixture: q after one iteration, and every few from there on.

Each part of the fit ends with an extra reading of the rows, which is in its time.
"""

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
    qs, seconds, watch = [standard(model)], [0.0], Stopwatch()
    model.max_iter = request["every"]
    for _ in range(request["iterations"] // request["every"]):
        model.fit(x)
        seconds.append(watch.seconds)
        qs.append(standard(model))
    np.savez(request["qs"], **{name: np.stack([q[name] for q in qs]) for name in qs[0]})
    return {"version": sklearn.__version__, "seconds": seconds}


answer(measure)
