"""Texts of the page: the summary, the headings, and how the study was run."""

from __future__ import annotations

from html import escape
from typing import Any

from svmp.study.outcomes import Outcome
from svmp.study.runs import fraction

PAPER = (
    "A step of unit length along a natural gradient is well scaled when the gradient is exact. "
    "When each variable reads only a few of its children the same steps overshoot, and a run can "
    "diverge beyond recovery. Much smaller first steps are needed, and how small is not known "
    "beforehand."
)
HEADINGS = {
    "figure2": (
        "Few children, and the bound falls away",
        "Algorithm 1 updates each variable from at most C of its children. The fewer it reads, the "
        "noisier the update, and the sooner a run with steps from 1 diverges.",
    ),
    "figure3": (
        "One batch for all variables",
        "Algorithm 2 draws C_global ratings in each iteration, and updates only variables with a "
        "child among them. With option (a), new values seen at once, it converges slowly; with "
        "option (b), all together, it overshoots.",
    ),
    "thresholds": (
        "How small the first step must be",
        "The first step is halved until the run converges. The largest that converges depends on "
        "the algorithm, the option, and the number of children that are read.",
    ),
    "answer": (
        "The open question",
        "Step policies of svmp against full VB, from the same start. The runs tuned by hand are "
        "the best of all that were tried above.",
    ),
    "claims": (
        "The paper's claims, one by one",
        "Each verdict follows from the runs above, or from a check on a small network.",
    ),
}
Tile = tuple[str, str, str]
"""Kind, number, and description."""


def summary(outcomes: dict[str, Outcome]) -> str:
    """Return the summary: what the paper found, and what the study found."""
    tiles = [tile for name in outcomes if (tile := _tile(name, outcomes[name].about))]
    items = "".join(
        f"<li class={kind}><strong>{escape(big)}</strong><span>{escape(text)}</span></li>"
        for kind, big, text in tiles
    )
    return f"""<section aria-label="Summary"><div class="found">
<div><h2>What the paper found</h2><p>{escape(PAPER)}</p></div>
<div><h2>What this study found</h2><p>{escape(_here(outcomes))}</p></div></div>
<ul class="tiles">{items}</ul></section>"""


def _here(outcomes: dict[str, Outcome]) -> str:
    said = []
    if "claims" in outcomes:
        said.append(_verdicts(outcomes["claims"].about["claims"]))
    gain = outcomes["answer"].about["gain"] if "answer" in outcomes else None
    if gain and gain["passed"]["default"]:
        said.append(
            "Small first steps are not the only way out. svmp's default takes exact unit steps on "
            f"a sample that grows: after {gain['passed']['default']['sweeps']:.1f} sweeps' worth "
            f"of accesses it is where full VB is after {gain['sweeps']:.0f}, with nothing to tune."
        )
    rest = "The sections below show what was run so far; svmp study all runs the rest."
    return " ".join(said or [rest])


def _verdicts(claims: list[dict[str, Any]]) -> str:
    def those(verdict: str) -> list[str]:
        return [str(c["number"]) for c in claims if c["verdict"] == verdict]

    said = [f"Of its ten claims {len(those('holds'))} hold on these data"]
    if other := those("differs"):
        said.append(f"{', '.join(other)} differ{'s' * (len(other) == 1)}")
    if unknown := those("undecided") + those("not run"):
        said.append(f"{', '.join(unknown)} could not be decided: too few accesses or runs")
    return "; ".join(said) + "."


def _tile(name: str, about: dict[str, Any]) -> Tile | None:
    match name:
        case "figure2":
            lost = next((r for r in about["runs"] if r["status"] == "diverged"), None)
            if lost:
                count, option, size = lost["iterations"], lost["option"], lost["size"]
                text = f"until Algorithm 1 ({option}) with C = {size} has diverged"
                return "bad", f"{count} iteration{'s' * (count > 1)}", text
        case "thresholds":
            cell = next((c for c in about["cells"] if c["method"] == "children"), None)
            if cell and cell["rho1"]:
                papers = f"; the paper's was {fraction(cell['paper'])}" if cell["paper"] else ""
                text = f"is the largest first step that converges with C = {cell['size']}{papers}"
                return "plain", fraction(cell["rho1"]), text
        case "answer":
            gain = about["gain"]
            if mine := gain["passed"]["default"]:
                text = (
                    f"of accesses take svmp's default where full VB is after {gain['sweeps']:.0f}"
                )
                return "good", f"{mine['sweeps']:.1f} sweeps", text
        case "claims":
            held = sum(c["verdict"] == "holds" for c in about["claims"])
            text = "claims hold on these data; the eleventh is the open question"
            return "plain", f"{held} of 10", text
    return None


def how(about: dict[str, Any], outcomes: dict[str, Outcome]) -> str:
    """Return the section on how the study was run, and how to run it again."""
    settings = about["settings"]
    one, two, answer, alone = settings["sweeps"]
    limit = settings["max_accesses"]
    facts = {
        "data": f"{about['data']} ({settings['data']}{_drawn(settings)})",
        "digest of the ratings": about["digest"],
        "seed": settings["seed"],
        "factors, K": settings["factors"],
        "forgetting rate, kappa": settings["kappa"],
        "C of Algorithm 1": ", ".join(map(str, settings["children"])),
        "C_global of Algorithm 2": ", ".join(map(str, settings["batches"])),
        "budgets in sweeps of full VB": (
            f"{one:g} for Algorithm 1, {two:g} for Algorithm 2, {answer:g} for the answer, "
            f"{alone:g} for claim 1" + (f"; at most {limit:,.0f} accesses" if limit else "")
        ),
        "start": "means ~ N(0, 0.3²), precisions 1, the same for all runs",
        "versions": ", ".join(f"{name} {number}" for name, number in about["versions"].items()),
    }
    if "seconds" in about:
        before = f"; {about['found']} had been made before" if about["found"] else ""
        facts["time"] = f"{about['seconds']:.0f} s for {about['made']} runs{before}"
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in facts.items()
    )
    files = ", ".join(f'<a href="{name}.parquet" download>{name}.parquet</a>' for name in outcomes)
    return f"""<section id="how"><h2>How it was run</h2>
<p>Every run has one thread. The same settings give the same numbers, except the seconds.</p>
<dl>{rows}</dl>
<h3>To run it again</h3><pre>{escape(about["command"])}</pre>
<p>Tables: {files}. The tables of the runs are in <code>runs/</code>.</p></section>"""


def _drawn(settings: dict[str, Any]) -> str:
    users = settings.get("users")
    return f", of which {users:,} users were drawn" if users else ""
