"""The documentation site: it builds without warnings, and its links and names are complete."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import svmp
from svmp import datasets, models, ratings, recommend

from .pages import ROOT, pages

sys.path.append(str(ROOT / "docs" / "site"))
import diagrams
import gallery_pages
import links
import stage


class Page(HTMLParser):
    """The ids of a page, its links, and what a browser loads to show it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe") and given.get("src"):
            self.loads.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, without running the gallery."""
    for package in ("sphinx", "myst_parser", "furo", "sphinx_copybutton"):
        pytest.importorskip(package, reason="needs the dependency group docs")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, ROOT / "docs" / "site" / "build.py", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return out / "html"


@pytest.fixture(scope="module")
def shown(site: Path) -> dict[Path, Page]:
    return {file: Page(file) for file in site.rglob("*.html")}


def test_every_page_of_the_repository_is_on_the_site(site: Path) -> None:
    for page in pages():
        place = stage.places()[str(page.relative_to(ROOT))]
        assert (site / place).with_suffix(".html").is_file()


def test_every_script_of_the_gallery_has_a_page_with_its_code(site: Path) -> None:
    for script in stage.scripts():
        page = (site / "gallery" / f"{script.stem}.html").read_text(encoding="utf-8")
        assert "__main__" in page, "the script is shown to its last line"


def test_links_between_pages_have_targets(shown: dict[Path, Page]) -> None:
    lost = []
    for file, page in shown.items():
        for link in page.links:
            if link.startswith(("http://", "https://", "mailto:")):
                continue
            path, _, anchor = link.partition("#")
            target = (file.parent / unquote(path)).resolve() if path else file
            found = target.is_file() and (
                not anchor or target.suffix != ".html" or unquote(anchor) in shown[target].ids
            )
            lost += [] if found else [f"{file.name}: {link}"]
    assert lost == []


def test_pages_load_nothing_from_other_servers(shown: dict[Path, Page]) -> None:
    loads = {load for page in shown.values() for load in page.loads}
    assert [load for load in loads if load.startswith(("http", "//"))] == []


def test_the_reference_has_every_public_name(shown: dict[Path, Page]) -> None:
    reference = set().union(*(p.ids for file, p in shown.items() if file.parent.name == "api"))
    named = {"svmp": svmp, "svmp.recommend": recommend, "svmp.ratings": ratings}
    named |= {"svmp.models": models, "svmp.datasets": datasets}
    public = {f"{path}.{name}" for path, module in named.items() for name in module.__all__}
    public = {name for name in public if name != "svmp.recommend.split"}
    public |= {f"svmp.recommend.split.{name}" for name in ("random", "by_time", "last_out")}
    assert public - reference == set()


def test_the_site_can_be_searched(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "robbinsmonro" in index.lower()
    assert (site / "search.html").is_file()


def test_links_follow_pages_to_their_places() -> None:
    text = "[a](../README.md#why) [b](steps.md) [c](#here) [d](https://example.org/x.md)"
    places = {"docs/page.md": "guide/page.md", "README.md": "index.md", "docs/steps.md": "steps.md"}
    changed, others = links.relinked(text, "docs/page.md", places, ROOT)
    assert (
        changed == "[a](../index.md#why) [b](../steps.md) [c](#here) [d](https://example.org/x.md)"
    )
    assert others == []


def test_code_is_not_taken_for_links() -> None:
    text = "```python\nfit[name](nothing.md)\n```"
    assert links.relinked(text, "README.md", {"README.md": "index.md"}, ROOT) == (text, [])


def test_a_linked_file_that_is_no_page_is_offered_for_download() -> None:
    changed, others = links.relinked("[l](LICENSE)", "README.md", {"README.md": "index.md"}, ROOT)
    assert (changed, others) == ("[l](files/LICENSE)", ["LICENSE"])


def test_a_link_to_nothing_is_refused() -> None:
    with pytest.raises(links.DocsError, match=r"README.md links to gone.md"):
        links.relinked("[l](gone.md)", "README.md", {"README.md": "index.md"}, ROOT)


def test_flowcharts_are_translated_for_graphviz() -> None:
    with svmp.Model(coords={"row": 3}) as model:
        rate = svmp.Gamma("rate", alpha=1, beta=1)
        svmp.Poisson("count", mu=rate, dims="row", observed=[1, 2, 3])
    drawing = diagrams.dot(model.draw().mermaid.removeprefix("flowchart TD\n"))
    assert drawing is not None
    assert drawing.count("->") == 1
    assert drawing.count("{") == drawing.count("}") == 2
    assert "#cfd8e3" in drawing, "observed variables are filled"


def test_unknown_flowcharts_stay_text() -> None:
    chart = "```mermaid\nflowchart TD\n  a -.-> b\n```"
    assert diagrams.drawn(chart) == chart.replace("mermaid", "text")


def test_links_read_as_titles() -> None:
    for page in [*pages(), ROOT / "docs/gallery/README.md"]:
        text = links.FENCE.sub("", page.read_text(encoding="utf-8"))
        assert re.findall(r"\[[^\]\n]*\.(?:md|py)\]\(", text) == [], page


def test_the_reference_of_a_fit_is_for_its_readers(site: Path) -> None:
    text = (site / "api/fitting.html").read_text(encoding="utf-8")
    plain = " ".join(re.sub(r"<[^>]*>", "", text).split())
    assert "iterations, accesses, seconds" in plain
    assert "max_sweeps, max_accesses, max_seconds" in plain
    assert "weakref" not in plain
    assert "tuple[Any, ...], dtype" not in plain
    assert re.findall(r"docs/\w+\.md", plain) == []


def test_what_users_search_for_is_found(site: Path) -> None:
    page = re.compile(r"<[^>]*>")
    every = [page.sub("", f.read_text(encoding="utf-8")).lower() for f in site.rglob("*.html")]
    for words in ("cold start", "poisson regression"):
        assert any(words in " ".join(text.split()) for text in every), words


def test_scripts_are_in_the_order_of_the_gallery() -> None:
    gallery = (ROOT / "docs/gallery/README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\((\d\d_\w+)\.py\)", gallery)
    assert [script.stem for script in stage.scripts()] == linked
    assert re.findall(r"^### \d", gallery, re.M) == []


def test_formulas_of_scripts_become_blocks(tmp_path: Path) -> None:
    script = tmp_path / "99_example.py"
    script.write_text('"""First line.\n\n    x ~ Normal(0, 1)\n\nThen text.\n"""\n\nx = 1\n')
    page = gallery_pages.script_page(
        script, "An example", figure=True, printed="status converged\nfigure: a.png\n"
    )
    assert "```text\nstatus converged\n```" in page
    assert page.startswith("# An example\n\nFirst line.\n\n```text\nx ~ Normal(0, 1)\n```\n")
    assert "![An example](figures/99_example.png)" in page
    assert ":lines: 8-" in page
