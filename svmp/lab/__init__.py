"""`svmp lab`: a page on this machine to pick an algorithm, run it, and watch the bound.

The server (app.py) answers only to its own page on this machine (same_origin.py). The form of the
page follows from svmp's lists of methods and step policies (choices.py). The server checks the
fields that the page sends (fields.py, request.py), makes each run in a process of its own (runs.py,
process.py, worker.py), sends each bound to the page as it is computed, and exports runs as Python.
"""
