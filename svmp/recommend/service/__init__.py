"""`svmp recommend serve`: a saved model as a web service, and a page to try it on.

A request passes who may ask and how much (gateway.py), is checked against its description
(bodies.py) and answered (work.py, answers.py) from the model in use, which is replaced as a whole
when a new one is found at its path (current.py). demo.py makes the model that is served by default.
"""
