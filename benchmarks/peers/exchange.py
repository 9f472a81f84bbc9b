"""How a peer's script is asked: a request as JSON on standard input, the answer to a file."""

import json
import sys
from pathlib import Path


def answer(function):
    """Call a function with the request, and write what it returns."""
    request = json.load(sys.stdin)
    Path(sys.argv[1]).write_text(json.dumps(function(request)))
