"""Every script runs from the command line, is shown on the page, and works without real data."""

from __future__ import annotations

import subprocess
import sys

import pytest
from PIL import Image

import svmp

from .conftest import FOLDER, load

SCRIPTS = sorted(path.stem for path in FOLDER.glob("[0-9][0-9]_*.py"))


def test_numbers_of_scripts_are_distinct():
    numbers = [stem[:2] for stem in SCRIPTS]
    assert len(set(numbers)) == len(numbers) >= 13


@pytest.mark.parametrize("stem", SCRIPTS)
@pytest.mark.filterwarnings("error")
def test_script_prints_and_draws(stem, tmp_path, capsys):
    figure = tmp_path / "figure.png"
    load(stem).main(figure)
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) >= 3, "a script prints the few numbers that matter"
    with Image.open(figure) as image:
        assert image.width >= 800
    assert figure.stat().st_size < 100_000


def test_script_runs_from_the_command_line(tmp_path):
    figure = tmp_path / "figure.png"
    command = [sys.executable, "-W", "error", FOLDER / "12_streaming.py", figure]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert figure.is_file()


@pytest.mark.parametrize("stem", SCRIPTS)
def test_page_shows_the_figure_and_links_the_script(stem):
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"(figures/{stem}.png)" in page
    assert f"({stem}.py)" in page
    assert (FOLDER / "figures" / f"{stem}.png").stat().st_size < 100_000


@pytest.mark.parametrize(
    "stem", ["05_gaussian_mixture", "07_topics", "10_tensor", "11_football", "13_parts"]
)
def test_generated_data_are_used_where_real_data_are_absent(stem, tmp_path, monkeypatch):
    script = load(stem)
    monkeypatch.setattr(script, "SHARED", tmp_path / "absent")
    data = script.data()
    if stem == "05_gaussian_mixture":
        network = script.model(script.standardised(data))
    elif stem == "07_topics":
        document, word, year, vocabulary = data
        network = script.model(document, word, len(year), len(vocabulary))
    elif stem == "13_parts":
        network = svmp.Parts(script.model, data)
    elif stem == "10_tensor":
        network = script.model(data[0])
    else:
        *rows, names = data
        network = script.model(*rows, teams=len(names))
    fit = svmp.fit(network, svmp.FullVB(), max_sweeps=3)
    assert fit.trace["bound"][-1] > fit.trace["bound"][0]
