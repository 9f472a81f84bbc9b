"""Arrays that need not fit into memory: mapped temporary files without a name.

Their disk space is freed with the array, even if the process is killed.
"""

from __future__ import annotations

import os
import tempfile
from math import prod
from pathlib import Path

import numpy as np

from svmp.errors import FileError
from svmp.families.family import Array


def zeros_on_disk(shape: tuple[int, ...], folder: Path | None) -> Array:
    """Return an array of zeros in a file.

    Parameters
    ----------
    shape
        Its shape.
    folder
        Where the file is made; None for the folder of temporary files.

    >>> zeros_on_disk((2, 2), None)
    array([[0., 0.], [0., 0.]])
    """
    if not prod(shape):
        return np.zeros(shape)
    try:
        with tempfile.TemporaryFile(dir=folder, prefix="svmp-") as file:
            reserve(file.fileno(), prod(shape) * 8)
            return np.asarray(np.memmap(file, np.float64, "r+", shape=shape))
    except OSError as error:
        place = tempfile.gettempdir() if folder is None else folder
        reason = os.strerror(error.errno or 0)
        raise FileError(f"{place}: cannot keep own variables there ({reason})") from None


def reserve(file: int, size: int) -> None:
    """Give a file its size; a full disk is an error here, and not a signal when it is written."""
    if os.name == "posix":
        os.posix_fallocate(file, 0, size)
    else:
        os.ftruncate(file, size)
