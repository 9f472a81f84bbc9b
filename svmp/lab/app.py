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
from svmp.lab.choices import form
from svmp.lab.data import Source
from svmp.lab.fields import InvalidFields
from svmp.lab.request import read_request
from svmp.lab.runs import LabRun, RunLimitReached, Runs
from svmp.lab.same_origin import SameOrigin

STATIC = Path(__file__).parent / "static"


def make_app(runs: Runs, sources: Mapping[str, Source], port: int) -> Starlette:
    """Return the lab as an ASGI application for a server at a port of 127.0.0.1."""

    async def page(request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def base(request: Request) -> Response:
        return FileResponse(web.STYLE)

    async def plotly(request: Request) -> Response:
        return FileResponse(str(files("plotly") / "package_data" / "plotly.min.js"))

    async def data(request: Request) -> Response:
        return JSONResponse({name: source.title for name, source in sources.items()})

    async def choices(request: Request) -> Response:
        return JSONResponse(form())

    async def events(request: Request) -> Response:
        async def stream() -> AsyncIterator[str]:
            async for update in runs.follow():
                yield f"data: {json.dumps(update)}\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def add(request: Request) -> Response:
        run = runs.add(read_request(await read_json(request), sources))
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
        return PlainTextResponse(run.request.script(), headers=headers)

    def find(request: Request) -> LabRun:
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
            Route("/api/form", choices),
            Route("/api/events", events),
            Route("/api/runs", add, methods=["POST"]),
            Route("/api/runs/{id}", remove, methods=["DELETE"]),
            Route("/api/runs/{id}/stop", stop, methods=["POST"]),
            Route("/api/runs/{id}/script", script),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(SameOrigin, port=port)],
        exception_handlers={
            InvalidFields: invalid_fields,
            RunLimitReached: run_limit_reached,
            HTTPException: http_error,
        },
    )


async def read_json(request: Request) -> Any:
    """Return the JSON body of a request."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "settings must be sent as application/json")
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError):
        raise HTTPException(400, "settings must be sent as JSON") from None


# --- every error has the same form: a sentence for each field ----------------------------------


async def invalid_fields(request: Request, error: Exception) -> Response:
    """Respond to fields that do not describe a run."""
    assert isinstance(error, InvalidFields)
    return web.refusal(error.errors, 422)


async def run_limit_reached(request: Request, error: Exception) -> Response:
    """Respond to a run beyond the limit."""
    return web.refusal({"request": str(error)}, 409)


async def http_error(request: Request, error: Exception) -> Response:
    """Respond to any other request that fails."""
    assert isinstance(error, HTTPException)
    return web.refusal({"request": error.detail}, error.status_code, headers=error.headers)
