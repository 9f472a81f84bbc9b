"""The page in a browser: runs, the chart, errors, keyboard, themes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

import svmp
from tests.looks import contrast, unnamed

from .conftest import PAPER, SMALL, Lab, end_lab, start_lab

PHONE = {"viewport": {"width": 375, "height": 740}, "is_mobile": True, "has_touch": True}
LINES = "#chart .scatterlayer .js-line"


@pytest.fixture
def expect() -> Any:
    return pytest.importorskip("playwright.sync_api").expect


def button(where: Any, name: str) -> Any:
    return where.get_by_role("button", name=re.compile(name)).first


def opened(lab: Lab, page: Any) -> None:
    """Open the lab, and wait until its form is set up."""
    page.goto(lab.url)
    page.locator("#run:enabled").wait_for(state="attached")


def fill(page: Any, **fields: str) -> None:
    for name, value in fields.items():
        field = page.locator(f"#form [name={name}]")
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)


def points(page: Any) -> int:
    """How many points the chart's first line has."""
    return int(page.locator("#chart").evaluate("chart => chart.data?.[0]?.x.length ?? 0"))


def axis(page: Any, name: str) -> dict[str, Any]:
    return dict(
        page.locator("#chart").evaluate(f"""chart => {{
        const {{ type, range }} = chart._fullLayout.{name};
        return {{ type, range }};
    }}""")
    )


