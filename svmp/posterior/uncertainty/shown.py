"""Which variances and covariances a fit shows: one rule, for everything that shows them.

    the fit                                             its variances are those of
    a small network at a maximum of the bound           linear response: Normals, MvNormals, Gammas
    a fit with joint blocks                             the joint q; in a small network the
                                                        precisions of its rows by linear response
    any other: large (small.py), with chains, in        q
    parts, after an update, not converged, or with a
    q for which linear response is refused

A fit that was loaded shows what it showed when it was saved. `corrected=False` asks every call for
those of q, and `corrected=True` for those of linear response, or for the reason why there are none.
"""

from __future__ import annotations

import numpy as np

from svmp.posterior.record.kinds import RESPONSE, Q, kind_of
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.uncertainty.corrected import correctable
from svmp.posterior.uncertainty.linear_response import MOST

IN_PARTS = "the rows of this fit are in parts, and linear response needs them in one model"
AFTER_UPDATE = (
    "this fit is an update, and linear response needs a model of all rows, those of earlier fits "
    "too"
)
"""Reasons why a fit has no linear response."""


def note(fit: RunRecord, shown: RunRecord, default: RunRecord, refused: str) -> str:
    """Return the line below a table of a fit that says what its sds are.

    Parameters
    ----------
    fit, shown, default
        The fit, and the records with the sds that are shown here, and that are by default.
    refused
        Why there are none of linear response, if that is known.
    """
    kind = kind_of(shown)
    if RESPONSE in kind and shown is not fit:
        return f"sds by {kind}; fit.summary(corrected=False) has those of q"
    if kind != Q:
        return f"sds by {kind}"
    found = "sds of q, too small where variables depend on each other"
    if default is not shown:
        return f"{found}: fit.summary() has those of linear response"
    if refused:
        return f"{found}; there are none of linear response: {refused}"
    call = corrected_call(fit)
    return f"{found}: {call} has those of linear response" if call else found


def corrected_call(fit: RunRecord) -> str:
    """Return the call that corrects a fit, or what it can correct of it; "" if there is none.

    A variable of more than 1,000 numbers is refused: the others are then named, smallest first, as
    long as they are no more numbers together.
    """
    sizes = {n: int(np.size(fit.posteriors[n].mean)) for n in correctable(fit.posteriors)}
    if sum(sizes.values()) <= MOST:
        return "fit.corrected(model)" if sizes else ""
    some, total = [], 0
    for name, size in sorted(sizes.items(), key=lambda item: item[1]):
        total += size
        if total <= MOST:
            some.append(name)
    return f"fit.corrected(model, {some})" if some else ""
