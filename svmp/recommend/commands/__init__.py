"""`svmp recommend`: from a file of ratings to recommendations, on the command line."""

from __future__ import annotations

import typer

from svmp.recommend.commands import ask, learn, partition, serve

recommend = typer.Typer(
    help="Recommendations from a file of ratings, with honest uncertainty.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (learn.fit, learn.evaluate, ask.top, ask.similar):
    recommend.command()(command)
recommend.command(name="fold-in")(ask.fold_in)
recommend.command()(ask.predict)
recommend.command()(ask.explain)
recommend.command()(learn.update)
recommend.command()(partition.partition)
recommend.command()(serve.serve)
