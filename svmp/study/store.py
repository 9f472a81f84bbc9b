"""The folder of a study: runs, tables and pages. A file is written as a whole or not at all."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from svmp.errors import StudyError
from svmp.ratings import parquet
from svmp.ratings.lines import MOST
from svmp.study.runs import COLUMNS, Result, Spec
from svmp.study.settings import Settings
from svmp.writing import written_beside

ABOUT = "study.json"
PACKAGES = ("svmp", "numpy", "numba", "scipy", "polars", "matplotlib", "plotly")


class Store:
    """The folder of one study."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check_place(self, force: bool = False) -> None:
        """Refuse a path that is not a folder, or a folder that holds something else."""
        try:
            if self.folder.exists() and not self.folder.is_dir():
                raise StudyError(f"--out {self.folder}: a file, not a folder")
            foreign = self.folder.exists() and self.about() is None and any(self.folder.iterdir())
        except OSError as error:
            raise StudyError(f"--out {self.folder}: {os.strerror(error.errno or 0)}") from None
        if foreign and not force:
            raise StudyError(
                f"--out {self.folder}: the folder has other things in it, which are left alone; "
                "name another, or give --force to write there all the same"
            )

    def check(self, settings: Settings, digest: str, force: bool = False) -> None:
        """Refuse a folder that holds a study with other settings."""
        about = self.about()
        if about is None or force:
            return
        other = settings.differences(about.get("settings", {}))
        if about.get("digest") != digest and not other:
            other = ["ratings that have changed since"]
        if other:
            raise StudyError(
                f"--out {self.folder}: there is a study with {'; '.join(other)}; "
                "name another folder, or give --force to replace it"
            )

    def about(self) -> dict[str, Any] | None:
        """Return the description of the study in the folder, if there is one."""
        try:
            if not (self.folder / ABOUT).is_file():  # a pipe would never end
                return None
            about = json.loads((self.folder / ABOUT).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        return about if isinstance(about, dict) and "svmp_study" in about else None

    def open(self, about: dict[str, Any]) -> None:
        """Make the folder, and write the description of the study."""
        made = {"svmp_study": 1, "versions": versions(), **about}
        self.write_text(ABOUT, json.dumps(made, indent=2) + "\n")

    # --- runs -------------------------------------------------------------------------------

    def keep(self, key: str, result: Result) -> None:
        """Write a run; its description is written last, and says that it is complete."""
        table = pl.DataFrame(result.trace)
        self.write_table(f"runs/{key}.parquet", table)
        ended = {k: v for k, v in vars(result).items() if k not in ("spec", "trace")}
        about = {"spec": asdict(result.spec), **ended, "versions": versions()}
        self.write_text(f"runs/{key}.json", json.dumps(about, indent=2) + "\n")

    def find(self, key: str, spec: Spec) -> Result | None:
        """Return a run that was made before; None if there is none, or if it is damaged."""
        place = self.folder / "runs"
        try:
            about = json.loads((place / f"{key}.json").read_text(encoding="utf-8"))
            table = parquet.read(place / f"{key}.parquet", MOST)
            trace = {c: table[c].to_numpy() for c in COLUMNS}
            same = about["versions"]["svmp"] == version("svmp") and about["spec"] == asdict(spec)
            if not same or not np.isfinite(about["bound"]):
                return None
            names = ("status", "bound", "iterations", "accesses", "seconds", "where")
            return Result(spec, trace=trace, **{n: about[n] for n in names})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    # --- files ------------------------------------------------------------------------------

    def write_table(self, name: str, table: pl.DataFrame) -> None:
        """Write a table as Parquet."""
        self.write(name, lambda draft: table.write_parquet(draft))

    def write_text(self, name: str, text: str) -> None:
        """Write a file of text."""
        self.write(name, lambda draft: draft.write_text(text, encoding="utf-8") and None)

    def write(self, name: str, make: Callable[[Path], object]) -> None:
        """Write a temporary file beside the target, and rename it when it is complete."""
        target = self.folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with written_beside(target) as draft:
                make(draft)
        except (OSError, pl.exceptions.PolarsError) as error:
            number = getattr(error, "errno", None)
            reason = os.strerror(number) if number else error
            raise StudyError(
                f"{target}: cannot be written ({reason}); what was written before is kept"
            ) from None


def versions() -> dict[str, str]:
    """Return the versions of the software that computes the numbers."""
    found = {name: version(name) for name in PACKAGES}
    return {"python": platform.python_version(), **found, "machine": platform.machine()}
