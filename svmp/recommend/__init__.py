"""From a table of ratings to recommendations, with uncertainty."""

from svmp.recommend.rating import RatingModel

__all__ = ["RatingModel"]
