"""The wheel works in an empty environment, with each extra alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from .uses import USES

ROOT = Path(__file__).parents[2]


def run(*command: object, cwd: Path) -> str:
    """Run a command that sees neither this repository nor its environment; return its output."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONWARNINGS")
    env = {key: value for key, value in os.environ.items() if key not in hidden}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution, and the wheel from that."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def declared_extras() -> set[str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return set(tomllib.load(file)["project"]["optional-dependencies"])


def test_every_extra_for_users_has_a_use() -> None:
    assert set(USES) - {""} == declared_extras()


@pytest.mark.slow
def test_the_wheel_has_all_files_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("svmp/")}
    listed = run("git", "ls-files", "svmp", cwd=ROOT).split()
    assert packed == set(listed)


@pytest.mark.slow
@pytest.mark.parametrize("extra", USES, ids=lambda extra: extra or "no extra")
def test_the_wheel_works_with_one_extra(
    extra: str, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(wheel.parent / "loops"))  # compiled once for all
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    wanted = f"{wheel}[{extra}]" if extra else wheel
    run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wanted, cwd=tmp_path)
    (tmp_path / "use.py").write_text(USES[extra], encoding="utf-8")
    run(python, "use.py", cwd=tmp_path)
