"""One network under trial: its fits, each with the code that repeats it."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import svmp

from .spec import Spec
from .truth import Truth, truth


class Broken(AssertionError):
    """A law does not hold."""


class Skip(Exception):
    """A law says nothing about this network."""


class Refused(Skip):
    """The library refused the network, or a call, with one of its errors."""


class Case:
    """A network, what is known about it, and what was run; random choices come from Hypothesis."""

    def __init__(self, spec: Spec, draw: Callable[..., Any]) -> None:
        self.spec = spec
        self.draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 2**16)))
        self.models: dict[int, tuple[Spec, svmp.Model]] = {}
        self.fits: dict[tuple[int, str], svmp.Fit] = {}
        self.log: list[str] = []
        self.scope: dict[str, Any] = {"np": np, "svmp": svmp}

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def use_folder(self) -> None:
        """Give the code a `folder` for files, which is removed at the end."""
        self.scope["folder"] = Path(tempfile.mkdtemp())
        self.log.append("from pathlib import Path; folder = Path('.')")

    def close(self) -> None:
        if "folder" in self.scope:
            shutil.rmtree(self.scope["folder"])

    @cached_property
    def truth(self) -> Truth | None:
        return truth(self.spec)

    def model(self, spec: Spec | None = None) -> svmp.Model:
        """Return the model of a network, which is built once and noted in the log."""
        spec = self.spec if spec is None else spec
        if id(spec) not in self.models:
            self.log.append(spec.code())
            with self.watched("the declaration"):
                self.models[id(spec)] = (spec, spec.build())
        return self.models[id(spec)][1]

    def run(self, code: str, spec: Spec | None = None, **names: Any) -> Any:
        """Run an expression with `model`, the network's model, and other names."""
        self.scope["model"] = self.model(spec)
        self.scope |= names
        self.log.append(code)
        with self.watched(code):
            return eval(code, self.scope)

    def fit(self, code: str = "svmp.fit(model)", spec: Spec | None = None) -> svmp.Fit:
        """Return the fit by an expression; each is run once."""
        spec = self.spec if spec is None else spec
        key = (id(spec), code)
        if key not in self.fits:
            self.scope["model"] = self.model(spec)
            self.log.append(f"fit = {code}")
            with self.watched(code):
                self.fits[key] = eval(code, self.scope)
            sound(self.fits[key], code)
        self.scope["fit"] = self.fits[key]
        return self.fits[key]

    @contextmanager
    def watched(self, what: str) -> Iterator[None]:
        """Let the library's errors pass as refusals; any other error or warning breaks the law."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", svmp.ConvergenceWarning)
            try:
                yield
            except svmp.SvmpError as error:
                text = str(error)
                if not text or "\n" in text or len(text) > 400:
                    raise Broken(f"{what}: an error that is no sentence: {text}") from error
                raise Refused(text) from error
            except (Broken, Skip):
                raise
            except Exception as error:
                raise Broken(f"{what}: {type(error).__name__}: {error}") from error

    def script(self) -> str:
        """Return code that repeats what was run."""
        return "\n".join(self.log)


def sound(fit: svmp.Fit, code: str) -> None:
    """Check what holds for every fit: finite numbers, positive variances, a status."""
    if fit.status not in ("converged", "budget", "diverged", "interrupted"):
        raise Broken(f"{code}: status {fit.status}")
    if fit.status == "diverged" and "steps" not in code and "Batch" not in code:
        raise Broken(f"{code}: diverged with unit steps")
    if not np.isfinite(fit.bound):
        raise Broken(f"{code}: bound {fit.bound}")
    terms = sum(fit.bound_terms.values())
    size = sum(abs(t) for t in fit.bound_terms.values())
    if abs(terms - fit.bound) > 1e-9 * (1 + size):
        raise Broken(f"{code}: bound {fit.bound}, sum of its terms {terms}")
    for name in fit.posteriors:
        mean = np.asarray(fit.mean(name))
        if not np.isfinite(mean).all():
            raise Broken(f"{code}: mean of {name}: {mean}")
        var = np.asarray(fit.var(name))
        if np.isnan(var).any() or (var < 0).any():
            raise Broken(f"{code}: variance of {name}: {var}")
