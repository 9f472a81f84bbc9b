"""Mermaid flowcharts of the pages as drawings by Graphviz, so that the site loads no scripts.

The part of the language that the pages use: nodes in round or square brackets, boxes around them
(`subgraph`), arrows, and classes that fill a node. Anything else stays a block of text.
"""

from __future__ import annotations

import re

FLOWCHART = re.compile(r"^```mermaid\nflowchart TD\n(?P<lines>.*?)^```$", re.M | re.S)
BOX = re.compile(r'subgraph (\w+)\["([^"]*)"\]')
NODE = re.compile(r'(\w+)(\(|\[)"([^"]*)"[)\]]')
ARROW = re.compile(r"(\w+) --> (\w+)")
FILLED = re.compile(r"classDef (\w+) fill:(#\w+).*")
MEMBER = re.compile(r"class ([\w,]+) (\w+)")
# Readable on a light page and on a dark one: nodes are filled, and lines are grey.
STYLE = (
    'bgcolor="transparent"; edge [color="#888888"]; node [fontname="sans-serif", fontsize=11, '
    'height=0.3, style=filled, fillcolor="white", color="#888888"]; '
)
BOX_STYLE = (
    'style="rounded"; color="#888888"; fontcolor="#888888"; fontname="sans-serif"; fontsize=10; '
    "labeljust=l"
)


def dot(lines: str) -> str | None:
    """Return the drawing in Graphviz's language, or None if a line is not understood."""
    out: list[str] = []
    fills: dict[str, str] = {}
    for line in filter(None, map(str.strip, lines.splitlines())):
        if box := BOX.fullmatch(line):
            out.append(f'subgraph cluster_{box[1]} {{ label="{box[2]}"; {BOX_STYLE};')
        elif node := NODE.fullmatch(line):
            shape = "ellipse" if node[2] == "(" else "box"
            out.append(f'{node[1]} [label="{node[3]}", shape={shape}];')
        elif arrow := ARROW.fullmatch(line):
            out.append(f"{arrow[1]} -> {arrow[2]};")
        elif fill := FILLED.fullmatch(line):
            fills[fill[1]] = fill[2]
        elif member := MEMBER.fullmatch(line):
            colour = fills.get(member[2], "white")
            names = member[1].split(",")
            out += [f'{name} [fillcolor="{colour}"];' for name in names]
        elif line == "end":
            out.append("}")
        else:
            return None
    return "digraph { " + STYLE + "\n  " + "\n  ".join(out) + "\n}"


def drawn(text: str) -> str:
    """Return a page with its flowcharts as Graphviz directives."""

    def directive(chart: re.Match[str]) -> str:
        drawing = dot(chart["lines"])
        return chart[0] if drawing is None else f"```{{graphviz}}\n{drawing}\n```"

    return plain(FLOWCHART.sub(directive, text))


def plain(text: str) -> str:
    """Return a page with its flowcharts as text, where they cannot be drawn."""
    return text.replace("```mermaid\n", "```text\n")
