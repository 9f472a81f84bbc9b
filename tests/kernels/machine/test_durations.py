"""Durations beside the cache: read back as written, and ignored where they are damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from svmp.kernels.machine import durations


def test_durations_are_read_as_they_were_written(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "svmp-1"
    assert durations.read_durations(folder) == {}
    durations.add_durations(folder, {"sweeps": 12.34, "topics": 3})
    assert durations.read_durations(folder) == {"sweeps": 12.3, "topics": 3}
    durations.add_durations(folder, {"sweeps": 5})
    assert durations.read_durations(folder) == {"sweeps": 5, "topics": 3}
    assert [path.name for path in folder.parent.iterdir()] == [durations.NAME]


@pytest.mark.parametrize(
    "text",
    ["", "[1, 2]", "{", "nonsense", "[" * 100_000, '{"sweeps": "' + 70_000 * "x" + '"}', "\xff"],
)
def test_damaged_files_are_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / durations.NAME).write_bytes(text.encode("latin-1"))
    assert durations.read_durations(tmp_path / "svmp-1") == {}


def test_impossible_durations_are_ignored(tmp_path: Path) -> None:
    text = '{"a": -1, "b": NaN, "c": Infinity, "d": 1e9, "e": true, "f": "3", "g": null, "h": 2}'
    (tmp_path / durations.NAME).write_text(text)
    assert durations.read_durations(tmp_path / "svmp-1") == {"h": 2.0}


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    durations.add_durations(tmp_path / "file" / "svmp-1", {"sweeps": 1.0})
