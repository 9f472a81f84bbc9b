"""`svmp warm`: compile all loops ahead, in as many processes as there are cores.

A recipe (recipes.py) is a small fit that calls the loops of one kind of network, each in a process
of its own (run.py). Durations are kept for the next time (kernels/machine/durations.py).
"""
