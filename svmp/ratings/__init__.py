"""Tables of ratings, from files and from memory."""

from svmp.ratings.read import read_ratings
from svmp.ratings.table import Ratings
from svmp.ratings.write_parts import partition

__all__ = ["Ratings", "partition", "read_ratings"]
