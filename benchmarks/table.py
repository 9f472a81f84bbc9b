"""Write the results as tables into docs/performance.md.

    python benchmarks/table.py

The text between the two comments of the page is made from results/*.json; the rest is kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
FACTS = ("cpu", "cores", "memory_GB", "python", "numpy", "numba", "gcc", "svmp", "date", "load")

EXACT = ("RMSE", "NDCG")
"""Units that are shown with four decimals."""


def number(x: float | None) -> str:
    """Return a number with three significant digits."""
    if x is None:
        return ""
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:#.3g}".rstrip(".")


def figure(x: float | None, unit: str) -> str:
    if x is None:
        return ""
    return f"{x:.4f}" if unit in EXACT else f"{number(x)} {unit}"


def line(row: dict[str, Any]) -> str:
    figures = [figure(row[side], row["unit"]) for side in ("svmp", "other")]
    ratios = [number(row["ratio"]), number(row["wanted"])]
    if row["unit"] in EXACT and row["ratio"] is not None:
        ratios[0] = f"{row['ratio']:.4f}"
    cells = [row["what"], figures[0], row["against"], figures[1], *ratios, row["note"]]
    return f"| {' | '.join(cells)} |"


def section(result: dict[str, Any]) -> str:
    """Return the section of a benchmark: title, grids, rows, and machine."""
    machine = result["machine"]
    facts = ", ".join(f"{name.replace('_', ' ')} {machine[name]}" for name in FACTS)
    head = "| | svmp | against | | svmp / other | at most | |\n|---|--:|---|--:|--:|--:|---|"
    rows = "\n".join(line(row) for row in result["rows"])
    before = "".join(grid(some) for some in result.get("grids", []))
    notes = "".join(f"{note}.\n" for note in result.get("notes", []))
    title = result["title"].rstrip(".")
    return f"### {title}\n\n{before}{head}\n{rows}\n\n{notes}Measured with {facts}.\n"


def grid(some: dict[str, Any]) -> str:
    """Return a grid as a table under its title."""
    lines = [some["heads"], ["---"] + ["--:"] * (len(some["heads"]) - 1), *some["rows"]]
    return f"{some['title']}:\n\n" + "\n".join(f"| {' | '.join(x)} |" for x in lines) + "\n\n"


def main() -> None:
    results = [json.loads(p.read_text()) for p in sorted((HERE / "results").glob("*.json"))]
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    body = "\n".join(section(result) for result in results)
    PAGE.write_text(f"{before}{BEGIN}\n\n{body}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
