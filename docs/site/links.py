"""Links between files of the repository, as links between pages of the site.

A page is written for the repository's web page: `[steps](../docs/steps.md#steps)` is relative to
its own file. On the site some pages have other places (README.md is the front page), and files
that are no pages are offered for download.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#]*)(?P<anchor>#[^)\s]*)?(?=\))")


class DocsError(Exception):
    """A page that cannot be shown on the site, in one sentence."""


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """Change a page everywhere but in its fenced blocks."""
    pieces, end = [], 0
    for fence in FENCE.finditer(text):
        pieces += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*pieces, change(text[end:])])


def relinked(text: str, page: str, places: Mapping[str, str], root: Path) -> tuple[str, list[str]]:
    """Return a page with its links as they are on the site, and the other files that it links.

    Parameters
    ----------
    text
        The page in Markdown.
    page
        Its path in the repository.
    places
        By path in the repository, the path of each page and picture on the site.
    root
        The repository.
    """
    others: list[str] = []
    folder = posixpath.dirname(places[page])

    def target(link: re.Match[str]) -> str:
        path, anchor = link["path"], link["anchor"] or ""
        if not path or ":" in path:  # within the page, or on the web
            return link[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
        if file in places:
            return posixpath.relpath(places[file], folder or ".") + anchor
        if not (root / file).is_file():
            raise DocsError(f"{page} links to {path}, which is no file of the repository")
        others.append(file)
        return posixpath.relpath(download(file), folder or ".")

    return outside_fences(text, lambda part: LINK.sub(target, part)), others


def download(file: str) -> str:
    """Return the place on the site of a file that is not a page."""
    return str(PurePosixPath("files") / file)
