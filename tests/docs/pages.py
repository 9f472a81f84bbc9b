"""The fenced blocks of a page of documentation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(?P<language>\w+)?(?P<rest>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)
PRINTED = ("text", "mermaid")


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes
    ----------
    file
        The file with this content, from `file=...` after the language.
    line
        Line number of its first line in the page.
    printed
        The `text` or `mermaid` block directly after it: its output.
    """

    language: str
    file: str | None
    text: str
    line: int
    printed: str | None = None


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[Block]:
    source = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(source))
    result = []
    for here, after in zip_longest(found, found[1:]):
        printed = None
        if after is not None and after["language"] in PRINTED:
            between = source[here.end() : after.start()]
            printed = after["text"] if not between.strip() else None
        file = re.search(r"file=(\S+)", here["rest"])
        result.append(
            Block(
                here["language"] or "",
                file[1] if file else None,
                here["text"],
                source.count("\n", 0, here.start("text")) + 1,
                printed,
            )
        )
    return result
