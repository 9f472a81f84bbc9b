"""Make a study: load the data, answer its questions, write the page."""

from __future__ import annotations

import os
import shlex
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from svmp.errors import StudyError
from svmp.interrupts import STOPPED
from svmp.study import answer
from svmp.study.bench import Bench
from svmp.study.data import load
from svmp.study.outcomes import QUESTIONS, known, work_out
from svmp.study.report import draw_figure, publish
from svmp.study.settings import Settings
from svmp.study.store import Store
from svmp.study.terminal import show, watching


def conduct(question: str, settings: Settings, out: Path, threads: int | None, force: bool) -> None:
    """Answer one question, or all; what was made before in the folder is not made again."""
    console, began = Console(), time.monotonic()
    store = Store(out)
    store.check_place(force)
    data = load(settings)
    store.check(settings, data.digest, force)
    about: dict[str, Any] = {
        "settings": settings.to_dict(),
        "digest": data.digest,
        "data": data.describe(),
        "command": shlex.join(["svmp", *sys.argv[1:]]),
    }
    store.open(about)
    console.print(f"{data.describe()} ({settings.data})", markup=False)
    if data.much():
        console.print(data.much(), style="yellow", markup=False)
    asked = QUESTIONS if question == "all" else (question,)
    bench, drawn = None, []
    try:
        with (
            watching(console, asked) as watcher,
            Bench(store, settings, data, watcher, threads or os.cpu_count() or 1) as bench,
            ThreadPoolExecutor(1) as drawing,  # which has time while the workers run
        ):
            if {"answer", "claims"} & set(asked):
                bench.foresee(*answer.defaults(bench))
            for name in asked:
                watcher.ask(name)
                drawn.append(drawing.submit(draw_figure, store, work_out(bench, name)))
            for figure in drawn:
                figure.result()
    except KeyboardInterrupt:
        made = bench.made if bench else 0
        said = f"Stopped. {made} runs were made and are kept: the same command goes on from there."
        console.print(said, markup=False)
        raise typer.Exit(STOPPED) from None
    seconds = time.monotonic() - began
    about |= {"seconds": seconds, "made": bench.made, "found": bench.found}
    store.open(about)
    outcomes = known(store)
    publish(store, store.about() or about, outcomes)
    show(console, {name: outcomes[name] for name in asked})
    kept = f", {bench.found} were there" if bench.found else ""
    console.print(f"{bench.made} runs made{kept}, in {seconds:.0f} s. The page is", end=" ")
    console.print(str(out / "index.html"), style="bold", soft_wrap=True, markup=False)


def draw(out: Path) -> None:
    """Draw the figures and the page again, from the numbers in the folder."""
    store = Store(out)
    about, outcomes = store.about(), known(store)
    if about is None or not outcomes:
        raise StudyError(f"--out {out}: there is no study in that folder")
    for outcome in outcomes.values():
        draw_figure(store, outcome)
    publish(store, about, outcomes)
    typer.echo(f"The page is {out / 'index.html'}")
