"""What `import svmp` and `svmp --help` import: nothing heavy before it is used."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import svmp

ROOT = Path(__file__).parents[1]
HEAVY = ("numba", "scipy", "polars", "pyarrow", "matplotlib", "dask", "pandas", "narwhals")
NAMES = """
import json, sys
{code}
print("\\n" + json.dumps(sorted({{name.split(".")[0] for name in sys.modules}})))
"""
HELP = """
from svmp.cli import main
sys.argv = {words}
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


@pytest.mark.parametrize("command", ["", "lab", "recommend", "recommend fit", "study"])
def test_help_imports_nothing_heavy(command: str) -> None:
    words = ["svmp", *command.split(), "--help"]
    assert not imported(HELP.format(words=words)) & {"numpy", *HEAVY}


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


BARE = """
import importlib.metadata, re, sys

def plain(name):
    return name.lower().replace("_", "-")

def requirements(name):
    try:
        lines = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:  # not on this system
        lines = []
    return [plain(re.match("[A-Za-z0-9_.-]+", x)[0]) for x in lines if "extra ==" not in x]

core = ["svmp"]
for name in core:
    core += [other for other in requirements(name) if other not in core]
there = importlib.metadata.packages_distributions()
blocked = {top for top, names in there.items() if not {*map(plain, names)} & {*core}}
assert {"polars", "pyarrow", "matplotlib", "fastapi", "uvicorn"} <= blocked

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""
"""No package is there but those that svmp needs without an extra."""
ALL_HELP = """
import contextlib, io
from typer.main import get_command
from svmp.cli import COMMANDS, app

def helps(command, *names):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            get_command(app)([*names, "--help"], prog_name="svmp")
        except SystemExit as end:
            assert not end.code, names
    assert "Usage: svmp" in text.getvalue(), names
    print(*names, sep=".")
    for name, below in getattr(command, "commands", {}).items():
        helps(below, *names, name)

for name, command in COMMANDS.items():
    helps(get_command(command.get()), name)
"""
RUNS = {
    "recommend fit ratings.csv -o m.svmp": "recommend",
    "recommend evaluate ratings.csv": "recommend",
    "recommend partition ratings.csv parts": "recommend",
    "recommend update MODEL ratings.csv": "recommend",
    "recommend top MODEL --user 1": "recommend",
    "recommend similar MODEL --item 1": "recommend",
    "recommend fold-in MODEL --rated 1=4": "recommend",
    "recommend serve --no-open": "serve",
    "lab --no-open": "study",
    "study figure2 --out study": "study",
}


def bare(code: str, *arguments: str, at: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run code where no extra is installed."""
    command = [sys.executable, "-c", BARE + code, *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=at, env=env)


def test_help_of_every_command_needs_no_extra() -> None:
    done = bare(ALL_HELP)
    assert done.returncode == 0, done.stderr
    named = set(done.stdout.split())
    assert {"lab", "warm", "study.all", "recommend.fit", "recommend.serve"} <= named


@pytest.mark.parametrize("command", RUNS)
def test_a_command_without_its_extra_says_which_to_install(command: str, tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text("user,item,rating\n1,1,4\n")
    model = str(ROOT / "svmp" / "recommend" / "service" / "films" / "model.svmp")
    words = [model if word == "MODEL" else word for word in command.split()]
    done = bare("from svmp.cli import main; main()", *words, at=tmp_path)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert f"svmp[{RUNS[command]}]" in line


def test_recommend_is_imported_without_its_extra() -> None:
    names = "assert {'RatingModel', 'split'} <= set(dir(svmp.recommend))"
    done = bare(f"import svmp.recommend; {names}; svmp.recommend.RatingModel")
    last = done.stderr.splitlines()[-1]
    assert last == "svmp.errors.ExtraError: this needs polars: pip install 'svmp[recommend]'"
    assert bare("import svmp.recommend; svmp.recommend.split.random").returncode == 0


def test_names_of_the_recommender() -> None:
    import svmp.recommend

    for name in svmp.recommend.__all__:
        assert getattr(svmp.recommend, name) is not None
    assert set(svmp.recommend._MODULES) | {"split"} == set(svmp.recommend.__all__)
    files = {path.stem for path in Path(svmp.recommend.__file__).parent.iterdir()}
    assert files & set(svmp.recommend.__all__) == {"split"}  # a module that is public itself
    with pytest.raises(AttributeError, match="no attribute 'RatingsModel'"):
        _ = svmp.recommend.RatingsModel
