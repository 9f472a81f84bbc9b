"""The command `svmp warm`."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from svmp.errors import SvmpError
from svmp.kernels.machine.compilations import folder_of
from svmp.kernels.machine.durations import add_durations, read_durations
from svmp.kernels.machine.elements import _moved_kl
from svmp.kernels.machine.threads import CORES
from svmp.warm.recipes import RECIPES
from svmp.warm.run import Outcome, run_recipes


def warm(
    only: Annotated[
        list[str] | None,
        typer.Option(help="Compile the loops of this recipe only; may be repeated."),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Number of processes; by default one for each core.")
    ] = CORES,
) -> None:
    """Compile all loops ahead, so that no fit has to wait for them.

    Loops are kept where Numba keeps its own: in NUMBA_CACHE_DIR, or beside the sources. They are
    for this kind of processor and these versions; another machine compiles its own.
    """
    names = only or list(RECIPES)
    unknown = [name for name in names if name not in RECIPES]
    if unknown:
        raise SvmpError(f"--only {unknown[0]}: there is no such recipe; use {', '.join(RECIPES)}")
    folder = folder_of(_moved_kl)
    if folder is None:
        raise SvmpError(
            "compiled loops cannot be kept, as no folder for them can be written: set "
            "NUMBA_CACHE_DIR to one"
        )
    before, began = read_durations(folder), time.perf_counter()

    def begins(name: str) -> None:
        last = f" ({before[name]:,.0f} s last time)" if name in before else ""
        print(f"compiling {name}{last}", file=sys.stderr, flush=True)

    def ends(outcome: Outcome) -> None:
        if outcome.skipped:
            said = f"skipped {outcome.name}: {outcome.skipped}"
        elif outcome.error:
            said = f"failed {outcome.name}: {outcome.error}"
        else:
            said = f"compiled {outcome.name} in {outcome.seconds:,.1f} s"
        print(said, file=sys.stderr, flush=True)

    outcomes = run_recipes(names, jobs, before, begins, ends)
    done = [o for o in outcomes if not o.skipped and not o.error]
    add_durations(folder, {o.name: o.seconds for o in done})
    seconds = time.perf_counter() - began
    print(f"{len(done)} of {len(names)} groups of loops are compiled, after {seconds:,.0f} s")
    failed = [o for o in outcomes if o.error]
    if failed:
        raise SvmpError(f"{failed[0].name} cannot be compiled: {failed[0].error}")
