"""The page of a study: well-formed, self-contained, and interactive in a browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urlparse

import pytest

VOID = {"meta", "link", "br", "img", "input", "hr"}
LINES = "#figure2 .scatterlayer .js-line"
END_OF_FULL_VB = """() => {
    const chart = document.querySelector("#figure2 .chart");
    chart.scrollIntoView({ behavior: "instant" });
    const { xaxis, yaxis } = chart._fullLayout;
    const { x, y } = chart.data.find((line) => line.name === "full VB");
    const { left, top } = chart.getBoundingClientRect();
    const across = left + xaxis._offset + xaxis.d2p(x.at(-1));
    return [across, top + yaxis._offset + yaxis.d2p(y.at(-1))];
}"""


class Strict(HTMLParser):
    """Fails where elements are not closed in order, and collects links and ids."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links += [found[a] for a in ("href", "src") if a in found]
        self.ids += [found["id"]] if "id" in found else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def parsed(made):
    parser = Strict()
    parser.feed((made / "index.html").read_text())
    assert parser.open == []
    return parser


def test_it_is_well_formed_and_ids_are_unique(parsed):
    assert len(parsed.ids) == len(set(parsed.ids))
    for link in parsed.links:
        if link.startswith("#"):
            assert link[1:] in parsed.ids


def test_it_loads_nothing_and_links_only_to_files_beside_it(parsed, made):
    for link in parsed.links:
        assert not urlparse(link).scheme, link
        if not link.startswith("#"):
            assert (made / link).exists(), link
    assert not re.search(r"<link|@import|<script[^>]+src", (made / "index.html").read_text()[:9000])


@pytest.fixture
def shown(new_page, made):
    def show(**options):
        page = new_page(offline=True, **options)
        page.goto((made / "index.html").as_uri())
        page.wait_for_selector("html[data-drawn]")
        return page

    return show


def axis(page, name):
    return page.evaluate(f"document.querySelector('#figure2 .chart')._fullLayout.{name}.type")


def test_charts_are_drawn_and_interactive(shown):
    page = shown(viewport={"width": 1200, "height": 900})
    for name in ("figure2", "figure3", "thresholds", "answer"):
        assert page.locator(f"#{name} .scatterlayer .trace").count() > 1
    assert page.locator(LINES).count() == 6 * 3  # C = 1, 5 and full VB in six panels
    # scales
    assert axis(page, "xaxis") == "log"
    page.locator("#figure2").get_by_role("button", name="linear").first.click()
    assert axis(page, "xaxis") == "linear"
    page.locator("#figure2").get_by_role("button", name="log distance to the best").click()
    assert axis(page, "yaxis") == "log"
    assert page.locator(LINES).count() == 2 * 3
    page.locator("#figure2 [data-axis=y] button").first.click()
    page.locator("#figure2 [data-axis=x] button").first.click()
    # lines, by keyboard
    line = page.locator("#figure2 .legend").get_by_role("button", name="C = 5")
    line.focus()
    page.keyboard.press("Enter")
    assert line.get_attribute("aria-pressed") == "false"
    assert page.locator(LINES).count() == 6 * 2
    page.keyboard.press("Space")
    assert line.get_attribute("aria-pressed") == "true"
    # hover
    page.mouse.move(*page.evaluate(END_OF_FULL_VB))
    said = page.locator("#figure2 .hoverlayer .hovertext")
    said.wait_for()
    assert "full VB" in said.text_content()
    assert "bound" in said.text_content()


def boxes(page, selector):
    found = [one.bounding_box() for one in page.locator(selector).all()]
    return [(b["x"], b["y"], b["x"] + b["width"], b["y"] + b["height"]) for b in found if b]


def overlap(one, other):
    return min(one[2], other[2]) > max(one[0], other[0]) and min(one[3], other[3]) > max(
        one[1], other[1]
    )


@pytest.mark.parametrize("name", ["figure2", "figure3", "answer"])
def test_toolbar_and_labels_of_lines_cover_nothing(shown, name):
    page = shown(viewport={"width": 1200, "height": 1200})
    page.locator(f"#{name} .chart").hover()
    (bar,) = boxes(page, f"#{name} .modebar-container .modebar")
    texts = boxes(page, f"#{name} .annotation-text")
    assert not any(overlap(bar, text) for text in texts)
    shown_ends = page.locator(f"#{name} .annotation-text").all_text_contents()
    assert shown_ends.count("full VB") == 2  # where it ends, once in each column
    for i, one in enumerate(texts):
        inner = (one[0] + 1, one[1] + 1, one[2] - 1, one[3] - 1)  # boxes have some air
        covered = [j for j, other in enumerate(texts) if j > i and overlap(inner, other)]
        assert not covered, (
            shown_ends[i],
            [shown_ends[j] for j in covered],
            one,
            texts[covered[0]],
        )


def test_nothing_scrolls_sideways_on_a_phone(shown):
    page = shown(viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator("#figure2 .chart").bounding_box()["width"] <= 360
    title = page.locator("#figure2 .annotation").last.bounding_box()
    label = page.locator("#figure2 .x3title").bounding_box()
    assert label["y"] + label["height"] <= title["y"]
    assert title["x"] + title["width"] <= 360
    assert page.locator(LINES).count() == 6 * 3


def test_full_vb_is_white_in_dark_mode(shown):
    page = shown(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    colours = "[...document.querySelectorAll('#figure2 .js-line')].map(e => e.style.stroke)"
    assert "rgb(255, 255, 255)" in page.evaluate(colours)
    page.emulate_media(color_scheme="light")
    page.wait_for_timeout(500)
    assert "rgb(0, 0, 0)" in page.evaluate(colours)


def test_the_first_tab_stop_skips_to_the_results(shown):
    page = shown()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.url.endswith("#content")


def test_the_printed_page_is_light_and_fits(shown):
    page = shown(color_scheme="dark", viewport={"width": 700, "height": 900})
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    colours = "[...document.querySelectorAll('#figure2 .js-line')].map(e => e.style.stroke)"
    assert "rgb(0, 0, 0)" in page.evaluate(colours)
    assert not page.locator("nav").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
