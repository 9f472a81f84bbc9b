"""The errors that svmp raises of its own, each a sentence for the person at the keyboard."""


class SvmpError(Exception):
    """Base of every error that svmp raises on purpose."""


class ModelError(SvmpError, ValueError):
    """A network that cannot be declared or fitted as it stands, or data that do not suit it."""


class ImproperError(SvmpError, ArithmeticError):
    """A natural parameter left its domain, so that q would no longer be a distribution."""


class FileError(SvmpError, ValueError):
    """A saved file that is damaged, of another kind, or from a newer version."""
