"""From a table of ratings or events to recommendations, with uncertainty.

Names are imported when they are first used, so that the help of a command needs no extra and is
fast. No module has the name of a function here, which it would hide.
"""

from typing import TYPE_CHECKING, Any

from svmp.errors import needing

if TYPE_CHECKING:
    from svmp.recommend import split
    from svmp.recommend.evaluation import Evaluation, evaluate
    from svmp.recommend.events import EventModel
    from svmp.recommend.factor_model import Person, Top
    from svmp.recommend.files import lock
    from svmp.recommend.fold import Explanation
    from svmp.recommend.item_table import ItemTable
    from svmp.recommend.loading import load
    from svmp.recommend.rating import RatingModel

__all__ = [
    "Evaluation",
    "EventModel",
    "Explanation",
    "ItemTable",
    "Person",
    "RatingModel",
    "Top",
    "evaluate",
    "load",
    "lock",
    "split",
]

_MODULES = {
    "Evaluation": "evaluation",
    "EventModel": "events",
    "Explanation": "fold",
    "ItemTable": "item_table",
    "Person": "factor_model",
    "RatingModel": "rating",
    "Top": "factor_model",
    "evaluate": "evaluation",
    "load": "loading",
    "lock": "files",
}
"""The file of each name."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a name when it is first used."""
        if name == "split":
            return needing("recommend", "svmp.recommend.split")
        if name not in _MODULES:
            raise AttributeError(f"module 'svmp.recommend' has no attribute {name!r}")
        module = needing("recommend", f"svmp.recommend.{_MODULES[name]}")
        found = globals()[name] = vars(module)[name]
        return found


def __dir__() -> list[str]:
    """Return all names, also those that were not used yet."""
    return sorted({*globals(), *__all__})
