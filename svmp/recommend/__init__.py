"""From a table of ratings or events to recommendations, with uncertainty."""

from svmp.recommend.events import EventModel
from svmp.recommend.rating import RatingModel

__all__ = ["EventModel", "RatingModel"]
