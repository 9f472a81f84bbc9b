"""Ready declarations of common networks, and estimators with the conventions of scikit-learn.

The estimators are imported when they are first used; they need scikit-learn, which
`pip install "svmp[sklearn]"` installs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from svmp.errors import ModelError
from svmp.models.factorization import (
    GammaPrior,
    NormalPrior,
    UserItemPairs,
    UserNoise,
    matrix_factorization,
)

if TYPE_CHECKING:
    from svmp.models.estimators.factor_analysis import FactorAnalysis
    from svmp.models.estimators.gaussian_mixture import GaussianMixture
    from svmp.models.estimators.logistic import LogisticRegression
    from svmp.models.estimators.mixed_effects import MixedEffects
    from svmp.models.estimators.regression import BayesianRegression
    from svmp.models.estimators.topics import TopicModel

__all__ = [
    "BayesianRegression",
    "FactorAnalysis",
    "GammaPrior",
    "GaussianMixture",
    "LogisticRegression",
    "MixedEffects",
    "NormalPrior",
    "TopicModel",
    "UserItemPairs",
    "UserNoise",
    "matrix_factorization",
]

_ESTIMATORS = {
    "BayesianRegression": "regression",
    "FactorAnalysis": "factor_analysis",
    "GaussianMixture": "gaussian_mixture",
    "LogisticRegression": "logistic",
    "MixedEffects": "mixed_effects",
    "TopicModel": "topics",
}
"""The file of each estimator."""


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        raise AttributeError(f"module 'svmp.models' has no attribute {name!r}")
    try:
        module = import_module(f"svmp.models.estimators.{_ESTIMATORS[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "sklearn":
            raise
        raise ModelError(
            f'svmp.models.{name} needs scikit-learn: pip install "svmp[sklearn]"'
        ) from None
    return getattr(module, name)
