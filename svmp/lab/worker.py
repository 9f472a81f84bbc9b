"""The process that makes one run: `python -m svmp.lab.worker`.

It reads the run from the first line of its input. It writes a line of JSON for each exact bound of
the trace, and one for how the run ended; if it diverged, a second one follows when a safe first
step was searched for. When its input closes, because the run was stopped or the lab has ended, the
run is interrupted, and the process exits at once if that takes too long.
"""

from __future__ import annotations

import _thread
import json
import os
import sys
import threading
import time
from contextlib import suppress
from typing import Any

GRACE = 3.0
"""Seconds that an interrupted run has to finish."""


def main() -> None:
    """Make the run that the first line of the input describes."""
    from svmp.errors import SvmpError
    from svmp.lab.request import RunRequest

    line = sys.stdin.readline()
    if not line:
        return  # the lab has ended
    threading.Thread(target=exit_with_input, daemon=True).start()
    try:
        fit = RunRequest.from_json(json.loads(line)).run(watch=write_row)
    except KeyboardInterrupt:
        write_end("interrupted")
    except SvmpError as error:
        write_end("failed", str(error))
    else:
        if fit.diagnosis is not None:
            write_end(fit.status, fit.diagnosis.event, fit.bound, probing=True)
        with suppress(KeyboardInterrupt):  # str(diagnosis) searches for a safe first step
            write_end(fit.status, str(fit.diagnosis or ""), fit.bound)


def write_end(
    status: str, sentence: str = "", bound: float | None = None, probing: bool = False
) -> None:
    """Write how the run ended; another message follows if `probing`."""
    write(end=status, sentence=sentence, bound=bound, probing=probing)


def write_row(row: dict[str, float]) -> None:
    """Write a row of the trace, unless its bound is an estimate."""
    if row["bound_se"] == 0:
        write(row=[row[name] for name in ("iteration", "accesses", "seconds", "bound")])


def write(**message: Any) -> None:
    """Write a message for the lab."""
    print(json.dumps(message), flush=True)


def exit_with_input() -> None:
    """Wait until the input closes; then interrupt the run, as Ctrl-C does, and exit."""
    while os.read(0, 4096):
        pass
    _thread.interrupt_main()
    time.sleep(GRACE)
    os._exit(1)


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(5)  # the server has priority
    main()
