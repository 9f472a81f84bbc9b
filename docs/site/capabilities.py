"""The table of families and their capabilities in CONTRIBUTING.md, made from the code.

python docs/site/capabilities.py        # writes it anew into the page
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import get_type_hints

from svmp import families
from svmp.families.family import Family

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
TABLE = re.compile(r"<!-- capabilities of families -->\n.*?<!-- end of capabilities -->\n", re.S)
"""The table in the page, with its comments."""
NOT_CAPABILITIES = ("parameters", "event_ndim")
METHODS = ("sized", "quantile", "features", "log_mean")
"""Methods that a family may leave to `Family`."""
BLANK = {
    "gaussian": "it is not a Normal distribution",
    "precision": "no Normal has such a value as its precision",
    "nominal": "values have an order",
    "simplex": "values are not probabilities that add up to 1",
    "invertible": "values are whole numbers, or have several entries",
    "counts": "values are not counts",
    "possible": "every finite number is possible",
    "sized": "values are single numbers",
    "quantile": "categories have no order",
    "features": "components of a mixture start at rows drawn at random, not at clusters of rows",
    "log_mean": "it is not a simplex",
}
"""What a blank means, by column."""


def columns() -> list[str]:
    """Return the names of all capabilities: class attributes, then methods."""
    declared = [name for name in get_type_hints(Family) if name not in NOT_CAPABILITIES]
    return [*declared, *METHODS]


def cell(family: type[Family], name: str) -> str:
    """Return what a family declares of a capability; "" for the default of `Family`."""
    value = inspect.getattr_static(family, name)
    if value is inspect.getattr_static(Family, name):
        return ""
    return value if isinstance(value, str) else "yes"


def rows() -> dict[str, list[str]]:
    """Return the cells of each family."""
    return {
        name: [cell(getattr(families, name), column) for column in columns()]
        for name in families.__all__
    }


def table() -> str:
    """Return the table, and what a blank means in each column."""
    cells = rows()
    lines = [
        "| family | " + " | ".join(f"`{name}`" for name in columns()) + " |",
        "|---" * (len(columns()) + 1) + "|",
        *(f"| `{name}` | " + " | ".join(row) + " |" for name, row in cells.items()),
    ]
    lines = [re.sub(r" +", " ", line) for line in lines]
    complete = [all(column) for column in zip(*cells.values(), strict=True)]
    blank = [name for name, full in zip(columns(), complete, strict=True) if not full]
    reasons = [f"- `{name}`: {BLANK[name]}." for name in blank]
    body = "\n\n".join(["\n".join(lines), "A blank means:", "\n".join(reasons)])
    return f"<!-- capabilities of families -->\n\n{body}\n\n<!-- end of capabilities -->\n"


def written(page: str) -> str:
    """Return a page with its table made anew."""
    return TABLE.sub(lambda _: table(), page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
