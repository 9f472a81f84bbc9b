"""The pages are correct: code runs and prints the quoted output, and links have targets."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from svmp import factors

from .pages import ROOT, blocks, pages


def runnable(page: Path) -> bool:
    return any(b.language == "python" and b.file is None for b in blocks(page))


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [p for p in pages() if runnable(p)], ids=name)
def test_code_runs_and_prints_what_the_page_quotes(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for block in blocks(page):
        if block.language != "python" or block.file is not None:
            continue
        # Blank lines before it give tracebacks the line numbers of the page.
        code = compile("\n" * (block.line - 1) + block.text, page, "exec")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, module.__dict__)
        if block.printed is not None:
            assert stripped(out.getvalue()) == stripped(block.printed), f"{page}:{block.line}"


def stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", pages(), ids=name)
def test_links_have_targets(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} leads nowhere"
        if anchor:
            assert anchor in anchors(file), f"{target} names no heading"


def anchors(page: Path) -> set[str]:
    """Return the names that GitHub gives to the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


def test_the_table_of_distributions_matches_the_factors() -> None:
    text = (ROOT / "docs/networks.md").read_text(encoding="utf-8")
    section = text.split("## What can be declared")[1].split("\n## ")[0]
    rows = [
        [c.strip() for c in line.split("|")[1:-1]] for line in section.splitlines() if "|" in line
    ]
    said: dict[tuple[str, str], str] = {}
    distribution = ""
    for first, parameters, accepts in rows[2:]:
        distribution = first.strip("`") or distribution
        for parameter in parameters.split(", "):
            said[distribution, parameter.strip("`")] = accepts
    true = {}
    for factor in (getattr(factors, n) for n in factors.__all__):
        name = factor.__name__.removesuffix("Logit").removesuffix("Rate")
        true |= {(name, c): "numbers only" for c in factor.constants}
        true |= {(name, s): family.__name__ for s, family in factor.slots.items()}
    assert set(said) == set(true)
    for key, needed in true.items():
        assert needed in said[key], key
