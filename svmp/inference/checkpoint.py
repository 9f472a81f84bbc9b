"""Runs that can be stopped at any moment and go on to the same bits.

A checkpoint is one safetensors file with everything of a run that changes, and a description of
the model, the data and the settings, by which a checkpoint of another run is told apart. It is
written beside the old one and then takes its name, so that a run killed while writing loses
nothing; the one before stays as `path.before`.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from svmp.errors import FileError, ModelError
from svmp.inference.fingerprint import describe
from svmp.inference.held_out import HeldOut
from svmp.inference.run import Run
from svmp.inference.selection import Batch, Children, FullVB, Growing, Selection
from svmp.inference.steps import Constant, Grow, HoldThenDecay, Nodewise, RobbinsMonro, Steps
from svmp.inference.trace import Trace
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network

FORMAT = 1
COUNTERS = (
    "iteration",
    "accesses",
    "rollbacks",
    "damping",
    "moved",
    "bound_at",
    "bound_iteration",
    "settling",
)
KNOWN: dict[str, Any] = {
    c.__name__: c
    for c in (
        FullVB,
        Children,
        Batch,
        Growing,
        Constant,
        RobbinsMonro,
        HoldThenDecay,
        Nodewise,
        Grow,
    )
}


@dataclass
class Checkpoints:
    """Writes a checkpoint of a run from time to time.

    Attributes
    ----------
    every
        "30s", "5m", "2h", or a number of iterations.
    """

    path: Path
    every: str | int
    kernels: bool
    _last: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.seconds, self.iterations = parse_every(self.every)

    def __call__(self, run: Run) -> None:
        """Write the run if it is time to."""
        due = (
            run.iteration % self.iterations == 0
            if self.iterations
            else time.monotonic() - self._last >= self.seconds
        )
        if due:
            self.write(run)

    def write(self, run: Run) -> None:
        """Write the run now."""
        self._last = time.monotonic()
        arrays = {
            **tensors("natural", run.q.natural),
            **tensors("moments", {k: run.q.moments[k] for k in run.q.natural}),
            **tensors("total", run.window.total),
            **tensors("last", run.window.last),
            **tensors("last_moments", run.window.last_moments),
            **tensors("gradient", run.q.gradient),
            **tensors("square", run.q.square),
            **tensors("trace", run.trace.to_dict()),
        }
        if run.guard.sound is not None:
            arrays |= tensors("sound", run.guard.sound.natural)
            sound = run.guard.sound
            arrays |= tensors("sound_moments", {k: sound.moments[k] for k in sound.natural})
        about = {
            "format": FORMAT,
            "counters": {name: getattr(run, name) for name in COUNTERS},
            "window": [run.window.clock, run.window.count],
            "guard": run.guard.start.tolist(),
            "bound_terms": run.bound_terms,
            "seconds": run.budget.seconds,
            "columns": run.trace.columns,
            "settings": settings(run, self.kernels),
            "model": describe(run.network),
        }
        draft = self.path.with_name(self.path.name + ".part")
        try:
            save_file(arrays, draft, metadata={"svmp-run": json.dumps(about)})
            if self.path.exists():
                os.replace(self.path, before(self.path))
            os.replace(draft, self.path)
        except (OSError, SafetensorError) as error:
            raise FileError(f"{self.path}: cannot write the checkpoint ({error})") from None


def parse_every(every: str | int) -> tuple[float, int]:
    """Return the seconds or the iterations between two checkpoints.

    >>> parse_every("5m"), parse_every(10)
    ((300.0, 0), (0.0, 10))
    """
    if isinstance(every, int) and every > 0:
        return 0.0, every
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", str(every))
    if found is None:
        raise ModelError(f'every must be like "30s", "5m", "2h" or a number, not {every!r}')
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]], 0


def before(path: Path) -> Path:
    """Return the name of the checkpoint before."""
    return path.with_name(path.name + ".before")


def tensors(kind: str, arrays: dict[str, Any]) -> dict[str, np.ndarray]:
    """Name arrays for a file."""
    return {f"{kind}/{k}": np.ascontiguousarray(v) for k, v in arrays.items()}


@dataclass(frozen=True)
class Saved:
    """A checkpoint that was read."""

    path: Path
    about: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Saved:
        """Read a checkpoint; where it is damaged, the one before."""
        target, troubles = Path(path), []
        for candidate in (target, before(target)):
            try:
                return cls._read(candidate)
            except FileError as error:
                troubles.append(str(error))
        raise FileError("; ".join(troubles))

    @classmethod
    def _read(cls, path: Path) -> Saved:
        try:
            with safe_open(path, framework="numpy") as file:
                about = json.loads((file.metadata() or {}).get("svmp-run", "null"))
                arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except FileNotFoundError:
            raise FileError(f"{path}: there is no such file") from None
        except (SafetensorError, OSError, ValueError) as error:
            raise FileError(f"{path}: damaged, or not a checkpoint ({error})") from None
        if not isinstance(about, dict) or not isinstance(about.get("format"), int):
            raise FileError(f"{path}: not a checkpoint of svmp")
        if about["format"] > FORMAT:
            raise FileError(f"{path}: format {about['format']}, made by a newer version of svmp")
        return cls(path, about, arrays)

    def _of(self, kind: str) -> dict[str, np.ndarray]:
        start = len(kind) + 1
        return {k[start:]: v.copy() for k, v in self.arrays.items() if k.startswith(kind + "/")}

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.about["settings"]["seed"])

    @property
    def tol(self) -> float:
        """The tolerance of the run."""
        return float(self.about["settings"]["tol"])

    @property
    def persistent(self) -> bool:
        """Whether the run goes on after a divergence."""
        return bool(self.about["settings"]["persistent"])

    @property
    def kernels(self) -> bool:
        """Whether the run used the compiled loops, whose last bits differ from the plain way's."""
        return bool(self.about["settings"]["kernels"])

    def selection(self) -> Selection:
        """Make the algorithm anew."""
        return self._rebuilt("method")

    def steps(self) -> Steps:
        """Make the step policy anew."""
        return self._rebuilt("steps")

    def _rebuilt(self, what: str) -> Any:
        saved = self.about["settings"][what]
        if not isinstance(saved, dict) or saved["class"] not in KNOWN:
            raise FileError(f"{self.path}: made with {what}={saved}; give the same again to resume")
        return KNOWN[saved["class"]](**saved["fields"])

    def check(self, network: Network) -> None:
        """Refuse a checkpoint of another model or of other data, and say what differs."""
        now, then = describe(network), self.about["model"]
        for name in {**then, **now}:
            if name not in now or name not in then:
                place = "the checkpoint" if name not in now else "the model"
                raise FileError(f"{self.path}: only {place} has a variable '{name}'")
            for aspect, value in now[name].items():
                if then[name].get(aspect) != value:
                    raise FileError(
                        f"{self.path}: {aspect} of '{name}' differs: {then[name].get(aspect)} in "
                        f"the checkpoint, {value} in the model"
                    )

    def check_held_out(self, held: HeldOut | None) -> None:
        """Refuse other held-out values than those of the trace so far."""
        then = self.about["settings"].get("held_out")
        now = None if held is None else held.fingerprint
        if now != then:
            made = "without held_out" if then is None else "with other values in held_out"
            advice = "resume without" if then is None else "give the same again to resume"
            raise FileError(f"{self.path}: made {made}; {advice}")

    def restore(self, run: Run) -> None:
        """Put a run where the checkpoint was made."""
        run.q.natural.update(self._of("natural"))
        run.q.moments.update(self._of("moments"))
        run.q.gradient.update(self._of("gradient"))
        run.q.square.update(self._of("square"))
        for name, value in self.about["counters"].items():
            setattr(run, name, value)
        run.bound_terms = dict(self.about["bound_terms"])
        run.window.clock, run.window.count = self.about["window"]
        run.window.total, run.window.last = self._of("total"), self._of("last")
        run.window.last_moments = self._of("last_moments")
        columns = self._of("trace")
        run.trace = Trace({name: columns[name].tolist() for name in self.about["columns"]})
        run.guard.start = np.array(self.about["guard"])
        if not run.safe:
            run.guard.sound = Beliefs(
                self._of("sound"),
                {**run.q.moments, **self._of("sound_moments")},
                loops=run.q.loops,
                settled=run.q.settled,
            )
        run.budget.began = time.perf_counter() - self.about["seconds"]


def settings(run: Run, kernels: bool) -> dict[str, Any]:
    """Return what a run was asked to do, as JSON."""
    return {
        "method": recipe(run.method),
        "steps": recipe(run.steps),
        "seed": run.seed,
        "tol": run.tol,
        "persistent": run.persistent,
        "kernels": kernels,
        "held_out": None if run.held_out is None else run.held_out.fingerprint,
    }


def recipe(thing: Any) -> Any:
    """Return how to make one of svmp's own settings again, or its name if it is the user's."""
    name = type(thing).__name__
    if name in KNOWN and is_dataclass(thing) and not isinstance(thing, type):
        given = [f.name for f in fields(thing) if f.init and not f.name.startswith("_")]
        made = {name: asdict(thing)[name] for name in given}
        if isinstance(thing, RobbinsMonro):
            made["rho1"] = None  # it is in tau already
        try:
            json.dumps(made)
        except TypeError:
            return repr(thing)
        return {"class": name, "fields": made}
    return getattr(thing, "__qualname__", repr(thing))
