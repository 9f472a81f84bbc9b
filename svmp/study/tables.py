"""What the page says in words and tables; every text that comes from outside is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from svmp.study.on_paper import short
from svmp.study.outcomes import Outcome
from svmp.study.runs import fraction
from svmp.study.thresholds import METHODS, SIZES

PAPER = (
    "A step of unit length along a natural gradient is well scaled when the gradient is exact. When "
    "each variable reads only a few of its children the same steps overshoot, and a run can diverge "
    "beyond recovery. It takes much smaller first steps, and how small is not known beforehand."
)


def heading(outcome: Outcome) -> tuple[str, str]:
    """Return the title of a section, and what it is about."""
    match outcome.name:
        case "figure2":
            return "Few children, and the bound falls away", (
                "Algorithm 1 updates each variable from at most C of its children. The fewer it "
                "reads, the noisier the update, and the sooner steps that start at 1 lead astray."
            )
        case "figure3":
            return "One batch for all variables", (
                "Algorithm 2 draws C_global ratings in each iteration, and updates only what has a "
                "child among them. Seen at once, it converges slowly; all together, it overshoots."
            )
        case "thresholds":
            return "How small the first step must be", (
                "Halve the first step until the run converges. Where that is depends on the "
                "algorithm, on the option and on how many children are read."
            )
        case "answer":
            return "What became of the open question", (
                "Every step policy of svmp against full VB, from the same start. The hand-tuned "
                "runs are the best, afterwards, of all that were tried above."
            )
    return "The paper's claims, one by one", (
        "Each verdict is worked out from the runs above, or from a check on a small network."
    )


def of(outcome: Outcome) -> str:
    """Return the tables of a section."""
    about = outcome.about
    match outcome.name:
        case "figure2" | "figure3":
            inner = _runs(about["runs"])
            return f"<details><summary>How each run ended</summary>{inner}</details>"
        case "thresholds":
            return _thresholds(about["cells"])
        case "answer":
            return _answer(about)
    return _claims(about["claims"])


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", kind: str = "") -> str:
    """Return a table of cells that are HTML already; columns whose head ends in # hold numbers."""
    numeric = [head.endswith("#") for head in heads]
    top = "".join(
        f'<th scope="col"{" class=number" if n else ""}>{escape(head.rstrip("#"))}</th>'
        for head, n in zip(heads, numeric, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{cell}</th>' if i == 0 else f"<td{' class=number' if n else ''}>{cell}</td>"
            for i, (cell, n) in enumerate(zip(row, numeric, strict=True))
        )
        + "</tr>"
        for row in rows
    )
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption or heads[0])}">'
        f"<table class={kind or 'plain'}>{said}<thead><tr>{top}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _runs(runs: list[dict[str, Any]]) -> str:
    rows = [
        [
            escape(r["label"]),
            _ended(r["ending"]),
            "" if r["status"] == "diverged" else f"{r['bound']:,.0f}",
            f"{r['lowest']:,.4g}",
            f"{r['iterations']:,}",
            f"{r['accesses']:,}",
            f"{r['seconds']:.1f}",
        ]
        for r in runs
    ]
    heads = ("run", "ended", "bound#", "lowest#", "iterations#", "accesses#", "seconds#")
    return table(heads, rows, "Every run: how it ended, its last bound, and its lowest")


def _ended(ending: str) -> str:
    return f"<span class={'lost' if ending != 'converged' else 'fine'}>{escape(ending)}</span>"


def _thresholds(cells: list[dict[str, Any]]) -> str:
    rows = []
    for cell in cells:
        found = "none down to 1/1024" if cell["rho1"] is None else fraction(cell["rho1"])
        tried = ", ".join(f"{rho} {end}" for rho, end in cell["tried"].items())
        rows.append(
            [
                f"{METHODS[cell['method']]} ({cell['option']})",
                f"{SIZES[cell['method']]} = {cell['size']}",
                f"<strong>{found}</strong>",
                "" if cell["paper"] is None else fraction(cell["paper"]),
                escape(tried),
            ]
        )
    heads = ("algorithm", "size", "largest first step", "the paper's", "tried")
    return table(heads, rows, "The largest first step from which each converges")


def _answer(about: dict[str, Any]) -> str:
    sweeps, seconds = about["sweeps"], about["seconds"]
    gain = about["gain"]
    parts = []
    for what, heads, caption in (
        ("at_accesses", [f"{n}#" for n in sweeps], "The bound after as many accesses as full VB needs for so many sweeps"),  # fmt: skip
        ("at_seconds", [f"{s:.2g} s#" for s in seconds], "The bound after as many seconds as full VB needs for the same sweeps"),  # fmt: skip
    ):
        best = [max((r[what][i] for r in about["runs"] if r[what][i] is not None), default=None) for i in range(len(sweeps))]  # fmt: skip
        rows = []
        for run in about["runs"]:
            if run["status"] == "diverged":
                cells = ["<span class=lost>diverged</span>", *[""] * (len(sweeps) - 1)]
            else:
                cells = [_bound(value, top) for value, top in zip(run[what], best, strict=True)]
            rows.append([escape(run["label"]), *cells])
        parts.append(table(("", *heads), rows, caption))
    rows = []
    for run in about["runs"]:
        passed = gain["passed"][run["name"]]
        cells = ["never", ""] if passed is None else [f"{passed['sweeps']:.1f}", f"{passed['seconds']:.2f}"]  # fmt: skip
        rows.append([escape(run["label"]), *cells])
    caption = f"When each passes {short(gain['goal'])}, where full VB is after {gain['sweeps']:.0f} sweeps"  # fmt: skip
    parts.append(table(("", "sweeps' worth#", "seconds#"), rows, caption))
    return "".join(parts)


