"""Adding a distribution by following CONTRIBUTING.md literally, in a copy of the repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .pages import ROOT, blocks

PAGE = ROOT / "CONTRIBUTING.md"
PARTS = ("svmp", "tests", "docs", "pyproject.toml", "README.md", "CONTRIBUTING.md")


def touched() -> list[str]:
    """Return the Python files that the page adds or changes."""
    files = [
        block.file or block.text.split("\n", 1)[0].removeprefix("--- ")
        for block in blocks(PAGE)
        if block.file is not None or block.language == "diff"
    ]
    return [file for file in files if file.endswith(".py")]


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Return a copy of the repository with all changes of the page applied."""
    skip = shutil.ignore_patterns("__pycache__", "*.nbc", "*.nbi")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tmp_path / part, ignore=skip)
        else:
            shutil.copy(ROOT / part, tmp_path / part)
    for block in blocks(PAGE):
        if block.file is not None:
            target = tmp_path / block.file
            assert not target.exists(), f"{block.file} is there already"
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "diff":
            apply(block.text, tmp_path)
    return tmp_path


def apply(diff: str, root: Path) -> None:
    """Insert the lines with a plus after the line before them."""
    header, *lines = diff.splitlines()
    path = root / header.removeprefix("--- ")
    text = path.read_text(encoding="utf-8").split("\n")
    place = 0
    for line in lines:
        if line.startswith("+"):
            text.insert(place, line[1:])
            place += 1
        elif not line.startswith("@@"):
            assert line[1:] in text[place:], f"{path.name} has no line {line[1:]!r}"
            place = text.index(line[1:], place) + 1
    path.write_text("\n".join(text), encoding="utf-8")


def run(folder: Path, *command: str) -> str:
    """Run a Python module in a folder; return its output, or fail with it."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_added_distribution_works(scratch: Path) -> None:
    run(scratch, "ruff", "format", "--check", *touched())
    run(scratch, "ruff", "check", *touched())
    told = run(
        scratch, "pytest", "-q", "-p", "no:cacheprovider",
        "tests/network/test_geometric.py", "svmp/families/geometric.py",
        "svmp/factors/geometric.py",
        "tests/docs/test_docs.py::test_the_table_of_distributions_matches_the_factors",
    )  # fmt: skip
    assert "5 passed" in told


def test_the_added_method_and_step_policy_work(scratch: Path) -> None:
    told = run(
        scratch,
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/inference/methods/test_in_order.py",
    )
    assert "4 passed" in told


@pytest.mark.slow
def test_the_added_distribution_passes_the_generic_tests(scratch: Path) -> None:
    told = run(
        scratch, "pytest", "-q", "-p", "no:cacheprovider", "-k", "Geometric",
        "tests/families", "tests/factors",
    )  # fmt: skip
    assert "skipped" not in told
    run(scratch, "mypy")
