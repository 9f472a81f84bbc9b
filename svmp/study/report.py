"""The page of a study: `index.html`, which opens from disk, with figures beside it."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from string import Template
from typing import Any

from svmp.study import on_paper, tables, words
from svmp.study.outcomes import Outcome
from svmp.study.store import Store

SECTIONS = {
    "figure2": "Figure 2",
    "figure3": "Figure 3",
    "thresholds": "First steps",
    "answer": "The answer",
    "claims": "Claims",
}


def publish(store: Store, about: dict[str, Any], outcomes: dict[str, Outcome]) -> None:
    """Write the page, and the figures that are missing."""
    for outcome in outcomes.values():
        if not (store.folder / f"{outcome.name}.{on_paper.FORMATS[-1]}").exists():
            draw_figure(store, outcome)
    store.write_text("index.html", page(about, outcomes))


def draw_figure(store: Store, outcome: Outcome) -> None:
    """Write a figure in every format."""
    if outcome.chart is not None:
        paper = on_paper.Paper(outcome.chart)
        for kind in on_paper.FORMATS:
            store.write(f"{outcome.name}.{kind}", paper.save)


def page(about: dict[str, Any], outcomes: dict[str, Outcome]) -> str:
    """Return the page, which loads no other file."""
    from plotly.offline import get_plotlyjs

    charts = [o.chart.to_dict() for o in outcomes.values() if o.chart is not None]
    links = {name: SECTIONS[name] for name in outcomes} | {"how": "How it was run"}
    return Template(_part("page.html")).substitute(
        title=f"The study of {escape(str(about['settings']['data']))} - svmp",
        css=_part("page.css"),
        data=escape(f"{about['data']}, {about['settings']['data']}"),
        nav=_list([f'<a href="#{name}">{text}</a>' for name, text in links.items()]),
        summary=words.summary(outcomes),
        sections="\n".join([*map(_section, outcomes.values()), words.how(about, outcomes)]),
        charts=json.dumps(charts, separators=(",", ":")).replace("<", "\\u003c"),
        plotly=get_plotlyjs(),
        script=_part("page.js"),
    )


def _section(outcome: Outcome) -> str:
    name = outcome.name
    title, text = words.HEADINGS[name]
    parts = [f"<h2>{escape(title)}</h2>", f"<p>{escape(text)}</p>"]
    if outcome.chart is not None:
        parts.append(_figure(outcome))
    parts.append(tables.of(outcome))
    return f'<section id="{name}">' + "\n".join(parts) + "</section>"


def _figure(outcome: Outcome) -> str:
    chart, name = outcome.chart, outcome.name
    assert chart is not None
    kinds = ", ".join(f'<a href="{name}.{k}" download>{k.upper()}</a>' for k in on_paper.FORMATS)
    scales = {"bound": "linear", "distance": "log distance to the best"}
    bounds = "" if name == "thresholds" else _choice("y", "bound", scales)
    return f"""<figure>
<div class="plate">
<div class="tools">
{_choice("x", chart.columns[0].x_label.split(",")[0], {"log": "log", "linear": "linear"})}
{bounds}
<div role="group" aria-label="lines"><span>lines</span>
<button type="button" data-lines="all">all</button>
<button type="button" data-lines="none">none</button></div>
</div>
<div class="legend" role="group" aria-label="Lines, to switch on and off"></div>
<div class="chart" role="img" aria-label="{escape(chart.alt)}"></div>
<noscript><img src="{name}.svg" alt="{escape(chart.alt)}" width="100%"></noscript>
</div>
<figcaption>{escape(chart.caption)}</figcaption>
<p class="downloads">The figure as {kinds}; its numbers as
<a href="{name}.parquet" download>Parquet</a> and <a href="{name}.json" download>JSON</a>.</p>
</figure>"""


def _choice(axis: str, label: str, values: dict[str, str]) -> str:
    buttons = "".join(
        f'<button type="button" value="{value}" aria-pressed="false">{text}</button>'
        for value, text in values.items()
    )
    name = escape(label)
    start = f'<div role="group" aria-label="{name}" data-axis="{axis}">'
    return f"{start}<span>{name}</span>{buttons}</div>"


def _list(items: list[str]) -> str:
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _part(name: str) -> str:
    return (resources.files("svmp.study") / "page" / name).read_text(encoding="utf-8")
