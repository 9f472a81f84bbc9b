"""Gathers the sources of the site in one folder, from which Sphinx builds it.

Pages stay as they are in the repository, readable there. Here they get the form that the site
needs: README.md becomes the front page, the sections of docs/README.md become the navigation, each
script of the gallery becomes a page, links follow, and flowcharts are drawn.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from diagrams import drawn, plain
from gallery_pages import script_page, title
from links import DocsError, download, relinked

ROOT = Path(__file__).resolve().parents[2]
OWN_PLACES = {
    "README.md": "index.md",
    "docs/README.md": "contents.md",
    "docs/gallery/README.md": "gallery/index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "SECURITY.md": "security.md",
}
ENTRY = re.compile(r"^- \[[^\]]*\]\((?P<path>[^)#]+)\)", re.M)


def scripts() -> list[Path]:
    """Return the scripts of the gallery, in the order of its page."""
    page = (ROOT / "docs/gallery/README.md").read_text(encoding="utf-8")
    found = sorted((ROOT / "docs/gallery").glob("[0-9]*.py"))
    for script in found:
        if f"({script.name})" not in page:
            raise DocsError(f"docs/gallery/README.md does not link {script.name}")
    return sorted(found, key=lambda script: page.index(f"({script.name})"))


def places() -> dict[str, str]:
    """Return the places on the site of all pages and pictures, by path in the repository."""
    guides = {f"docs/{page.name}": page.name for page in (ROOT / "docs").glob("*.md")}
    gallery = {f"docs/gallery/{s.name}": f"gallery/{s.stem}.md" for s in scripts()}
    figures = {
        f"docs/gallery/figures/{s.stem}.png": f"gallery/figures/{s.stem}.png" for s in scripts()
    }
    return {**guides, **gallery, **figures, **OWN_PLACES}


def navigation() -> str:
    """Return the tables of contents, one for each section of docs/README.md."""
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    at, parts = places(), []
    for section in re.split(r"^## ", index, flags=re.M)[1:]:
        caption, _, body = section.partition("\n")
        files = [_repository_path(entry["path"]) for entry in ENTRY.finditer(body)]
        entries = [at[file].removesuffix(".md") for file in files if at[file] != "index.md"]
        if caption == "Reference":
            entries.insert(0, "api/index")
        lines = "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *entries, "```"])
        parts.append(lines)
    return "\n\n".join(parts)


def _repository_path(path: str) -> str:
    return path.removeprefix("../") if path.startswith("../") else f"docs/{path}"


def stage(folder: Path, figures: Path, dot: bool) -> None:
    """Write the sources of the site to a folder.

    Parameters
    ----------
    folder
        Where to write; what is there already is removed.
    figures
        The folder of the gallery's figures, and of what its scripts print; those that are not there
        are left out.
    dot
        Whether Graphviz is there to draw flowcharts.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "gallery/figures").mkdir(parents=True)
    at = places()
    for script in scripts():
        _copy(figures / f"{script.stem}.png", folder / f"gallery/figures/{script.stem}.png")
        _copy(script, folder / "gallery" / script.name)
    for file, place in at.items():
        if file.endswith(".md"):
            text = (ROOT / file).read_text(encoding="utf-8")
            text, others = relinked(text, file, at, ROOT)
            for other in others:
                _copy(ROOT / other, folder / download(other))
            text = drawn(text) if dot else plain(text)
            if file == "docs/gallery/README.md":
                text = _with_scripts(_without_missing(text, folder / "gallery"))
            if file == "README.md":
                text = f"{text}\n\n{navigation()}\n"
            if file == "docs/README.md":
                text = f"---\norphan: true\n---\n\n{text}"
            (folder / place).write_text(text, encoding="utf-8")
    gallery = (ROOT / "docs/gallery/README.md").read_text(encoding="utf-8")
    for script in scripts():
        there = (folder / f"gallery/figures/{script.stem}.png").is_file()
        output = figures / f"{script.stem}.txt"
        printed = output.read_text(encoding="utf-8") if output.is_file() else ""
        page = script_page(script, title(script.name, gallery), there, printed)
        (folder / f"gallery/{script.stem}.md").write_text(page, encoding="utf-8")
    shutil.copytree(ROOT / "docs/site/api", folder / "api")
    shutil.copy(ROOT / "docs/site/conf.py", folder)


def _copy(source: Path, target: Path) -> None:
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def _with_scripts(text: str) -> str:
    names = "\n".join(script.stem for script in scripts())
    return f"{text}\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def _without_missing(text: str, gallery: Path) -> str:
    """Leave out the pictures of figures that were not drawn."""

    def kept(picture: re.Match[str]) -> str:
        return picture[0] if (gallery / picture[1]).is_file() else ""

    return re.sub(r"^!\[[^\]]*\]\(([^)]+)\)$", kept, text, flags=re.M)
