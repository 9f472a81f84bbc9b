"""Make a study: load the data, answer its questions, and write the page."""

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
from svmp.interrupts import exit_code
from svmp.study import answer
from svmp.study.data import load
from svmp.study.outcomes import QUESTIONS, known, work_out
from svmp.study.report import draw_figure, publish
from svmp.study.runner import Runner
from svmp.study.settings import Settings
from svmp.study.store import Store
from svmp.study.terminal import progress_bar, show


def conduct(question: str, settings: Settings, out: Path, threads: int | None, force: bool) -> None:
    """Answer one question, or all; runs that are in the folder already are reused."""
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
    console.print(f"{data.describe()} ({settings.source.data})", markup=False)
    if warning := data.size_warning():
        console.print(warning, style="yellow", markup=False)
    asked = QUESTIONS if question == "all" else (question,)
    runner, drawn = None, []
    try:
        with (
            progress_bar(console, asked) as listener,
            Runner(store, settings, data, listener, threads or os.cpu_count() or 1) as runner,
            ThreadPoolExecutor(1) as drawing,  # this process is idle while the workers run
        ):
            if {"answer", "claims"} & set(asked):
                runner.prepare(*answer.defaults(runner))
            for name in asked:
                listener.ask(name)
                drawn.append(drawing.submit(draw_figure, store, work_out(runner, name)))
            for figure in drawn:
                figure.result()
    except KeyboardInterrupt:
        made = runner.runs.made if runner else 0
        said = (
            f"Stopped. {made} runs were made and are kept: the same command continues from there."
        )
        console.print(said, markup=False)
        raise typer.Exit(exit_code()) from None
    seconds = time.monotonic() - began
    about |= {"seconds": seconds, "made": runner.runs.made, "found": runner.runs.found}
    store.open(about)
    outcomes = known(store)
    publish(store, store.about() or about, outcomes)
    show(console, {name: outcomes[name] for name in asked})
    kept = f", {runner.runs.found} were there" if runner.runs.found else ""
    console.print(f"{runner.runs.made} runs made{kept}, in {seconds:.0f} s. The page is", end=" ")
    console.print(str(out / "index.html"), style="bold", soft_wrap=True, markup=False)


def draw(out: Path) -> None:
    """Draw the figures and the page again from the numbers in the folder."""
    store = Store(out)
    about, outcomes = store.about(), known(store)
    if about is None or not outcomes:
        raise StudyError(f"--out {out}: there is no study in that folder")
    for outcome in outcomes.values():
        draw_figure(store, outcome)
    publish(store, about, outcomes)
    typer.echo(f"The page is {out / 'index.html'}")
