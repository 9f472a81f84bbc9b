"""From a table of ratings to recommendations, with uncertainty."""

from svmp.recommend import split
from svmp.recommend.evaluate import Evaluation, evaluate
from svmp.recommend.factors import Person, Top
from svmp.recommend.fold import Explanation
from svmp.recommend.rating import RatingModel

__all__ = ["Evaluation", "Explanation", "Person", "RatingModel", "Top", "evaluate", "split"]
