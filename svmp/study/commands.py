"""`svmp study`: the paper's figures and claims, and the answer to its question."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from svmp.errors import StudyError

EXAMPLES = """
Examples:

  svmp study all --quick --out demo

  svmp study figure2 --out fig2 --children 1,2,5,20

  svmp study all --out movielens --data ratings.dat
"""
HELP = {
    "figure2": "The bound against accesses: Algorithm 1 with C = 1 to 20, options (a) and (b).",
    "figure3": "The same for Algorithm 2 with C_global = 100 to 1000.",
    "thresholds": "The largest first step from which each algorithm, option and size converges.",
    "answer": "Every step policy against full VB, at equal accesses and equal time.",
    "claims": "Each of the paper's claims as a verdict, with the evidence.",
    "all": "All of these, on one page.",
}
STOPPED = 130
"""The exit code of a command that was stopped by Ctrl-C."""

study = typer.Typer(
    help="The paper's figures and claims, and the answer to its question." + EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Out = Annotated[Path, typer.Option(help="The folder that everything is written to.")]


def command(name: str) -> Callable[..., None]:
    """Make the command that answers one question, or all."""

    def run(
        out: Out,
        quick: Annotated[
            bool, typer.Option("--quick", help="A small study, within a minute.")
        ] = False,
        data: Annotated[
            str,
            typer.Option(
                help="netflix-shaped, netflix-shaped:0.1 (a tenth), or a file of ratings: CSV, "
                "TSV, MovieLens ::, Parquet, .npz, or the Netflix Prize's text."
            ),
        ] = "netflix-shaped",
        columns: Annotated[
            str,
            typer.Option(help="Columns of user, item and rating: names, or positions from 0."),
        ] = "",
        duplicates: Annotated[
            str,
            typer.Option(help="A second rating of the same pair: error, last, or mean."),
        ] = "error",
        seed: Annotated[
            int, typer.Option(help="Decides the data drawn, the start, the rows read.")
        ] = 0,
        factors: Annotated[int, typer.Option(help="K of the matrix factorization.")] = 5,
        kappa: Annotated[float, typer.Option(help="Forgetting rate of the steps t^-kappa.")] = 0.6,
        children: Annotated[str, typer.Option(help="C of Algorithm 1, as 1-20 or 1,2,5.")] = "1-20",
        batches: Annotated[
            str, typer.Option(help="C_global of Algorithm 2, as 100-1000/100.")
        ] = "100-1000/100",
        max_accesses: Annotated[
            float | None, typer.Option(help="No run reads more than so many ratings.")
        ] = None,
        threads: Annotated[
            int | None, typer.Option(min=1, help="Runs at a time; by default one for each core.")
        ] = None,
        force: Annotated[
            bool, typer.Option("--force", help="Write to the folder whatever is in it.")
        ] = False,
    ) -> None:
        from svmp.study.settings import Settings, whole_numbers

        if duplicates not in ("error", "last", "mean"):
            raise StudyError(f"--duplicates must be error, last or mean, not {duplicates:.40}")
        settings = Settings(
            data=data,
            columns=tuple(c.strip() for c in columns.split(",") if c.strip()),
            duplicates=duplicates,  # type: ignore[arg-type]
            seed=seed,
            factors=factors,
            kappa=kappa,
            children=whole_numbers(children, "--children"),
            batches=whole_numbers(batches, "--batches"),
            max_accesses=max_accesses,
        )
        conduct(name, settings.quick() if quick else settings, out, threads, force)

    return run


for _name, _help in HELP.items():
    study.command(_name, help=_help)(command(_name))


@study.command()
def draw(out: Out) -> None:
    """Draw the figures and the page again from the numbers in the folder, without running."""
    from svmp.study.outcomes import known
    from svmp.study.report import publish
    from svmp.study.store import Store

    store = Store(out)
    about, outcomes = store.about(), known(store)
    if about is None or not outcomes:
        raise StudyError(f"--out {out}: there is no study in that folder")
    publish(store, about, outcomes)
    typer.echo(f"The page is {out / 'index.html'}")


def conduct(question: str, settings: Any, out: Path, threads: int | None, force: bool) -> None:
    """Make a study, or go on with it, and write its page."""
    import os
    import time

    from rich.console import Console

    from svmp.study.bench import Bench
    from svmp.study.data import load
    from svmp.study.outcomes import QUESTIONS, known, work_out
    from svmp.study.report import publish
    from svmp.study.store import Store
    from svmp.study.terminal import show, watching

    console, began = Console(), time.monotonic()
    store, data = Store(out), load(settings)
    store.check(settings, data.digest, force)
    about = {
        "settings": settings.to_dict(),
        "digest": data.digest,
        "data": data.describe(),
        "command": " ".join(["svmp", *sys.argv[1:]]),
    }
    store.open(about)
    console.print(f"{data.describe()} ({settings.data})", markup=False)
    asked = QUESTIONS if question == "all" else (question,)
    try:
        with (
            watching(console) as watcher,
            Bench(store, settings, data, watcher, threads or os.cpu_count() or 1) as bench,
        ):
            for name in asked:
                watcher.ask(name)
                work_out(bench, name)
    except KeyboardInterrupt:
        console.print(
            f"Stopped. {bench.made} runs were made and are kept in {out}: the same command goes on "
            "from there.",
            markup=False,
        )
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
