"""What `fit` returns: q, its bound, how the run ended, and all of it in a file and back."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from svmp import families
from svmp.errors import FileError
from svmp.families.family import Array
from svmp.inference.posterior import Posterior
from svmp.inference.run import Run
from svmp.inference.trace import Trace

FORMAT = 1


@dataclass(frozen=True, eq=False)
class Fit:
    """The approximate posterior, and an honest word on how it came about.

    Attributes
    ----------
    status
        "converged", "budget", "diverged" or "interrupted".
    bound_terms
        The exact bound of this q, as one term for each variable.
    trace
        The run, iteration by iteration.
    posteriors
        q by variable; `fit["u"]` for short.
    """

    status: str
    bound_terms: dict[str, float]
    trace: Trace
    posteriors: dict[str, Posterior]

    @classmethod
    def of(cls, run: Run, status: str) -> Fit:
        """Gather the result of a run."""
        posteriors = {
            name: Posterior(name, v.dims, v.plate.shape, v.family, run.q.natural[name])
            for name, v in run.network.hidden.items()
        }
        return cls(status, run.bound_terms, run.trace, posteriors)

    @property
    def bound(self) -> float:
        """The evidence lower bound of the q that is returned, in nats."""
        return sum(self.bound_terms.values())

    def __getitem__(self, name: str) -> Posterior:
        if name not in self.posteriors:
            raise KeyError(f"no hidden variable '{name}'; there are {list(self.posteriors)}")
        return self.posteriors[name]

    def mean(self, name: str) -> Array:
        """Return the posterior mean, with the variable's dims."""
        return self[name].mean

    def var(self, name: str) -> Array:
        """Return the posterior variance, with the variable's dims."""
        return self[name].var

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one safetensors file, whole or not at all."""
        tensors = {
            f"natural/{n}": np.ascontiguousarray(p.natural) for n, p in self.posteriors.items()
        }
        tensors |= {f"trace/{c}": np.asarray(self.trace[c], float) for c in self.trace.columns}
        variables = {}
        for name, p in self.posteriors.items():
            trials = getattr(p.family, "trials", None)
            if trials is not None:
                tensors[f"trials/{name}"] = np.ascontiguousarray(
                    np.asarray(trials, dtype=np.float64)
                )
            length = _length(p)
            variables[name] = {
                "family": type(p.family).__name__,
                "length": length,
                "dims": p.dims,
                "plate": p.plate,
            }
        about = {
            "format": FORMAT,
            "status": self.status,
            "bound_terms": self.bound_terms,
            "variables": variables,
        }
        target = Path(path)
        draft = target.with_name(target.name + ".part")
        save_file(tensors, draft, metadata={"svmp": json.dumps(about)})
        draft.replace(target)

    def __repr__(self) -> str:
        return (
            f"<Fit: {self.status} after {int(self.trace['iteration'][-1])} iterations, "
            f"bound {self.bound:,.6g}, q of {', '.join(self.posteriors)}>"
        )


def load(path: str | os.PathLike[str]) -> Fit:
    """Read a fit that was saved.

    >>> import svmp, tempfile, os
    >>> with svmp.Model() as model:
    ...     p = svmp.Beta("p", alpha=1, beta=1)
    ...     x = svmp.Bernoulli("x", p=p, observed=[1, 0, 1])
    >>> fit = svmp.fit(model)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit.save(os.path.join(folder, "coin.svmp"))
    ...     again = svmp.load(os.path.join(folder, "coin.svmp"))
    >>> again["p"].alpha == fit["p"].alpha
    np.True_
    """
    try:
        with safe_open(path, framework="numpy") as file:
            about: dict[str, Any] = json.loads((file.metadata() or {}).get("svmp", "null"))
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise FileError(f"{path}: damaged, or not a file that svmp saved ({error})") from None
    if about is None:
        raise FileError(f"{path}: a safetensors file, but not one that svmp saved")
    if about["format"] > FORMAT:
        raise FileError(f"{path}: format {about['format']}, made by a newer version of svmp")
    posteriors = {}
    for name, v in about["variables"].items():
        family = getattr(families, v["family"]).sized(v["length"])
        if f"trials/{name}" in tensors:
            family = replace(family, trials=tensors[f"trials/{name}"])
        posteriors[name] = Posterior(
            name, tuple(v["dims"]), tuple(v["plate"]), family, tensors[f"natural/{name}"]
        )
    trace = Trace({k[6:]: list(t) for k, t in tensors.items() if k.startswith("trace/")})
    return Fit(about["status"], about["bound_terms"], trace, posteriors)


def _length(posterior: Posterior) -> int:
    """Return the length of the variable's vectors, or the number of its categories."""
    mean = posterior.mean
    return mean.shape[-1] if mean.ndim > len(posterior.plate) else 1
