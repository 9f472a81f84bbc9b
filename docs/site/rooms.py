"""The drawings of docs/architecture.md, made from the imports of the package.

    python docs/site/rooms.py        # draws them anew in the page

An arrow means "imports"; those that follow from other arrows are left out.
"""

from __future__ import annotations

import re
from pathlib import Path

import grimp

PAGE = Path(__file__).parents[1] / "architecture.md"
DRAWING = re.compile(r"<!-- imports of (\S+) -->\n```mermaid\n.*?```\n", re.S)
"""A drawing in the page, below a comment with the package whose parts it shows."""
LEFT_OUT = {"svmp", "svmp.__main__"}
"""The public names, which import from every room."""


def parts_of(graph: grimp.ImportGraph, package: str) -> dict[str, set[str]]:
    """Return for each part of a package the parts that it imports."""
    depth = package.count(".") + 1
    found: dict[str, set[str]] = {}
    inside = [m for m in graph.modules if m.startswith(f"{package}.") and m not in LEFT_OUT]
    for module in inside:
        part = module.split(".")[depth]
        found.setdefault(part, set())
        for other in graph.find_modules_directly_imported_by(module):
            if other in inside and other.split(".")[depth] != part:
                found[part].add(other.split(".")[depth])
    return found


def reachable(arrows: dict[str, set[str]], start: str) -> set[str]:
    """Return what can be reached along arrows."""
    seen: set[str] = set()
    left = [start]
    while left:
        for other in arrows.get(left.pop(), set()) - seen:
            seen.add(other)
            left.append(other)
    return seen


def reduced(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the arrows that follow from no others.

    >>> reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}
    True
    """
    beyond = {a: {c for b in arrows[a] for c in reachable(arrows, b)} for a in arrows}
    return {a: arrows[a] - beyond[a] for a in arrows}


def drawing(package: str, graph: grimp.ImportGraph | None = None) -> str:
    """Return the drawing of a package as Mermaid."""
    graph = graph or grimp.build_graph("svmp", cache_dir=None)
    arrows = reduced(parts_of(graph, package))
    lines = [f"    {a} --> {b}" for a in sorted(arrows) for b in sorted(arrows[a])]
    text = "\n".join(["flowchart TD", *lines])
    return f"<!-- imports of {package} -->\n```mermaid\n{text}\n```\n"


def drawn(page: str) -> str:
    """Return a page with its drawings made anew."""
    graph = grimp.build_graph("svmp", cache_dir=None)
    return DRAWING.sub(lambda found: drawing(found.group(1), graph), page)


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
