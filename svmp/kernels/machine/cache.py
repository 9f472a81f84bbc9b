"""Compiled loops on disk, keyed by the sources of all loops.

Numba's own cache checks only the file that a function is defined in. Our loops inline functions
from many files, so an edit of one of those would leave the machine code of the others stale. Here
the key is a hash of every source file that a loop may be made of, and of the versions of Python,
NumPy, Numba and llvmlite. The name of each file also depends on the processor and its features.

One hash is one folder, `svmp-<hash>`, inside the folder that Numba would use: NUMBA_CACHE_DIR,
`__pycache__` beside the source file, or the user's cache folder where that is read-only. One
signature is one file, named by its key, so that processes that compile at the same time never write
different code to the same name. Numba numbers its files, and two processes may choose the same
number.

What is written is Numba's own form of machine code, which is as trusted as the `.pyc` files beside
it: whoever can write to the folder can also change the sources.

Only the folders used most recently are kept, so the cache does not grow with every edit or upgrade.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import llvmlite
import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, _Cache
from numba.core.serialize import dumps, loads

from svmp.kernels.machine.ahead import wait_for

PACKAGE = Path(__file__).parents[2]
DECORATORS = b"svmp.kernels.machine.compiling"
"""Every file that defines a loop imports its decorator from here."""
CONSTANTS = (
    "families/normal.py",
    "factors/bernoulli_logit.py",
    "network/chains/forward_backward.py",
)
"""Files of numbers that loops are compiled with, besides those of other loops."""
KEPT = 3
"""Folders that are kept: an edit can be undone, and two versions of Python can share a copy."""
PREFIX = "svmp-"
DIGEST = 32
"""Bytes of a SHA-256 hash."""


def python_files(folder: str) -> Iterator[str]:
    """Yield the paths of all Python files in a folder and those below it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from python_files(entry.path)


def loop_sources(package: Path = PACKAGE) -> dict[str, bytes]:
    """Return the text of every file that machine code may be made of, by its path."""
    found = {}
    constants = {str(package / name) for name in CONSTANTS}
    kernels = os.path.join(package, "kernels", "")
    for path in sorted(python_files(str(package))):
        text = Path(path).read_bytes()
        if DECORATORS in text or path in constants or path.startswith(kernels):
            found[os.path.relpath(path, package)] = text
    return found


def fingerprint() -> str | None:
    """Return a hash of all sources and versions; None where the sources cannot be read."""
    try:
        sources = loop_sources()
    except OSError:  # in a zip file, for example
        return None
    versions = (sys.version, np.__version__, numba.__version__, llvmlite.__version__)
    digest = sha256(repr(versions).encode())
    for name, text in sources.items():
        digest.update(f"{name} {len(text)} ".encode() + text)
    return digest.hexdigest()[:20] if sources else None


# Hashed once, when the first loop is defined, so that later edits of the files are not mistaken for
# the sources that this process has imported.
FINGERPRINT = fingerprint()


@cache
def mark_used(folder: str) -> None:
    """Set the modification time of a folder to now, once in a process."""
    with suppress(OSError):
        os.utime(folder)


def remove_oldest(parent: str) -> None:
    """Remove all but the folders used most recently.

    A process that still uses a removed one compiles again.
    """
    with suppress(OSError), os.scandir(parent) as entries:
        folders = [e for e in entries if e.name.startswith(PREFIX) and e.is_dir()]
        folders.sort(key=lambda e: e.stat().st_mtime, reverse=True)
        for old in folders[KEPT:]:
            shutil.rmtree(old.path, ignore_errors=True)


class LoopCache(_Cache):
    """The compiled signatures of one loop, on disk.

    Without a folder to write to, nothing is cached and loops are compiled in every process.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    @cached_property
    def _numba(self) -> Any:
        """Numba's part: where the files go, and how machine code is written; None if nowhere."""
        try:
            return CompileResultCacheImpl(self.function)
        except RuntimeError:
            return None

    @cached_property
    def cache_path(self) -> str | None:
        """Folder of the files."""
        if self._numba is None or FINGERPRINT is None:
            return None
        return os.path.join(self._numba.locator.get_cache_path(), PREFIX + FINGERPRINT)

    def path_of(self, signature: Any, codegen: Any) -> str | None:
        """Return the file of one signature on this processor."""
        if self.cache_path is None:
            return None
        own = self._numba.locator.get_source_stamp()  # loops outside the package, as in tests
        key = repr((signature, codegen.magic_tuple(), own)).encode()
        name = f"{self._numba.filename_base}.{sha256(key).hexdigest()[:20]}.nbc"
        return os.path.join(self.cache_path, name)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code of a signature, or None."""
        target_context.refresh()
        path = self.path_of(sig, target_context.codegen())
        if path is None:
            return None
        wait_for(path)
        try:
            content = Path(path).read_bytes()
        except OSError:
            return None
        if sha256(content[DIGEST:]).digest() != content[:DIGEST]:  # cut short by a crash
            return None
        mark_used(os.path.dirname(path))
        return self._numba.rebuild(target_context, loads(content[DIGEST:]))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the machine code of a signature; a full disk does not stop a fit."""
        path = self.path_of(sig, data.codegen)
        if path is None or not self._numba.check_cachable(data):
            return
        content = dumps(self._numba.reduce(data))
        with suppress(OSError):
            self._write(path, sha256(content).digest() + content)

    def _write(self, path: str, content: bytes) -> None:
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            remove_oldest(os.path.dirname(folder))
        unfinished = f"{path}.{uuid4().hex[:16]}"
        try:
            Path(unfinished).write_bytes(content)
            os.replace(unfinished, path)
        except OSError:
            with suppress(OSError):
                os.unlink(unfinished)
            raise

    def enable(self) -> None:
        pass

    def disable(self) -> None:
        pass

    def flush(self) -> None:
        pass
