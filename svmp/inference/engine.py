"""Stochastic variational message passing: the paper's Algorithms 1 and 2, and full VB.

For each hidden x_i, with rows_i drawn by the method among the N_i children of x_i,

    lambda_i_temp = eta_i + (N_i / |rows_i|) * sum over e in rows_i of eta_(e -> i)
    lambda_i     <- (1 - rho_i) lambda_i + rho_i lambda_i_temp

in option (a) at once, in option (b) at the end of the iteration. Full VB reads all rows and takes
unit steps, which is equation (5). Updaters compute the new lambda_i (updaters/), methods draw the
rows (methods/), policies give the steps (steps/). All iterations are run here.
"""

from __future__ import annotations

from dataclasses import replace

from svmp.inference.program.program import Program
from svmp.inference.state.info import Info
from svmp.inference.state.state import State


def step(program: Program, state: State, measured: bool = False) -> tuple[State, Info]:
    """Update every hidden variable once; return the next state and a record of the iteration.

    q is changed in place: the next state shares its arrays with the last. If the bound is measured
    next, the last update of a mean keeps the sums over rows that it needs.
    """
    q, t = state.q, state.iteration + 1
    rows, relaxation = program.draw(t), program.accelerate(state)
    rho = program.step_rule(state, rows, relaxation, measured)
    info, collected = Info(fresh=rows.fresh), []
    program.begin(q, rows)
    for updater in program.updaters:  # each hidden x_i
        for change in program.changes(updater, q, rows, rho):
            info.add(change)
            program.check(change)
            if rho.at_once(change.name):  # option (a)
                program.apply(q, change)
            else:  # option (b)
                collected.append(change)
    for change in collected:
        program.apply(q, change)
    accesses = state.accesses + info.accesses
    return replace(state, iteration=t, accesses=accesses, relaxation=relaxation), info
