"""Writing checkpoints, from which an interrupted run resumes to the same bits.

A checkpoint is one safetensors file: the `State` of a run (state_schema.py), and a description of
the model, the data and the settings, by which the checkpoint of another run is recognised. It is
written to a new file, which then replaces the old one, so that a run killed while writing loses
nothing; the previous checkpoint stays as `path.before`. `resuming.py` reads checkpoints.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import save_file

from svmp.errors import FileError, ModelError
from svmp.inference.checkpoints.recipes import recipe
from svmp.inference.checkpoints.state_schema import describe_state, state_tensors
from svmp.inference.running.run import Run
from svmp.writing import as_path, begins_as, check_place, refuse_other, written_beside

FORMAT = 5
KEY, WHAT = "svmp-run", "a checkpoint"


@dataclass
class Checkpoints:
    """Writes a checkpoint of a run at regular intervals.

    Attributes
    ----------
    every
        "30s", "5m", "2h", or a number of iterations.
    spoilt
        Whether the existing file is damaged, so that it must not replace the previous checkpoint.
    """

    path: Path
    every: str | int
    spoilt: bool = False
    _last: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.seconds, self.iterations = parse_every(self.every)
        check_place(self.path, is_checkpoint, WHAT)
        refuse_other(before(self.path), is_checkpoint, WHAT)

    def __call__(self, run: Run) -> None:
        """Write the run if a checkpoint is due."""
        due = (
            run.state.iteration % self.iterations == 0
            if self.iterations
            else time.monotonic() - self._last >= self.seconds
        )
        if due:
            self.write(run)

    def write(self, run: Run) -> None:
        """Write the run now."""
        self._last = time.monotonic()
        run.program.collect(run.state.q)
        about = {
            "format": FORMAT,
            **describe_state(run.state, run.budget.seconds),
            "settings": settings(run),
            "model": run.program.description,
        }
        for place in (self.path, before(self.path)):  # hours may have passed since the start
            refuse_other(place, is_checkpoint, WHAT)
        try:
            with written_beside(self.path) as draft:
                save_file(state_tensors(run.state), draft, metadata={KEY: json.dumps(about)})
                if self.path.exists() and not self.spoilt:
                    os.replace(self.path, before(self.path))
        except (OSError, SafetensorError) as error:
            raise FileError(f"{self.path}: cannot write the checkpoint ({error})") from None
        self.spoilt = False


def checkpoints_at(path: str | os.PathLike[str] | None, every: str | int) -> Checkpoints | None:
    """Return the checkpoints that are to be written; refuse a file that is not a checkpoint."""
    return None if path is None else Checkpoints(as_path(path, "checkpoint"), every)


def parse_every(every: str | int) -> tuple[float, int]:
    """Return the interval between two checkpoints, in seconds or in iterations; the other is 0.

    >>> parse_every("5m"), parse_every(10)
    ((300.0, 0), (0.0, 10))
    """
    if isinstance(every, int) and every > 0:
        return 0.0, every
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", str(every))
    if found is None:
        raise ModelError(
            f'every must be like "30s", "5m", "2h" or a number of iterations, as 10, not {every!r}'
        )
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]], 0


def before(path: Path) -> Path:
    """Return the path of the previous checkpoint."""
    return path.with_name(path.name + ".before")


def is_checkpoint(path: Path) -> bool:
    """Return whether a file is a checkpoint, whole or damaged."""
    return begins_as(path, KEY)


def settings(run: Run) -> dict[str, Any]:
    """Return the settings of a run, as JSON."""
    program, held_out = run.program, run.recorder.held_out
    return {
        "method": recipe(program.method),
        "steps": recipe(program.policy),
        "seed": program.seed,
        "tol": run.tol,
        "persistent": run.persistent,
        "kernels": program.kernels,
        "held_out": None if held_out is None else held_out.fingerprint,
        "joint": [list(block.names) for block in program.setup.joint],
    }
