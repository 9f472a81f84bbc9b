"""The page in a browser: ratings change the list and its explanations; keyboard, layout."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from svmp.recommend.service import demo
from tests.looks import contrast, unnamed

from .conftest import client_of, saved

PHONE = {"viewport": {"width": 375, "height": 740}, "is_mobile": True, "has_touch": True}


@pytest.fixture
def expect() -> Any:
    return pytest.importorskip("playwright.sync_api").expect


@pytest.fixture(scope="module")
def url(films: httpx.Client) -> str:
    return str(films.base_url)


@pytest.fixture(scope="module")
def taken(folder: Path) -> Iterator[str]:
    with client_of(saved("events", folder)) as client:
        yield str(client.base_url)


def search(page: Any, expect: Any, words: str, first: str) -> Any:
    """Search for a text; return the first result."""
    page.get_by_role("searchbox", name="Find something you know").fill(words)
    found = page.locator("#found .item").first
    expect(found).to_contain_text(first)
    return found


def star(where: Any, stars: int) -> Any:
    return where.get_by_role("radio", name=f"{stars} stars")


def wait_until_updated(page: Any, expect: Any) -> None:
    """Wait until the list and its explanations are up to date with the ratings."""
    expect(page.locator("#top")).to_have_attribute("aria-busy", "false")


def tops(page: Any) -> list[str]:
    return list(page.locator("#top .title").all_inner_texts())


def width(page: Any, row: int = 0) -> float:
    """Return the width of the interval of a recommendation, from 0 to 1."""
    script = """plot => Number(plot.style.getPropertyValue('--right'))
                 - Number(plot.style.getPropertyValue('--left'))"""
    return float(page.locator("#top .plot").nth(row).evaluate(script))


def test_rating_two_comedies_recommends_comedies_with_explanations(
    page: Any, url: str, expect: Any
) -> None:
    page.goto(url)
    expect(page.locator("#top .row")).to_have_count(10)
    expect(page.locator("#about")).to_contain_text("240 items, learned from 600 people")
    before = tops(page)
    assert sum("comedy" in title for title in before) <= 3
    star(search(page, expect, "uncle otto", "Uncle Otto Goes to Lunch"), 5).check()
    expect(page.locator("#rated-title")).to_have_text("You rated 1")
    expect(page.locator("#top .because").first).to_contain_text("for Uncle Otto")
    star(search(page, expect, "penguin", "Penguin"), 5).check()
    expect(page.locator("#rated-title")).to_have_text("You rated 2")
    wait_until_updated(page, expect)
    assert any(page.locator("#top .change").all_inner_texts())
    expect(page.locator("#sure")).to_contain_text("with nothing rated")
    now, less = re.findall(r"±([\d.]+)", page.locator("#sure").inner_text())
    assert float(now) < float(less)
    assert sum("comedy" in title for title in tops(page)) >= 8
    page.locator("#top summary").first.click()
    why = page.locator("#top .why").first
    expect(why).to_contain_text("Anybody: ")
    expect(why.locator(".part").first).to_contain_text(re.compile(r"\+0\.\d\d"))
    expect(why).to_contain_text("Uncle Otto Goes to Lunch")
    star(page.locator("#rated .item").last, 4).check()  # on second thoughts
    wait_until_updated(page, expect)
    expect(page.locator("#top .change.down").first).to_be_visible()
    liked = tops(page)
    star(page.locator("#rated .item").last, 1).check()  # and on third
    wait_until_updated(page, expect)
    assert tops(page) != liked
    changes = page.locator("#top .change").all_inner_texts()
    assert [text == "new" for text in changes] == [title not in liked for title in tops(page)]
    page.get_by_role("button", name="Start over").click()
    expect(page.locator("#rated-card")).to_be_hidden()
    wait_until_updated(page, expect)
    assert tops(page) == before


def test_intervals_equal_those_of_the_service(page: Any, films: httpx.Client, expect: Any) -> None:
    page.goto(str(films.base_url))
    star(search(page, expect, "moss", "Moss"), 2).check()
    expect(page.locator("#rated-title")).to_have_text("You rated 1")
    wait_until_updated(page, expect)
    [row] = films.get("/items", params={"q": "moss", "n": 1}).json()["items"]
    history = [{"item": row["item"], "rating": 2}]
    asked = {"history": history, "n": 10, "level": 0.9}
    items = films.post("/fold-in", json=asked).json()["items"]
    for place, item in enumerate(items):
        line = page.locator("#top .row").nth(place)
        expect(line.locator(".mean b")).to_have_text(f"{item['mean']:.2f}")
        values = line.locator(".plot").evaluate(
            "plot => ['low', 'mean', 'high', 'left'].map("
            "name => Number(plot.style.getPropertyValue(`--${name}`)))"
        )
        wanted = [item["low"], item["mean"], item["high"], item["mean"] - 1.645 * item["std"]]
        assert values == pytest.approx([(value - 1) / 4 for value in wanted], abs=1e-5)


def test_page_for_a_model_of_events(page: Any, taken: str, expect: Any) -> None:
    page.goto(taken)
    expect(page.locator("#top .row")).to_have_count(10)
    search(page, expect, "it2", "it2")
    for place in range(3):
        button = page.locator("#found .item").nth(place).get_by_role("button")
        expect(button).to_have_attribute("aria-pressed", "false")
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#rated-title")).to_have_text("You took 3")
    wait_until_updated(page, expect)
    expect(page.locator("#top .because").first).to_contain_text("for item it2")
    assert all(int(title.split("it")[-1]) >= 15 for title in tops(page)[:5])  # the same group
    expect(page.locator("#top .mean b").first).to_have_text(re.compile(r"\d+%"))
    page.locator("#rated .taken").first.click()  # not, after all
    expect(page.locator("#rated-title")).to_have_text("You took 2")


def test_page_asks_for_the_token(new_page: Callable[..., Any], expect: Any) -> None:
    with client_of(demo.MODEL, token="secret") as client:
        page = new_page(allow="status of 401")
        page.goto(str(client.base_url))
        field = page.get_by_label("This service needs a token.")
        expect(field).to_be_focused()
        field.fill("wrong")
        page.keyboard.press("Enter")
        expect(field).to_be_visible()
        field.fill("secret")
        page.keyboard.press("Enter")
        expect(page.locator("#top .row")).to_have_count(10)
        expect(field).to_be_hidden()
        page.reload()  # it is kept as long as the tab is open
        expect(page.locator("#top .row")).to_have_count(10)


def test_page_reports_that_the_service_is_gone(
    new_page: Callable[..., Any], url: str, expect: Any
) -> None:
    page = new_page(allow="ERR_FAILED")
    page.goto(url)
    expect(page.locator("#top .row")).to_have_count(10)
    page.route("**/fold-in", lambda route: route.abort())
    star(page.locator("#found .item").first, 3).check()
    expect(page.get_by_role("alert")).to_contain_text("is it still running?")
    page.unroute("**/fold-in")
    star(page.locator("#found .item").first, 4).check()
    expect(page.get_by_role("alert")).to_be_empty()


def test_late_success_of_an_older_request_does_not_hide_an_error(
    new_page: Callable[..., Any], url: str, expect: Any
) -> None:
    page = new_page(allow="ERR_FAILED")
    held: list[Any] = []
    page.route("**/explain", lambda route: held.append(route))
    page.goto(url)
    expect(page.locator("#top .row")).to_have_count(10)
    page.route("**/fold-in", lambda route: route.abort())
    star(page.locator("#found .item").first, 3).check()
    expect(page.get_by_role("alert")).to_contain_text("is it still running?")
    with page.expect_response("**/explain") as explained:
        held[0].continue_()
    explained.value.finished()
    page.evaluate("() => new Promise(requestAnimationFrame)")
    expect(page.get_by_role("alert")).to_contain_text("is it still running?")


def test_page_can_be_used_by_keyboard(page: Any, url: str, expect: Any) -> None:
    page.goto(url)
    expect(page.locator("#found .item")).not_to_have_count(0)
    page.keyboard.press("Tab")
    expect(page.get_by_role("searchbox", name="Find something you know")).to_be_focused()
    page.keyboard.type("teapot")
    expect(page.locator("#found .item").first).to_contain_text("Teapot")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.locator("#rated-title")).to_have_text("You rated 1")
    for count in (2, 3):  # the focus stays where it was, though the list is redrawn
        page.keyboard.press("ArrowRight")
        given = page.locator("#rated .item input:checked")
        expect(given).to_have_value(str(count))
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.tagName") == "SUMMARY":
            break
    page.keyboard.press("Enter")
    expect(page.locator("#top .why").first).to_contain_text("Anybody")


def test_page_layout_on_all_screens(new_page: Callable[..., Any], url: str, expect: Any) -> None:
    """The page fits the window, text has a contrast of 4.5, and controls have names."""
    for looks in ({}, {"color_scheme": "dark"}, PHONE):
        page = new_page(**looks)
        page.goto(url)
        expect(page.locator("#top .row")).to_have_count(10)
        star(page.locator("#found .item").first, 4).check()
        expect(page.locator("#top .because").first).not_to_be_empty()
        page.locator("#top summary").first.click()
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        assert contrast(page, "body :not(.stars, .stars *, svg *, template)") >= 4.5
        assert unnamed(page, "button, input, summary") == 0
        if looks is not PHONE:  # the scale stands over the intervals
            ticks, plot = (
                page.locator(place).first.bounding_box() for place in ("#ticks", "#top .plot")
            )
            assert ticks["x"] == pytest.approx(plot["x"], abs=1)
            assert ticks["width"] == pytest.approx(plot["width"], abs=1)
