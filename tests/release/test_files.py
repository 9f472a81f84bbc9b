"""The files of a release: workflows, templates and the citation say what is true."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import svmp

ROOT = Path(__file__).parents[2]
yaml = pytest.importorskip("yaml")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def content(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_that_exist(path: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    steps = [step for job in content(path)["jobs"].values() for step in job["steps"]]
    called = [t for step in steps for t in re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))]
    assert called or path.stem == "release"
    assert set(called) <= set(targets)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_store_no_secrets(path: Path) -> None:
    assert "secrets." not in path.read_text(encoding="utf-8")
    assert content(path)["permissions"] == {"contents": "read"}


def test_the_matrix_has_every_declared_version_of_python() -> None:
    declared = re.findall(
        r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    )
    jobs = content(ROOT / ".github" / "workflows" / "test.yml")["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == declared


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_issue_templates_ask_for_something(path: Path) -> None:
    if path.stem != "config":
        asked = content(path)
        assert asked["name"]
        assert asked["description"]
        assert any(field.get("validations", {}).get("required") for field in asked["body"])


def test_the_citation_has_this_version_and_the_paper() -> None:
    citation = content(ROOT / "CITATION.cff")
    assert citation["version"] == svmp.__version__
    assert citation["license"] in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert citation["references"][0]["title"] in readme.replace("\n", " ")


def test_lower_bounds_are_the_versions_that_are_tested() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras = project["optional-dependencies"]
    declared = [
        *project["dependencies"],
        *(need for name in extras if name not in ("docs", "test") for need in extras[name]),
    ]
    bounds = dict(
        re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", need).groups()
        for need in declared
        if not need.startswith("svmp[")
    )
    pinned = dict(
        re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / "constraints-lowest.txt").read_text(), re.M)
    )
    tested = {name: pinned[name] for name in bounds}
    assert {n: release(v) for n, v in bounds.items()} == {n: release(v) for n, v in tested.items()}


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version without zeros at its end: 2.0.0 is 2."""
    numbers = [int(number) for number in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
