"""Errors and warnings of svmp; each message is a sentence for the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


class SvmpError(Exception):
    """Base class of all errors that svmp raises."""


class ModelError(SvmpError, ValueError):
    """A network that cannot be declared or fitted, or data that do not fit it."""


class KeywordError(ModelError, TypeError):
    """A keyword argument that a function does not have."""


class EmptyTableError(ModelError):
    """An observed table without rows."""


class UnknownError(ModelError):
    """An id that is not in a model.

    Attributes
    ----------
    fact
        The message without advice.
    advice
        How to avoid the error in Python; the command line and HTTP have their own advice.
    """

    def __init__(self, fact: str, advice: str = "") -> None:
        self.fact, self.advice = fact, advice
        super().__init__(f"{fact}; {advice}" if advice else fact)


class ImproperError(SvmpError, ArithmeticError):
    """A natural parameter left its domain, so that q would no longer be a distribution.

    Attributes
    ----------
    variable, index
        Name of the variable and index of the element.
    """

    def __init__(self, variable: str, index: tuple[int, ...], family: str, natural: object) -> None:
        self.variable, self.index = variable, index
        self._made_of = variable, index, family, natural
        shown = " ".join(str(natural).split())  # a long array is printed on several lines
        super().__init__(
            f"the natural parameter of '{variable}' at {index} left the domain of the family "
            f"{family}: {shown:.200}"
        )

    def __reduce__(self) -> tuple[type[ImproperError], tuple[Any, ...]]:
        """Return how to make it again in another process."""
        return type(self), self._made_of


class FileError(SvmpError, ValueError):
    """A saved file that is damaged, of another kind, or from a newer version."""


class ClusterError(SvmpError):
    """A cluster without a scheduler or workers, or on which tasks fail again and again.

    Attributes
    ----------
    fact
        The message without advice.
    """

    def __init__(self, fact: str, checkpoint: str | None = None) -> None:
        self.fact = fact
        advice = (
            "mend the cluster, and fit again; with checkpoint= the run could go on where it ended"
            if checkpoint is None
            else f"mend the cluster, and go on from the checkpoint with resume={checkpoint!r}"
        )
        super().__init__(f"{fact}; {advice}")


class StudyError(SvmpError, ValueError):
    """A study that cannot be run as requested."""


class RatingsError(SvmpError, ValueError):
    """Ratings that cannot be read or used; the message names the file and the line."""


class ExtraError(SvmpError, ModuleNotFoundError):
    """A package that is not installed, and that an extra of svmp needs.

    >>> print(ExtraError(ModuleNotFoundError(name="polars.exceptions"), "recommend"))
    this needs polars: pip install 'svmp[recommend]'
    """

    def __init__(self, error: ModuleNotFoundError, extra: str) -> None:
        package = str(error.name).partition(".")[0]
        super().__init__(f"this needs {package}: pip install 'svmp[{extra}]'", name=package)


class ConvergenceWarning(UserWarning):
    """A fit that reached the default limit of sweeps before it converged."""


class DivergenceWarning(ConvergenceWarning):
    """A fit that diverged under the given steps."""


class Interface:
    """How messages name arguments: as Python arguments, or as flags of a command."""

    flags = False


@contextmanager
def naming(flags: bool) -> Iterator[None]:
    """Name arguments as flags, or as Python arguments, within a `with` block."""
    before, Interface.flags = Interface.flags, flags
    try:
        yield
    finally:
        Interface.flags = before


def argument(name: str, value: str, of_flag: str | None = None) -> str:
    """Return an argument with its value, in the terms of the interface that is in use.

    >>> argument("encoding", "'latin-1'", "latin-1")
    "encoding='latin-1'"
    """
    if not Interface.flags:
        return f"{name}={value}"
    return f"--{name.replace('_', '-')} {value if of_flag is None else of_flag}".rstrip()


def called(name: str) -> str:
    """Return the name of an argument in the interface that is in use.

    >>> called("max_sweeps")
    'max_sweeps'
    """
    return f"--{name.replace('_', '-')}" if Interface.flags else name


def needing(extra: str, module: str) -> Any:
    """Import a module of svmp; if its extra is not installed, raise with the pip command."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ExtraError(error, extra) from None
