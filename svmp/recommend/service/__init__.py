"""`svmp recommend serve`: a saved model as a web service, and a page to try it.

Access and size of a request are checked first (gateway.py), then its body (bodies.py). It is
answered (work.py, answers.py) from the model in use, which is replaced as a whole
when a new one is found at its path (current.py). demo.py makes the model that is served by default.
"""
