"""Data from outside, given to libraries that may fail on it in any way.

Polars is written in Rust. On some damaged files it panics, which arrives in Python as an exception
that is not an `Exception` and so passes every ordinary handler. This is the one place that knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from svmp.errors import FileError, SvmpError

PANIC = "PanicException"
"""What a panic is called in Python; each library written in Rust has a class of its own for it."""


@contextmanager
def reading(foreign: type[Exception] | tuple[type[Exception], ...] = Exception) -> Iterator[None]:
    """Turn whatever a library raises on data from outside into a FileError that says why.

    `foreign` are the exceptions that the library may raise; panics are always among them.
    """
    try:
        yield
    except (SvmpError, KeyboardInterrupt, GeneratorExit, SystemExit):
        raise
    except BaseException as error:
        if not isinstance(error, (*_tuple(foreign), MemoryError)) and not is_panic(error):
            raise
        raise FileError(said_of(error)) from None


def is_panic(error: BaseException) -> bool:
    """Say whether an exception is a panic of a library written in Rust."""
    return type(error).__name__ == PANIC


def said_of(error: BaseException) -> str:
    """Return in a few words why something cannot be read.

    >>> said_of(FileNotFoundError(2, "No such file or directory"))
    'there is no such file'
    """
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, EOFError):
        return "the file is cut short"
    if isinstance(error, MemoryError):
        return "it does not fit into memory"
    reason = " ".join(str(getattr(error, "strerror", None) or error).split())
    if isinstance(error, OSError):
        return f"the file cannot be read ({reason:.200})"
    return f"the file is damaged or cut short ({reason or type(error).__name__:.200})"


def _tuple(kinds: type[Exception] | tuple[type[Exception], ...]) -> tuple[type[Exception], ...]:
    return kinds if isinstance(kinds, tuple) else (kinds,)
