"""The errors and warnings of svmp's own, each a sentence for the person at the keyboard."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class SvmpError(Exception):
    """Base of every error that svmp raises on purpose."""


class ModelError(SvmpError, ValueError):
    """A network that cannot be declared or fitted as it stands, or data that do not suit it."""


class UnknownError(ModelError):
    """An id that is not in a model.

    Attributes
    ----------
    fact
        The sentence without advice.
    advice
        What else to do, in Python; the command line and HTTP have their own.
    """

    def __init__(self, fact: str, advice: str = "") -> None:
        self.fact, self.advice = fact, advice
        super().__init__(f"{fact}; {advice}" if advice else fact)


class ImproperError(SvmpError, ArithmeticError):
    """A natural parameter left its domain, so that q would no longer be a distribution.

    Attributes
    ----------
    variable, index
        Which element it was.
    """

    def __init__(self, variable: str, index: tuple[int, ...], family: str, natural: object) -> None:
        self.variable, self.index = variable, index
        super().__init__(
            f"the natural parameter of '{variable}' at {index} left the domain of the family "
            f"{family}: {natural}"
        )


class FileError(SvmpError, ValueError):
    """A saved file that is damaged, of another kind, or from a newer version."""


class StudyError(SvmpError, ValueError):
    """A study that cannot be made as it was asked for."""


class RatingsError(SvmpError, ValueError):
    """Ratings that cannot be read or used as they stand; it names the file and the line."""


class ConvergenceWarning(UserWarning):
    """A fit that reached the default limit of sweeps before it converged."""


def needing(extra: str, module: str) -> Any:
    """Import a module of svmp; where its extra is not installed, say how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise SvmpError(f"this needs {error.name}: pip install 'svmp[{extra}]'") from None
