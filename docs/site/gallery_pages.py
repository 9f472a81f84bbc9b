"""Pages of the gallery: a script's docstring as text, its figure, what it prints, and its code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

FORMULA = re.compile(r"(?:^ {4}.*\n(?:\n(?= {4}))?)+", re.M)


def title(script: str, gallery: str) -> str:
    """Return the heading of the gallery's page under which a script is linked."""
    before = gallery.split(f"({script})")[0]
    headings = re.findall(r"^##+ (.*)$", before, re.M)
    return str(headings[-1])


def script_page(path: Path, heading: str, figure: bool, printed: str = "") -> str:
    """Return the page of one script, in Markdown, with its output if it is known."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    docstring = ast.get_docstring(module) or ""
    code = next((s.lineno for s in module.body[1:]), 1)  # the docstring is shown as text
    first, _, rest = docstring.partition("\n\n")
    text = FORMULA.sub(lambda f: f"```text\n{_dedented(f[0])}\n```\n", rest + "\n")
    picture = f"![{heading}](figures/{path.stem}.png)" if figure else "*The figure was not drawn.*"
    lines = [line for line in printed.strip().splitlines() if not line.startswith("figure: ")]
    output = ["It prints\n\n```text", *lines, "```"] if lines else []
    return "\n\n".join(
        [
            f"# {heading}",
            first.replace("\n", " "),
            text.strip(),
            picture,
            "\n".join(output),
            f"The script, {{download}}`{path.name}`:",
            f"```{{literalinclude}} {path.name}\n:language: python\n:lines: {code}-\n```\n",
        ]
    )


def _dedented(block: str) -> str:
    return "\n".join(line[4:] for line in block.strip("\n").splitlines())
