"""Loads the scripts of the gallery, whose names start with digits, as modules."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "gallery"


@cache
def load(stem: str) -> ModuleType:
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))  # the scripts share _style.py
    spec = importlib.util.spec_from_file_location(f"gallery_{stem}", FOLDER / f"{stem}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def script(request: pytest.FixtureRequest) -> ModuleType:
    """The script that a test file is named after: test_05_gaussian_mixture.py."""
    return load(Path(request.path).stem.removeprefix("test_"))
