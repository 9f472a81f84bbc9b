"""`python -m svmp`: the command line."""

from svmp.cli import main

main()
