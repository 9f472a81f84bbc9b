"""What `import svmp` and `svmp --help` import: nothing heavy before it is used."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import svmp

HEAVY = ("numba", "scipy", "polars", "pyarrow", "matplotlib", "dask", "pandas", "narwhals")
NAMES = """
import json, sys
{code}
print("\\n" + json.dumps(sorted({{name.split(".")[0] for name in sys.modules}})))
"""
HELP = """
from svmp.cli import main
sys.argv = ["svmp", "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code
"""
FIT = """
import svmp
with svmp.Model() as model:
    rate = svmp.Gamma("rate", alpha=2, beta=1)
    svmp.Poisson("count", mu=rate, observed=[3, 4, 8])
svmp.fit(model)
"""


def imported(code: str) -> set[str]:
    """Return the packages that a process has imported after some code."""
    command = [sys.executable, "-c", NAMES.format(code=code)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return set(json.loads(out.stdout.splitlines()[-1]))


def test_import_svmp_imports_nothing_heavy() -> None:
    assert not imported("import svmp") & {"numpy", "rich", "typer", "safetensors", *HEAVY}


def test_help_imports_nothing_heavy() -> None:
    assert not imported(HELP) & {"numpy", *HEAVY}


def test_a_fit_imports_no_data_frames_and_draws_nothing() -> None:
    unused = set(HEAVY) - {"numba", "scipy"} | {"rich"}
    assert not imported(FIT) & unused


def test_every_public_name_can_be_used() -> None:
    for name in svmp.__all__:
        assert svmp.__getattr__(name) is not None
    assert set(svmp.__all__) <= set(dir(svmp))


def test_names_for_type_checkers_are_those_that_are_imported() -> None:
    tree = ast.parse(Path(svmp.__file__).read_text())
    checked = {
        alias.name: line.module
        for block in tree.body
        if isinstance(block, ast.If)
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    assert checked == svmp._MODULES
    assert set(checked) == set(svmp.__all__)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'svmp' has no attribute 'Norml'"):
        _ = svmp.Norml
