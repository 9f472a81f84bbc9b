"""The command `svmp recommend serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from svmp.errors import ModelError, naming, needing


def serve(
    model: Annotated[Path | None, typer.Argument(metavar="[MODEL]", help="A saved model.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve the demo, invented films.")] = False,
    titles: Annotated[Path | None, typer.Option(help="A CSV file of ids and titles.")] = None,
    items: Annotated[
        Path | None,
        typer.Option(help="CSV or Parquet file about items, for filters, boosts and quotas."),
    ] = None,
    encoding: Annotated[
        str, typer.Option(help="Encoding of the titles and items, as latin-1.")
    ] = "utf-8",
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port; by default 8015, or a free one if in use."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="SVMP_TOKEN", help="Require this bearer token.")
    ] = None,
    max_body: Annotated[
        int, typer.Option(min=1, help="Size limit of a request, in bytes.")
    ] = 1_000_000,
    max_batch: Annotated[
        int, typer.Option(min=1, help="Maximum number of users or items in a request.")
    ] = 1_000,
    timeout: Annotated[
        float, typer.Option(min=0.001, help="Time limit of a request, in seconds.")
    ] = 10.0,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Number of processes; by default one per core, at most four."),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = False,
) -> None:
    """Serve a model, and a page to try it; by default the demo."""
    if demo and model is not None:
        raise ModelError("give a model, or --demo, one of the two")
    service = needing("serve", "svmp.recommend.service.serve")
    limits = service.Limits(max_body, max_batch, timeout)
    with naming(flags=False):  # clients of the service do not know the flags
        service.serve(model, titles, host, port, token, limits, browser, workers, encoding, items)
