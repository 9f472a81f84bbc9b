"""`svmp study`: the paper's figures and claims, and the answer to its question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from svmp.errors import StudyError

EXAMPLES = """
Examples:

  svmp study all --quick --out demo

  svmp study figure2 --out fig2 --children 1,2,5,20

  svmp study all --out movielens --data ml-1m.zip

  svmp study all --out netflix --data combined_data_1.txt --users 4805
"""
HELP = {
    "figure2": "The bound against accesses: Algorithm 1 with C = 1 to 20, options (a) and (b).",
    "figure3": "The same for Algorithm 2 with C_global = 100 to 1000.",
    "thresholds": "The largest first step from which each algorithm, option and size converges.",
    "answer": "Every step policy against full VB, at equal accesses and equal time.",
    "claims": "Each of the paper's claims as a verdict, with the evidence.",
    "all": "All of these, on one page.",
}
study = typer.Typer(
    help="The paper's figures and claims, and the answer to its question." + EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Out = Annotated[Path, typer.Option(help="Folder to write everything to.")]


def command(name: str) -> Callable[..., None]:
    """Return the command that answers one question, or all; its parameters are the flags."""

    def run(
        out: Out,
        quick: Annotated[
            bool, typer.Option("--quick", help="Fewer and shorter runs, in a minute or two.")
        ] = False,
        data: Annotated[
            str,
            typer.Option(
                help="netflix-shaped, netflix-shaped:0.1 (a tenth), or a file of ratings: CSV, "
                "TSV, MovieLens ::, Parquet, .npz, the Netflix Prize's text, or a zip of them."
            ),
        ] = "netflix-shaped",
        columns: Annotated[
            str,
            typer.Option(help="Columns of user, item and rating: names, or positions from 0."),
        ] = "",
        duplicates: Annotated[
            str,
            typer.Option(
                help="What to do with a second rating of the same pair: error, last, or mean."
            ),
        ] = "error",
        encoding: Annotated[str, typer.Option(help="Encoding of a text file.")] = "utf-8",
        max_unpacked: Annotated[
            int | None,
            typer.Option(min=1, help="Bytes that a packed file may unpack to; by default 4e9."),
        ] = None,
        users: Annotated[
            int | None,
            typer.Option(help="Draw so many users of the data, with all their ratings."),
        ] = None,
        seed: Annotated[
            int, typer.Option(help="Seed of the data drawn, of the start, and of the rows read.")
        ] = 0,
        factors: Annotated[int, typer.Option(help="K of the matrix factorization.")] = 5,
        kappa: Annotated[float, typer.Option(help="Forgetting rate of the steps t^-kappa.")] = 0.6,
        children: Annotated[str, typer.Option(help="C of Algorithm 1, as 1-20 or 1,2,5.")] = "1-20",
        batches: Annotated[
            str, typer.Option(help="C_global of Algorithm 2, as 100-1000/100.")
        ] = "100-1000/100",
        max_accesses: Annotated[
            float | None, typer.Option(help="Largest number of accesses of a run.")
        ] = None,
        threads: Annotated[
            int | None, typer.Option(min=1, help="Runs at a time; by default one for each core.")
        ] = None,
        force: Annotated[
            bool, typer.Option("--force", help="Write to the folder even if it is not empty.")
        ] = False,
    ) -> None:
        from svmp.ratings.lines import MOST
        from svmp.study.settings import DataSettings, Settings, whole_numbers

        if duplicates not in ("error", "last", "mean"):
            raise StudyError(f"--duplicates must be error, last or mean, not {duplicates:.40}")
        source = DataSettings(
            data=data,
            columns=tuple(c.strip() for c in columns.split(",") if c.strip()),
            duplicates=duplicates,  # type: ignore[arg-type]
            encoding=encoding,
            max_unpacked=max_unpacked or MOST,
            users=users,
        )
        settings = Settings(
            source=source,
            seed=seed,
            factors=factors,
            kappa=kappa,
            children=whole_numbers(children, "--children"),
            batches=whole_numbers(batches, "--batches"),
            max_accesses=max_accesses,
        )
        _conductor().conduct(name, settings.quick() if quick else settings, out, threads, force)

    return run


for _name, _help in HELP.items():
    study.command(_name, help=_help)(command(_name))


@study.command()
def draw(out: Out) -> None:
    """Draw the figures and the page again from the numbers in the folder, without running."""
    _conductor().draw(out)


def _conductor() -> Any:
    """Import the module that needs the `study` extra."""
    from svmp.errors import needing

    return needing("study", "svmp.study.conduct")
