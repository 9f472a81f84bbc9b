"""The routes of the lab."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from svmp import web
from svmp.lab.data import Source
from svmp.lab.fields import Refused
from svmp.lab.guard import Guard
from svmp.lab.plan import read_plan
from svmp.lab.runs import Run, Runs, TooMany

STATIC = Path(__file__).parent / "static"


def make_app(runs: Runs, sources: Mapping[str, Source], port: int) -> Starlette:
    """Return the lab as an application for a server at some port of 127.0.0.1."""

    async def page(request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def base(request: Request) -> Response:
        return FileResponse(web.STYLE)

    async def plotly(request: Request) -> Response:
        return FileResponse(str(files("plotly") / "package_data" / "plotly.min.js"))

    async def data(request: Request) -> Response:
        return JSONResponse({name: source.title for name, source in sources.items()})

    async def events(request: Request) -> Response:
        async def stream() -> AsyncIterator[str]:
            async for update in runs.follow():
                yield f"data: {json.dumps(update)}\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def add(request: Request) -> Response:
        run = runs.add(read_plan(await read_json(request), sources))
        return JSONResponse({"id": run.id}, 201)

    async def stop(request: Request) -> Response:
        runs.stop(find(request))
        return Response(status_code=204)

    async def remove(request: Request) -> Response:
        runs.remove(find(request))
        return Response(status_code=204)

    async def script(request: Request) -> Response:
        run = find(request)
        headers = {"Content-Disposition": f'inline; filename="svmp-run-{run.id}.py"'}
        return PlainTextResponse(run.plan.script(), headers=headers)

    def find(request: Request) -> Run:
        run = runs.kept.get(request.path_params["id"])
        if run is None:
            raise HTTPException(404, "there is no such run, or it was removed")
        return run

    return Starlette(
        routes=[
            Route("/", page),
            Route("/base.css", base),
            Route("/plotly.js", plotly),
            Route("/api/data", data),
            Route("/api/events", events),
            Route("/api/runs", add, methods=["POST"]),
            Route("/api/runs/{id}", remove, methods=["DELETE"]),
            Route("/api/runs/{id}/stop", stop, methods=["POST"]),
            Route("/api/runs/{id}/script", script),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, port=port)],
        exception_handlers={Refused: refused, TooMany: too_many, HTTPException: wrong},
    )


async def read_json(request: Request) -> Any:
    """Return the body of a request, if it is JSON."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "settings must be sent as application/json")
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError):
        raise HTTPException(400, "settings must be sent as JSON") from None


# --- what is refused is said in one form: a sentence for each field ---------------------------


async def refused(request: Request, error: Exception) -> Response:
    """Answer settings that cannot be run."""
    assert isinstance(error, Refused)
    return web.refusal(error.errors, 422)


async def too_many(request: Request, error: Exception) -> Response:
    """Answer a run too many."""
    return web.refusal({"request": str(error)}, 409)


async def wrong(request: Request, error: Exception) -> Response:
    """Answer any other request that cannot be met."""
    assert isinstance(error, HTTPException)
    return web.refusal({"request": error.detail}, error.status_code, headers=error.headers)