def _bound(value: float | None, best: float | None) -> str:
    if value is None:
        return ""
    text = f"{value:,.0f}".replace("-", "−")
    return f"<span class=best>{text}</span>" if value == best else text


def _claims(claims: list[dict[str, Any]]) -> str:
    rows = [
        [
            str(c["number"]),
            escape(c["claim"]),
            f'<span class="badge {c["verdict"].replace(" ", "-")}">{escape(c["verdict"])}</span>',
            f"<p>{escape(c['evidence'])}</p>" + (f'<p class="why">{escape(c["why"])}</p>' if c["why"] else ""),  # fmt: skip
        ]
        for c in claims
    ]
    return table(("", "the paper says", "here", "evidence"), rows, kind="claims")


# --- the summary and the end ----------------------------------------------------------------


def summary(outcomes: dict[str, Outcome]) -> str:
    """Return what the paper found and what became of it, at a glance."""
    tiles = [tile for name in outcomes for tile in _tiles(outcomes[name])]
    items = "".join(
        f"<li class={kind}><strong>{escape(big)}</strong><span>{escape(text)}</span></li>"
        for kind, big, text in tiles
    )
    here = _here(outcomes)
    return f"""<section aria-label="Summary"><div class="found">
<div><h2>What the paper found</h2><p>{escape(PAPER)}</p></div>
<div><h2>What became of it</h2><p>{escape(here)}</p></div></div>
<ul class="tiles">{items}</ul></section>"""


def _here(outcomes: dict[str, Outcome]) -> str:
    said = []
    if "claims" in outcomes:
        verdicts = [c["verdict"] for c in outcomes["claims"].about["claims"]]
        held = verdicts.count("holds")
        rest = [c["number"] for c in outcomes["claims"].about["claims"] if c["verdict"] == "differs"]
        said.append(f"Of its ten claims {held} hold on these data" + (f"; {', '.join(map(str, rest))} differs." if len(rest) == 1 else f"; {', '.join(map(str, rest))} differ." if rest else "."))  # fmt: skip
    if "answer" in outcomes:
        gain = outcomes["answer"].about["gain"]
        mine = gain["passed"]["default"]
        if mine is not None:
            said.append(
                "Small first steps are not the only way out. svmp's default takes exact unit steps "
                f"on a sample that grows: after {mine['sweeps']:.1f} sweeps' worth of accesses it is "
                f"where full VB is after {gain['sweeps']:.0f}, with nothing to tune."
            )
    if not said:
        said.append("The sections below show what was run so far; svmp study all runs the rest.")
    return " ".join(said)


def _tiles(outcome: Outcome) -> list[tuple[str, str, str]]:
    about = outcome.about
    match outcome.name:
        case "figure2":
            lost = [r for r in about["runs"] if r["status"] == "diverged"]
            if lost:
                first = lost[0]
                n = first["iterations"]
                return [("bad", f"{n} iteration{'s' * (n > 1)}", f"until Algorithm 1 ({first['option']}) with C = {first['size']} and unit first steps has diverged")]  # fmt: skip
        case "thresholds":
            for cell in about["cells"]:
                if (cell["method"], cell["option"]) == ("children", "a") and cell["rho1"]:
                    papers = f"; the paper's was {fraction(cell['paper'])}" if cell["paper"] else ""
                    return [("", fraction(cell["rho1"]), f"is the largest first step from which it converges with C = {cell['size']}{papers}")]  # fmt: skip
        case "answer":
            mine, gain = about["gain"]["passed"]["default"], about["gain"]
            if mine:
                return [("good", f"{mine['sweeps']:.1f} sweeps", f"of accesses take svmp's default where full VB is after {gain['sweeps']:.0f}")]  # fmt: skip
        case "claims":
            held = sum(c["verdict"] == "holds" for c in about["claims"])
            return [("", f"{held} of 10", "claims hold on these data; the eleventh is the open question")]
    return []


def how(about: dict[str, Any], outcomes: dict[str, Outcome]) -> str:
    """Return how the study was run, and how to run it again."""
    settings = about["settings"]
    facts = {
        "data": f"{about['data']} ({settings['data']})",
        "digest of the ratings": about["digest"],
        "seed": settings["seed"],
        "factors, K": settings["factors"],
        "forgetting rate, kappa": settings["kappa"],
        "C of Algorithm 1": ", ".join(map(str, settings["children"])),
        "C_global of Algorithm 2": ", ".join(map(str, settings["batches"])),
        "budgets in sweeps of full VB": (
            "{:g} for Algorithm 1, {:g} for Algorithm 2, {:g} for the answer, {:g} for claim 1".format(*settings["sweeps"])  # fmt: skip
            + (f"; no run more than {settings['max_accesses']:,.0f} accesses" if settings["max_accesses"] else "")  # fmt: skip
        ),
        "start": "means ~ N(0, 0.3²), precisions 1, the same for all runs",
        "versions": ", ".join(f"{name} {number}" for name, number in about["versions"].items()),
    }
    if "seconds" in about:
        facts["time"] = f"{about['seconds']:.0f} s, for {about['made']} runs; {about['found']} had been made before"  # fmt: skip
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in facts.items()
    )
    files = ", ".join(
        f'<a href="{name}.parquet" download>{name}.parquet</a>' for name in outcomes
    )
    return f"""<section id="how"><h2>How it was run</h2>
<p>Every run has one thread. The same settings give the same numbers, but for the seconds.</p>
<dl>{rows}</dl>
<h3>To run it again</h3><pre>{escape(about["command"])}</pre>
<p>Tables: {files}. Each run has its own, in <code>runs/</code>.</p></section>"""
