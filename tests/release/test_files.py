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


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_use_actions_by_hash_with_their_version(path: Path) -> None:
    used = re.findall(r"uses: (.*)$", path.read_text(encoding="utf-8"), re.M)
    assert used
    for action in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_an_action_has_one_hash_in_all_workflows() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    used = set(re.findall(r"uses: (.*)@(.*)$", text, re.M))
    assert len(used) == len({name for name, _ in used})


def test_the_tests_run_on_all_three_systems() -> None:
    jobs = content(ROOT / ".github" / "workflows" / "test.yml")["jobs"]
    assert jobs["test"]["runs-on"] == "ubuntu-latest"
    assert jobs["systems"]["strategy"]["matrix"]["system"] == ["macos-latest", "windows-latest"]


def test_updates_are_proposed_for_actions_and_for_packages() -> None:
    updates = content(ROOT / ".github" / "dependabot.yml")["updates"]
    assert {u["package-ecosystem"] for u in updates} == {"github-actions", "pip"}


def pins(file: str) -> dict[str, str]:
    """Return the pinned version of each package, by its normalised name."""
    text = (ROOT / file).read_text(encoding="utf-8")
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.M)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def test_the_lock_file_has_the_pinned_versions_with_hashes() -> None:
    locked = pins("requirements.lock")
    on_windows_only = {"colorama"}
    assert {n: v for n, v in locked.items() if n not in on_windows_only} == pins("constraints.txt")
    for file in ("requirements.lock", ".github/sbom.lock"):
        text = (ROOT / file).read_text(encoding="utf-8")
        assert "://" not in text, "a lock file names no index"
        packages = re.split(r"^(?=[\w.-]+==)", text, flags=re.M)[1:]
        assert len(packages) == len(pins(file))
        assert all(re.search(r"--hash=sha256:[0-9a-f]{64}\b", package) for package in packages)


def test_the_lock_file_has_all_that_is_declared() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        declared = tomllib.load(file)
    project, groups = declared["project"], declared["dependency-groups"]
    needs = [*project["dependencies"]]
    for some in (*project["optional-dependencies"].values(), *groups.values()):
        needs += [need for need in some if isinstance(need, str)]
    names = {re.match(r"[\w.-]+", need)[0].lower() for need in needs} - {"svmp"}
    assert names - pins("requirements.lock").keys() == set()
    included = {g["include-group"] for g in groups["dev"]}
    assert included == groups.keys() - {"dev"}


def test_the_links_of_the_project_lead_to_the_paper() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        urls = tomllib.load(file)["project"]["urls"]
    assert urls["Paper"] in (ROOT / "README.md").read_text(encoding="utf-8")


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
        *(need for needs in extras.values() for need in needs),
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
