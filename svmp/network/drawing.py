"""Drawings of a network with its plates: Graphviz and Mermaid text, SVG if `dot` is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from html import escape

from svmp.errors import SvmpError
from svmp.network.variable import Variable
from svmp.writing import as_path, check_picture, written_beside


@dataclass(frozen=True)
class Drawing:
    """A drawing of a model; notebooks show it as SVG if Graphviz is installed.

    Attributes
    ----------
    mermaid
        Mermaid text, which many web pages and editors render.
    dot
        Graphviz text.
    """

    mermaid: str
    dot: str

    def svg(self) -> str:
        """Render with Graphviz."""
        program = shutil.which("dot")
        if program is None:
            raise SvmpError(
                "Graphviz' program `dot` is not installed, so no SVG can be drawn; "
                "the Mermaid text in `.mermaid` needs no program"
            )
        run = subprocess.run(
            [program, "-Tsvg"], input=self.dot, capture_output=True, text=True, check=False
        )
        if run.returncode:
            raise SvmpError(f"Graphviz could not draw the model: {run.stderr.strip()}")
        return run.stdout

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file: .svg by Graphviz, .dot or .gv as Graphviz text, .mmd or .md as Mermaid."""
        target = as_path(path)
        match target.suffix:
            case ".svg":
                text = self.svg()
            case ".dot" | ".gv":
                text = self.dot
            case ".mmd":
                text = self.mermaid
            case ".md":
                text = f"```mermaid\n{self.mermaid}\n```\n"
            case other:
                raise SvmpError(f"cannot draw to '{other}'; use .svg, .dot, .gv, .mmd or .md")
        check_picture(target, (target.suffix,))
        with written_beside(target) as draft:
            draft.write_text(text, encoding="utf-8")

    def _repr_svg_(self) -> str | None:
        return self.svg() if shutil.which("dot") else None

    def _repr_markdown_(self) -> str:
        return f"```mermaid\n{self.mermaid}\n```"

    def __str__(self) -> str:
        return self.mermaid


def draw(variables: list[Variable]) -> Drawing:
    """Draw a network: one node per variable, shaded if observed, in one box per plate."""
    number = {v.name: f"v{i}" for i, v in enumerate(variables)}
    plates: dict[tuple[str, ...], list[Variable]] = {}
    for variable in variables:
        plates.setdefault(variable.plate.labels, []).append(variable)
    arrows = [
        (number[parent.name], number[v.name])
        for v in variables
        for parent in v.conditional.parents()
    ]
    return Drawing(_mermaid(plates, number, arrows), _dot(plates, number, arrows))


_MERMAID = str.maketrans(
    {**{c: f"#{ord(c)};" for c in "#&'`\\"}, '"': "#quot;", "<": "#lt;", ">": "#gt;"}
)
"""Characters that would end a label or start an entity in Mermaid."""


def _html(text: str) -> str:
    """Escape for labels of Graphviz, where a backslash starts an escape too."""
    return escape(text).replace("\\", "&#92;")


Plates = dict[tuple[str, ...], list[Variable]]


def _title(variable: Variable) -> str:
    plate = variable.plate
    return " x ".join(f"{n} {s:,}" for n, s in zip(plate.labels, plate.shape, strict=True))


def _mermaid(plates: Plates, number: dict[str, str], arrows: list[tuple[str, str]]) -> str:
    lines = ["flowchart TD"]
    for index, (labels, members) in enumerate(plates.items()):
        nodes = []
        for v in members:
            text = f'"{v.name.translate(_MERMAID)} ~ {v.conditional.title}"'
            nodes.append(f"{number[v.name]}{f'({text})' if v.hidden else f'[{text}]'}")
        if labels:
            lines.append(f'  subgraph p{index}["{_title(members[0]).translate(_MERMAID)}"]')
            lines += [f"    {node}" for node in nodes]
            lines.append("  end")
        else:
            lines += [f"  {node}" for node in nodes]
    lines += [f"  {parent} --> {child}" for parent, child in arrows]
    shaded = [number[v.name] for members in plates.values() for v in members if not v.hidden]
    if shaded:
        lines.append("  classDef observed fill:#cfd8e3,stroke:#333")
        lines.append(f"  class {','.join(shaded)} observed")
    return "\n".join(lines)


def _dot(plates: Plates, number: dict[str, str], arrows: list[tuple[str, str]]) -> str:
    lines = ["digraph model {", '  node [fontname="Helvetica"]; graph [fontname="Helvetica"];']
    for index, (labels, members) in enumerate(plates.items()):
        nodes = []
        for v in members:
            fill = "" if v.hidden else ' style="filled" fillcolor="#cfd8e3"'
            label = f"{_html(v.name)}<br/><i>{v.conditional.title}</i>"
            nodes.append(f"{number[v.name]} [label=<{label}>{fill}];")
        if labels:
            lines.append(f"  subgraph cluster_{index} {{")
            title = f"label=<{_html(_title(members[0]))}>"
            lines.append(f"    {title}; labeljust=r; labelloc=b; style=rounded;")
            lines += [f"    {node}" for node in nodes]
            lines.append("  }")
        else:
            lines += [f"  {node}" for node in nodes]
    lines += [f"  {parent} -> {child};" for parent, child in arrows]
    lines.append("}")
    return "\n".join(lines)
