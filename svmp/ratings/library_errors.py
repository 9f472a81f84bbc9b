"""Turn whatever libraries raise on invalid files into errors of svmp.

Polars is written in Rust. On some damaged files it panics, which Python sees as an exception that
is not an `Exception`, so that ordinary handlers do not catch it. Panics are handled only here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from svmp.errors import FileError, SvmpError

PANIC = "PanicException"
"""Name of the class of a panic in Python; each Rust library has its own class of this name."""


@contextmanager
def reading(foreign: type[Exception] | tuple[type[Exception], ...] = Exception) -> Iterator[None]:
    """Turn whatever a library raises on untrusted data into a FileError with the reason.

    `foreign` are the exceptions that the library may raise, in addition to panics.
    """
    try:
        yield
    except (SvmpError, KeyboardInterrupt, GeneratorExit, SystemExit):
        raise
    except BaseException as error:
        if not isinstance(error, (*_tuple(foreign), MemoryError)) and not is_panic(error):
            raise
        raise FileError(reason_of(error)) from None


def is_panic(error: BaseException) -> bool:
    """Whether an exception is a panic of a Rust library."""
    return type(error).__name__ == PANIC


def reason_of(error: BaseException) -> str:
    """Return in a few words why a file cannot be read.

    >>> reason_of(FileNotFoundError(2, "No such file or directory"))
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
