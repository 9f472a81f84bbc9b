"""Builds the site: `python docs/site/build.py build/site`, or `make docs` with all figures.

Warnings of Sphinx are errors: a link without a target, a page that no section lists, a docstring
that cannot be read.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from links import DocsError
from stage import ROOT, stage

FIGURES = ROOT / "docs/gallery/figures"


def build(out: Path, figures: Path = FIGURES) -> int:
    """Write the site to a folder; return 0 if there was no warning."""
    from sphinx.cmd.build import build_main

    source = out / "source"
    stage(source, figures, dot=shutil.which("dot") is not None)
    options = [
        "-b",
        "html",
        "-W",
        "-n",
        "-q",
        "-E",
        "-a",
        "--keep-going",
        "-d",
        str(out / "doctrees"),
    ]
    return build_main([*options, str(source), str(out / "html")])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="folder to write to")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="folder of the figures")
    given = parser.parse_args()
    try:
        status = build(given.out.resolve(), given.figures.resolve())
    except DocsError as error:
        print(f"The site cannot be built: {error}.", file=sys.stderr)
        return 1
    if status == 0:
        print(f"The site: {given.out / 'html' / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
