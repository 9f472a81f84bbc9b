"""The tables of the page; text from outside is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from svmp.study.on_paper import short
from svmp.study.outcomes import Outcome
from svmp.study.runs import fraction
from svmp.study.thresholds import ALGORITHMS, SIZES, found


def of(outcome: Outcome) -> str:
    """Return the tables of a section."""
    about = outcome.about
    match outcome.name:
        case "figure2" | "figure3":
            inner = runs(about["runs"])
            return f"<details><summary>How each run ended</summary>{inner}</details>"
        case "thresholds":
            return thresholds(about["cells"])
        case "answer":
            return answer(about)
    return claims(about["claims"])


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str, kind: str = "plain"
) -> str:
    """Return a table whose cells are HTML; a head that ends in # is that of a number column."""
    marks = [" class=number" if head.endswith("#") else "" for head in heads]

    def line(cells: Sequence[str]) -> str:
        first = f'<th scope="row">{cells[0]}</th>'
        rest = (f"<td{m}>{cell}</td>" for m, cell in zip(marks[1:], cells[1:], strict=True))
        return f"<tr>{first}{''.join(rest)}</tr>"

    top = "".join(
        f'<th scope="col"{mark}>{escape(head.rstrip("#"))}</th>'
        for head, mark in zip(heads, marks, strict=True)
    )
    said = escape(caption)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{said}">'
        f"<table class={kind}><caption>{said}</caption><thead><tr>{top}</tr></thead>"
        f"<tbody>{''.join(map(line, rows))}</tbody></table></div>"
    )


def runs(ended: list[dict[str, Any]]) -> str:
    """Return the table of how each run ended."""
    rows = [
        [
            escape(r["label"]),
            _ended(r["ending"]),
            "" if r["status"] == "diverged" else _bound(r["bound"]),
            f"{r['lowest']:,.4g}",
            f"{r['iterations']:,}",
            f"{r['accesses']:,}",
            f"{r['seconds']:.1f}",
        ]
        for r in ended
    ]
    heads = ("run", "ended", "bound#", "lowest#", "iterations#", "accesses#", "seconds#")
    return table(heads, rows, "Every run: how it ended, its last bound, and its lowest")


def thresholds(cells: list[dict[str, Any]]) -> str:
    """Return the table of the largest first steps, with all that were tried."""
    rows = []
    for cell in cells:
        tried = ", ".join(f"{rho} {end}" for rho, end in cell["tried"].items())
        rows.append(
            [
                f"{ALGORITHMS[cell['method']]} ({cell['option']})",
                f"{SIZES[cell['method']]}&nbsp;=&nbsp;{cell['size']}",
                f"<strong>{found(cell)}</strong>",
                "" if cell["paper"] is None else fraction(cell["paper"]),
                escape(tried),
            ]
        )
    heads = ("algorithm", "size", "largest first step", "the paper's", "tried")
    return table(heads, rows, "The largest first step from which each converges")


def answer(about: dict[str, Any]) -> str:
    """Return the tables of bounds, by accesses and by time, and of when each passes full VB."""
    sweeps = [f"{n} sweep{'s' * (n > 1)}#" for n in about["sweeps"]]
    seconds = [f"{s:.2g} s#" for s in about["seconds"]]
    by_accesses = "The bound after as many accesses as full VB needs for so many sweeps"
    by_seconds = "The bound after as many seconds as full VB needs for the same sweeps"
    gain = about["gain"]
    goal, end = short(gain["goal"]), f"{gain['sweeps']:.0f}"
    passed = []
    for run in about["runs"]:
        at = gain["passed"][run["name"]]
        cells = [f"{at['sweeps']:.1f}", f"{at['seconds']:.2f}"] if at else ["never", ""]
        passed.append([escape(run["label"]), *cells])
    caption = f"When each passes {goal}, where full VB is after {end} sweeps"
    return (
        table(("", *sweeps), _bounds(about["runs"], "at_accesses"), by_accesses)
        + table(("", *seconds), _bounds(about["runs"], "at_seconds"), by_seconds)
        + table(("", "sweeps' worth#", "seconds#"), passed, caption)
    )


def _bounds(ended: list[dict[str, Any]], what: str) -> list[list[str]]:
    """Return a row of bounds for each run; the best of a column is bold."""
    columns = zip(*(run[what] for run in ended), strict=True)
    best = [max((v for v in column if v is not None), default=None) for column in columns]
    rows = []
    for run in ended:
        if run["status"] == "diverged":
            cells = [_ended("diverged")] + [""] * (len(best) - 1)
        else:
            cells = [_bound(v, v == top) for v, top in zip(run[what], best, strict=True)]
        rows.append([escape(run["label"]), *cells])
    return rows


def _bound(value: float | None, best: bool = False) -> str:
    if value is None:
        return ""
    text = f"{value:,.0f}".replace("-", "−")
    return f"<span class=best>{text}</span>" if best else text


def _ended(ending: str) -> str:
    return f"<span class={'fine' if ending == 'converged' else 'lost'}>{escape(ending)}</span>"


def claims(found: list[dict[str, Any]]) -> str:
    """Return the table of claims, with verdicts and evidence."""
    rows = []
    for c in found:
        kind = c["verdict"].replace(" ", "-")
        why = f'<p class="why">{escape(c["why"])}</p>' if c["why"] else ""
        badge = f'<span class="badge {kind}">{escape(c["verdict"])}</span>'
        evidence = f"<p>{escape(c['evidence'])}</p>{why}"
        rows.append([str(c["number"]), escape(c["claim"]), badge, evidence])
    heads = ("", "the paper says", "here", "evidence")
    return table(heads, rows, "What the paper says, and what was found here", kind="claims")
