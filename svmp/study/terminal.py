"""Output on the terminal: progress, the time left, and tables at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from svmp.study.on_paper import short
from svmp.study.outcomes import Outcome

VERDICTS = {"holds": "green", "answered": "green", "differs": "yellow"}


class TimeLeft(ProgressColumn):
    """Estimated time that is left for a question."""

    def render(self, task: Task) -> Text:
        done, began = task.completed / (task.total or 1.0), task.fields["began"]
        if began is None or not 0.02 < done < 1:
            return Text("")
        left = timedelta(seconds=round((time.monotonic() - began) * (1 - done) / done))
        return Text(f"{left} left", style="cyan")


class ProgressBar:
    """A progress listener that draws a bar for each question."""

    def __init__(self, progress: Progress, task: Any, questions: Sequence[str]) -> None:
        self.progress, self.task, self.questions = progress, task, questions
        self.total = self.done = self.unfinished = 0.0

    def ask(self, question: str) -> None:
        """Begin a question."""
        self.total = self.done = self.unfinished = 0.0
        place = f"{self.questions.index(question) + 1}/{len(self.questions)} "
        name = (place if len(self.questions) > 1 else "") + question
        self.progress.update(self.task, question=name, began=None, label="")
        self._show()

    def expect(self, cost: float) -> None:
        self.total += cost
        self._show()

    def compile(self) -> None:
        self.progress.update(self.task, label="compiling the loops, which happens once")

    def begin(self, label: str) -> None:
        began = self.progress.tasks[0].fields["began"] or time.monotonic()
        self.progress.update(self.task, label=label, began=began)

    def reach(self, cost: float) -> None:
        self.unfinished = cost
        self._show()

    def end(self, cost: float) -> None:
        self.done += cost
        self._show()

    def _show(self) -> None:
        done = self.done + self.unfinished
        self.progress.update(self.task, total=max(self.total, 1e-9), completed=done)


@contextmanager
def progress_bar(console: Console, questions: Sequence[str]) -> Iterator[ProgressBar]:
    """Show a progress bar while a study runs."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[question]:<14}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TimeLeft(),
        TextColumn("[dim]{task.fields[label]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None, question="", label="", began=None)
        yield ProgressBar(progress, task, questions)


def show(console: Console, outcomes: dict[str, Outcome]) -> None:
    """Print the tables of the answers."""
    if "answer" in outcomes:
        console.print(policies(outcomes["answer"].about))
    if "thresholds" in outcomes and "claims" not in outcomes:
        console.print(first_steps(outcomes["thresholds"].about))
    if "claims" in outcomes:
        console.print(verdicts(outcomes["claims"].about))
    if not {"answer", "claims", "thresholds"} & set(outcomes):
        for outcome in outcomes.values():
            if outcome.chart is not None:
                console.print(Text(outcome.chart.alt))


def verdicts(about: dict[str, Any]) -> Table:
    """Return the table of claims."""
    table = Table("", "the paper's claim", "here", title="Claims", title_justify="left")
    for claim in about["claims"]:
        verdict = claim["verdict"]
        table.add_row(
            str(claim["number"]), Text(claim["claim"]), Text(verdict, VERDICTS.get(verdict, "dim"))
        )
    return table


def policies(about: dict[str, Any]) -> Table:
    """Return the table of bounds after some numbers of accesses."""
    chosen = [n for n in about["sweeps"] if n in (1, 3, 12, 25)]
    heads = [f"{n} sweep{'s' * (n > 1)}" for n in chosen]
    table = Table(
        title="The bound after as many accesses as full VB needs for", title_justify="left"
    )
    table.add_column("")
    for head in heads:
        table.add_column(head, justify="right")
    for run in about["runs"]:
        at = dict(zip(about["sweeps"], run["at_accesses"], strict=True))
        if run["status"] == "diverged":
            cells = [Text("diverged", "red"), *[Text("")] * (len(chosen) - 1)]
        else:
            cells = [Text("" if at[n] is None else short(at[n])) for n in chosen]
        table.add_row(Text(run["label"]), *cells)
    return table


def first_steps(about: dict[str, Any]) -> Table:
    """Return the table of the largest first steps that converge."""
    from svmp.study.runs import fraction
    from svmp.study.thresholds import ALGORITHMS, SIZES, found

    table = Table("algorithm", "option", "size", "largest first step", "the paper's")
    for cell in about["cells"]:
        papers = "" if cell["paper"] is None else fraction(cell["paper"])
        size = f"{SIZES[cell['method']]} = {cell['size']}"
        table.add_row(ALGORITHMS[cell["method"]], cell["option"], size, found(cell), papers)
    return table
