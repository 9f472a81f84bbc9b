"""Models that learn from data that arrive over time."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

from svmp.recommend.factor_model import FactorModel


class StreamingModel(FactorModel):
    """A model that can be fitted, and updated with more data."""

    @abstractmethod
    def fit(self, data: Any) -> Self:
        """Fit to data, and forget any earlier fit."""

    @abstractmethod
    def update(self, data: Any) -> Self:
        """Update a fitted model with more data."""

    def partial_fit(self, data: Any) -> Self:
        """Fit to the first data, and update with all later ones, as in scikit-learn."""
        return self.update(data) if self.is_fitted else self.fit(data)
