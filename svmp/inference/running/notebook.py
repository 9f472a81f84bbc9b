"""A line of progress below the cell of a notebook, by IPython alone, without widgets.

The line is one output of the cell, whose text is replaced. The last one stays.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

EVERY = 0.25
"""Least seconds between two texts, since each is a message to the browser."""
DELAY = 1.0
"""Seconds before the first text, where progress was not asked for."""


def in_notebook() -> bool:
    """Return whether this is the kernel of a notebook, which shows what is displayed in a cell."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def is_shown(wanted: bool | None) -> bool:
    """Return whether to show progress: if asked for, else on a terminal and in a notebook."""
    return sys.stderr.isatty() or in_notebook() if wanted is None else wanted


@contextmanager
def line_in_cell(delay: float = 0.0) -> Iterator[Callable[[object], None]]:
    """Yield a function that shows a text below the cell, in place of the one before.

    Parameters
    ----------
    delay
        Seconds before the first text; tasks that take less show none.
    """
    from IPython.display import display

    began = time.monotonic()
    last: float = -float("inf")
    waiting: object = None
    handle: Any = None

    def put(line: object) -> None:
        nonlocal handle
        text = str(line)  # and as HTML, in the font of code
        data = {"text/plain": text, "text/html": f"<code>{escape(text)}</code>"}
        if handle is None:
            handle = display(data, raw=True, display_id=True)
        else:
            handle.update(data, raw=True)

    def show(line: object) -> None:
        nonlocal last, waiting
        waiting, now = line, time.monotonic()
        if now - last >= EVERY and now - began >= delay:
            last, waiting = now, None
            put(line)

    try:
        yield show
    finally:
        if waiting is not None and time.monotonic() - began >= delay:
            put(waiting)
