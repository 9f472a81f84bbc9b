"""The process in which one run happens: `python -m svmp.lab.worker`.

It reads its order from the first line of its input, and writes a line of JSON for each exact
bound of the trace and one for how the run ended; two if it diverged, the second when it is known
what would have been safe. When its input closes, because the run was stopped or because the lab
is gone, it ends: kindly, and if that takes too long, at once.
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
"""Seconds that a run has to come to its end once it is asked to."""


def main() -> None:
    """Do the run that the first line of the input describes."""
    from svmp.errors import SvmpError
    from svmp.lab.plan import Plan

    order = sys.stdin.readline()
    if not order:
        return  # the lab is gone
    threading.Thread(target=end_with_the_input, daemon=True).start()
    try:
        fit = Plan.of_order(json.loads(order)).run(watch=tell_row)
    except KeyboardInterrupt:
        tell_end("interrupted")
    except SvmpError as error:
        tell_end("failed", str(error))
    else:
        if fit.diagnosis is not None:
            tell_end(fit.status, fit.diagnosis.event, fit.bound, probing=True)
        with suppress(KeyboardInterrupt):  # while a first step is looked for that is safe
            tell_end(fit.status, str(fit.diagnosis or ""), fit.bound)


def tell_end(
    status: str, sentence: str = "", bound: float | None = None, probing: bool = False
) -> None:
    """Write down how the run ended; there is more to come if a safe first step is looked for."""
    tell(end=status, sentence=sentence, bound=bound, probing=probing)


def tell_row(row: dict[str, float]) -> None:
    """Write down a row of the trace, unless its bound is an estimate."""
    if row["bound_se"] == 0:
        tell(row=[row[name] for name in ("iteration", "accesses", "seconds", "bound")])


def tell(**message: Any) -> None:
    """Write a line for the lab."""
    print(json.dumps(message), flush=True)


def end_with_the_input() -> None:
    """Wait until the input closes; then interrupt the run, as Ctrl-C does, and end."""
    while os.read(0, 4096):
        pass
    _thread.interrupt_main()
    time.sleep(GRACE)
    os._exit(1)


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(5)  # the page comes first
    main()
