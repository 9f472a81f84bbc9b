"""From a table of ratings or events to recommendations, with uncertainty."""

from svmp.recommend import split
from svmp.recommend.evaluate import Evaluation, evaluate
from svmp.recommend.events import EventModel
from svmp.recommend.factor_model import Person, Top
from svmp.recommend.files import lock
from svmp.recommend.fold import Explanation
from svmp.recommend.load import load
from svmp.recommend.rating import RatingModel

__all__ = [
    "Evaluation",
    "EventModel",
    "Explanation",
    "Person",
    "RatingModel",
    "Top",
    "evaluate",
    "load",
    "lock",
    "split",
]
