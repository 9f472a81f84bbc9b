"""Ratings in parts on the command line: `svmp recommend fit "data/*.parquet" --memory 4GB`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svmp.errors import ModelError, SvmpError
from svmp.recommend.commands.options import FileOptions

if TYPE_CHECKING:
    from svmp.recommend.rating import RatingModel

SECONDS = 10
"""How long to wait for a scheduler."""


def is_in_parts(ratings: Path) -> bool:
    """Whether a path is a folder of Parquet files, as `partition` writes it, or a pattern."""
    from svmp.parts.parquet_files import MARKER, WILD
    from svmp.ratings.lines import refusing
    from svmp.ratings.packed import parts

    if ratings.is_dir():
        with refusing(ratings):
            names = [path.name for path in ratings.iterdir()]
        has_parquet = any(n.endswith(".parquet") and not n.startswith(".") for n in names)
        return MARKER in names or (has_parquet and not parts(names))
    return any(sign in str(ratings) for sign in WILD) and not ratings.exists()


def fit_parts(
    model: RatingModel,
    ratings: Path,
    options: FileOptions,
    memory: str | None,
    scheduler: str | None,
) -> None:
    """Fit a model to ratings in parts, with the options of the command."""
    from svmp.parts.memory import parse_memory
    from svmp.recommend.out_of_core import parts_of

    if options != FileOptions("utf-8", None):
        raise ModelError(
            "--encoding, --max-unpacked and --text-ids cannot be used with ratings in parts, which "
            "are Parquet files; use them with svmp recommend partition, which writes parts"
        )
    model._check_parameters()
    limit = None if memory is None else parse_memory(memory)
    source = parts_of(ratings, model.columns)
    with _client(scheduler) as client, _warnings_as_sentences():
        model.fit(source, memory=limit, client=client)


@contextmanager
def _client(address: str | None) -> Iterator[Any]:
    """Yield a client of the Dask scheduler at an address; None without an address."""
    if address is None:
        yield None
        return
    try:
        from dask.distributed import Client
    except ModuleNotFoundError:
        raise SvmpError('--scheduler needs Dask: pip install "svmp[dask]"') from None
    try:
        client = Client(address, timeout=SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        reason = " ".join(str(error).split())
        raise ModelError(
            f"--scheduler {address!s:.100}: there is no Dask scheduler at this address "
            f"({reason:.200}); give one as tcp://host:8786"
        ) from None
    with client:
        yield client


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """Print warnings of svmp on stderr without the line of code that gave them."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in found:
        if warning.category is UserWarning:
            print(f"svmp: {warning.message}", file=sys.stderr)
