"""`svmp lab`: a page on this machine to pick an algorithm, run it, and watch the bound.

The server (app.py) answers to this machine's own page only (guard.py). It checks what the page asks
for (settings.py), runs it in a process of its own (runs.py, worker.py) and passes on each bound as
it is computed; export.py writes a run down as Python.
"""
