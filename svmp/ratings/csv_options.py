"""Options of `polars.read_csv` that depend on the version of Polars."""

from __future__ import annotations

from typing import Any

import polars as pl

SHORT_FIRST_LINE: dict[str, Any] = (
    {"missing_columns": "insert"} if int(pl.__version__.split(".")[0]) >= 2 else {}
)
"""Fields that the first line lacks are null, as they are by default before Polars 2."""
