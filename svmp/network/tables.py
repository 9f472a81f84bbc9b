"""Tables of strings, for a terminal and for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Row = Sequence[str]


def text_table(heads: Row, rows: Sequence[Row]) -> str:
    """Return a table with a line for each row, and columns of equal width.

    >>> print(text_table(("name", "mean"), [("mu", "0.5"), ("sigma", "1")]))
    name   mean
    -----  ----
    mu     0.5
    sigma  1
    """
    lines = [heads, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    text = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
    text.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(line.rstrip() for line in text)


def html_table(heads: Row, rows: Sequence[Row], caption: str = "") -> str:
    """Return a table in HTML, with all text escaped.

    >>> html_table(("name",), [("a<b",)])
    '<table><thead><tr><th>name</th></tr></thead><tbody><tr><td>a&lt;b</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
