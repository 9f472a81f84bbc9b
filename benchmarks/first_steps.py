"""Compare node-wise steps with every first step of the paper's schedule, at C = 1.

    python benchmarks/first_steps.py --data netflix-shaped --seeds 0 1 2

Algorithm 1 reads one child of each hidden scalar, for a number of sweeps' worth of accesses. The
final bound, in thousands of nats, is averaged over seeds. Prints a Markdown table with a line for
each data set and option.
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
from no_divergence import load

import svmp
from svmp.inference.steps import Steps
from svmp.study.netflix import matrix_factorization


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", nargs="+", default=["netflix-shaped", "goodbooks", "movietweetings"]
    )
    parser.add_argument("--options", nargs="+", default=["a", "b"])
    parser.add_argument("--factors", type=int, default=5)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--powers", nargs="+", type=int, default=range(11), help="of 1/2")
    parser.add_argument("--sweeps", type=float, default=6)
    settings = parser.parse_args()
    policies: dict[str, Steps] = {"Nodewise": svmp.Nodewise()}
    policies |= {f"1/{2**p}": svmp.RobbinsMonro(0.6, rho1=2.0**-p) for p in settings.powers}
    print("| data | option | " + " | ".join(policies) + " |")
    print("|---" * (2 + len(policies)) + "|", flush=True)
    for name, option in product(settings.data, settings.options):
        ratings = load(name)
        if ratings is None:
            print(f"| {name} | ({option}) | the data are absent |", flush=True)
            continue
        model = matrix_factorization(ratings, settings.factors)
        print(f"| {name} | ({option}) ", end="", flush=True)
        for steps in policies.values():
            fits = [
                svmp.fit(
                    model,
                    svmp.Children(1, option),
                    steps=steps,
                    seed=seed,
                    tol=0,
                    max_sweeps=settings.sweeps,
                    bound_every=10**9,
                    progress=False,
                )
                for seed in settings.seeds
            ]
            lost = sum(fit.status == "diverged" for fit in fits)
            mean = np.mean([fit.bound for fit in fits]) / 1000
            shown = f"{lost} of {len(fits)} diverge" if lost else f"{mean:,.1f}"
            print(f"| {shown} ", end="", flush=True)
        print("|", flush=True)


if __name__ == "__main__":
    main()
