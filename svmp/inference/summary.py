"""`print(fit)`: the status of a run, and a table of its hidden variables."""

from __future__ import annotations

from svmp.inference.posterior import Posterior
from svmp.inference.run_record import RunRecord
from svmp.network.partly_known import base_of

HEADS = ("variable", "family", "dims", "posterior means")


def summarise(fit: RunRecord) -> str:
    """Return a line on how the run ended, and a line for each hidden variable."""
    end = (
        f"{fit.status}: bound {fit.bound:,.6g} after {fit.iterations:,} iterations, "
        f"{fit.accesses:,} accesses, {fit.seconds:,.3g} seconds"
    )
    lines = [HEADS, *(_line(q) for q in fit.posteriors.values())]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS))]
    text = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
    text.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join([end, "", *(line.rstrip() for line in text)])


def _line(q: Posterior) -> tuple[str, ...]:
    mean = q.mean
    # The mean of a Categorical has one more axis than its dims: the categories.
    dims = ", ".join(f"{d}: {n:,}" for d, n in zip(q.dims, mean.shape, strict=False))
    ends = [f"{end:.4g}" for end in (mean.min(), mean.max())] if mean.size else ["none"]
    means = " to ".join(dict.fromkeys(ends))
    return q.name, type(base_of(q.family)).__name__, dims, means
