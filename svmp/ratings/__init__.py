"""Tables of ratings, from files and from memory."""

from svmp.ratings.read import read_ratings
from svmp.ratings.table import Ratings

__all__ = ["Ratings", "read_ratings"]