def soon(page: Any, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return an axis as soon as it is as it should be: the chart is drawn a frame later."""
    for _ in range(600):
        if holds(axis(page, name)):
            break
        page.wait_for_timeout(100)
    found = axis(page, name)
    assert holds(found), found
    return found


def see_the_export(lab: Lab, page: Any, expect: Any) -> None:
    """The script is shown, can be downloaded and copied, and is the server's."""
    path = f"/api/runs/{next(lab.updates())['kept'][0]}/script"
    script = lab.client.get(path).text
    button(page, "Export as Python").click()
    dialog = page.get_by_role("dialog")
    assert dialog.locator("code").text_content() == script
    with page.expect_download() as download:
        dialog.get_by_role("link", name="Download").click()
    assert download.value.path().read_text(encoding="utf-8") == script
    assert re.fullmatch(r"svmp-run-\d+\.py", download.value.suggested_filename)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button(dialog, "Copy").click()
    expect(button(dialog, "Copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == script
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_a_run_starts_streams_stops_and_is_exported(lab: Lab, page: Any, expect: Any) -> None:
    opened(lab, page)
    fill(page, scale="0.01", factors="2", C="1", rho1="1/512", sweeps="500")
    page.get_by_role("button", name="Run", exact=True).click()
    run = page.locator(".run")
    expect(run.locator("h3")).to_have_text("Algorithm 1 (a), C = 1, from ρ₁ = 1/512, κ = 0.6")
    expect(run).to_have_attribute("data-state", "running")
    numbers = run.locator(".numbers")
    expect(numbers).to_contain_text("iterations")
    before, said = points(page), numbers.inner_text()
    expect(numbers).not_to_have_text(said)
    expect(page.locator(LINES)).to_have_count(1)
    page.wait_for_function(f"() => document.getElementById('chart').data[0].x.length > {before}")
    assert before > 0
    button(run, "Stop").click()
    expect(run.locator(".state")).to_have_text("stopped")
    expect(button(run, "Stop")).to_be_hidden()
    expect(page.get_by_role("status")).to_contain_text("stopped")

    fill(page, C="3", rho1="1")
    button(run, "Reuse settings").click()
    expect(page.locator("[name=C]")).to_have_value("1")
    expect(page.locator("[name=rho1]")).to_have_value("1/512")
    see_the_export(lab, page, expect)

    button(run, "Remove").click()
    expect(run).to_have_count(0)
    expect(page.locator(LINES)).to_have_count(0)
    expect(page.locator("#runs-title")).to_be_focused()


def test_a_diverging_and_a_converging_run_share_the_chart(lab: Lab, page: Any, expect: Any) -> None:
    opened(lab, page)
    fill(page, scale="0.01", sweeps="3")
    button(page, "The paper").click()
    button(page, "Nothing to tune").click()
    default, paper = page.locator(".run").nth(0), page.locator(".run").nth(1)
    expect(default).to_have_attribute("data-state", "budget")
    expect(paper).to_have_attribute("data-state", "diverged")
    expect(paper.locator(".sentence")).to_contain_text("was sound from rho1 = 1/")
    expect(paper.locator(".numbers")).to_contain_text("the last sound one is")
    expect(page.locator(LINES)).to_have_count(2)
    strokes = page.locator(LINES).evaluate_all("lines => lines.map((l) => l.style.stroke)")
    assert len(set(strokes)) == 2

    assert axis(page, "xaxis")["type"] == "log"
    page.get_by_role("radio", name="linear").check()
    soon(page, "xaxis", lambda x: x["type"] == "linear")

    bounds = page.locator("#chart").evaluate("chart => chart.data[0].customdata.map((r) => r[3])")
    fallen = min(bounds)
    shown = axis(page, "yaxis")
    assert shown["type"] == "log"
    assert 10 ** shown["range"][0] < -fallen, "a run that falls leaves the frame"
    page.get_by_role("radio", name="everything").check()
    soon(page, "yaxis", lambda y: 10 ** y["range"][0] > -fallen)
    page.get_by_role("radio", name="the top").check()
    soon(page, "yaxis", lambda y: y["type"] == "linear")

    button(paper, "Show").click()
    expect(page.locator(LINES)).to_have_count(1)

    line = page.locator("#chart .nsewdrag").bounding_box()
    end = page.locator("#chart .point").last.bounding_box()
    page.mouse.move(line["x"] + 5, line["y"] + 5)
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=5)
    expect(page.locator("#chart .hoverlayer")).to_contain_text("accesses")


def test_errors_are_shown_beside_their_fields(
    lab: Lab, new_page: Callable[..., Any], expect: Any
) -> None:
    page = new_page(allow="status of 422|ERR_FAILED")
    opened(lab, page)
    fill(page, kappa="0.3")
    page.keyboard.press("Enter")
    kappa = page.get_by_label("Forgetting rate")
    expect(kappa).to_be_focused()
    expect(kappa).to_have_attribute("aria-invalid", "true")
    expect(kappa).to_have_accessible_description(re.compile(r"only for 1/2 < kappa <= 1"))
    fill(page, kappa="0.6", C="", seed="-1")
    page.keyboard.press("Enter")
    expect(page.locator("#C-error")).to_contain_text("C must be a whole number")
    expect(page.locator("#seed-error")).to_contain_text("seed must be a whole number")
    expect(page.locator("#kappa-error")).to_have_count(0)
    expect(page.locator(".run")).to_have_count(0)
    page.route("**/api/runs", lambda route: route.abort())  # as if the lab were gone
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#trouble")).to_contain_text("is it still running in the terminal?")
    page.route("**/api/events", lambda route: route.abort())
    page.reload()
    expect(page.locator("#lost")).to_be_visible()


def test_only_the_fields_of_a_run_are_shown(lab: Lab, page: Any, expect: Any) -> None:
    opened(lab, page)
    shown = page.locator("#form [name]:visible")
    names = "nodes => nodes.map((node) => node.name).sort().join()"
    assert shown.evaluate_all(names) == ",".join(sorted(PAPER))
    fill(page, policy="Grow")
    assert "C" not in shown.evaluate_all(names).split(",")
    usual = {"kappa": svmp.RobbinsMonro().kappa, "hold": svmp.HoldThenDecay().hold}
    usual |= {"start": svmp.Grow().start, "rate": svmp.Grow().rate, "c": svmp.Grow().c}
    for name, value in usual.items():
        expect(page.locator(f"[name={name}]")).to_have_value(str(value))
    fill(page, policy="Nodewise")
    expect(page.locator("[name=c]")).to_have_value(str(svmp.Nodewise().c))
    fill(page, algorithm="full")
    assert shown.evaluate_all(names) == ",".join(sorted(SMALL))


WITH_HALVING = """
from svmp.inference import steps
from tests.lab.test_fields import Halving
steps.POLICIES += (Halving,)
from svmp.cli import main
main()
"""


def test_a_policy_that_is_added_to_the_list_is_in_the_form(page: Any, expect: Any) -> None:
    lab = start_lab(command=(sys.executable, "-c", WITH_HALVING))
    try:
        opened(lab, page)
        fill(page, policy="Halving")
        interval = page.get_by_label("Iterations to halve")
        expect(interval).to_be_visible()
        expect(interval).to_have_value("10")
        expect(page.get_by_label("Forgetting rate")).to_be_hidden()
        assert end_lab(lab) == ""
    finally:
        lab.process.kill()


def test_it_can_be_used_by_keyboard_alone(lab: Lab, page: Any, expect: Any) -> None:
    opened(lab, page)
    expect(button(page, "Nothing to tune")).to_be_visible()
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        name = page.evaluate("() => document.activeElement.name || document.activeElement.id")
        seen.append(name)
        if name == "scale":
            page.keyboard.press("Control+A")
            page.keyboard.type("0.002")
        if name == "run":
            break
    assert seen[-1] == "run"
    assert {"data", "scale", "factors", "algorithm", "C", "option", "policy", "rho1"} <= set(seen)
    page.keyboard.press("Enter")
    expect(page.locator(".run")).to_have_count(1)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("radio", name="everything")).to_be_checked()


def test_runs_are_readable_in_every_theme_and_survive_a_reload(
    lab: Lab, new_page: Callable[..., Any], expect: Any
) -> None:
    """The page is as wide as the window, text has a contrast of 4.5, and what acts has a name."""
    id = lab.start(SMALL)
    lab.end_of(id)
    for looks in ({}, {"color_scheme": "dark"}, PHONE):
        page = new_page(**looks)
        opened(lab, page)
        expect(page.locator(".run")).to_have_attribute("data-state", "budget")
        expect(page.locator(LINES)).to_have_count(1)
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        assert contrast(page, "header *, nav *, form *, .results :not(svg *)") >= 4.5
        assert unnamed(page, "button, input:visible, select") == 0
    page.reload()
    expect(page.locator(".run")).to_have_count(1)
    lab.client.delete(f"/api/runs/{id}")
    expect(page.locator(".run")).to_have_count(0)
