"""How a peer's script is asked: a request as JSON on standard input, the answer to a file."""

import json
import sys
import time
from pathlib import Path

import numpy as np


def answer(function):
    """Call a function with the request, and write what it returns."""
    request = json.load(sys.stdin)
    Path(sys.argv[1]).write_text(json.dumps(function(request)))


def load(request):
    """Return (user, item, rating) for training and held out, and how many users and items."""
    with np.load(request["data"]) as table:
        train, held = ([table[f"{part}_{x}"] for x in "uir"] for part in ("train", "held"))
    return train, held, request["sizes"]


def rmse(prediction, rating):
    """Root mean squared error, with predictions kept in the range of ratings."""
    prediction = np.clip(prediction, rating.min(), rating.max())
    return float(np.sqrt(np.mean((prediction - rating) ** 2)))


class Stopwatch:
    """Seconds since it was made, without those of `pause`."""

    def __init__(self):
        self.began, self.paused = time.perf_counter(), 0.0

    @property
    def seconds(self):
        return time.perf_counter() - self.began - self.paused

    def pause(self, function, *arguments):
        """Call a function off the clock."""
        began = time.perf_counter()
        result = function(*arguments)
        self.paused += time.perf_counter() - began
        return result
