"""The routes of the service."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse

from svmp import __version__, web
from svmp.errors import SvmpError, UnknownError
from svmp.recommend.service import bodies
from svmp.recommend.service.answers import Answer, ServedModel
from svmp.recommend.service.current import CurrentModel
from svmp.recommend.service.gateway import Gateway, Limits, is_open
from svmp.recommend.service.metrics import Metrics
from svmp.recommend.service.route import Route
from svmp.recommend.service.work import ComputeThread, QueueFull

PAGE = Path(__file__).parent / "page"
ERRORS = 10
"""Maximum number of errors in a response."""


def make_app(
    current: CurrentModel, limits: Limits, metrics: Metrics, token: str | None, port: int | None
) -> Gateway:
    """Return the service; with a port, it answers only requests to that port of this machine."""
    worker = ComputeThread()

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        watch = asyncio.create_task(current.watch(worker.thread))
        yield
        watch.cancel()
        worker.close()

    app = FastAPI(
        title="svmp recommend",
        version=__version__,
        description="Recommendations with uncertainty.",
        docs_url=None,  # it would load scripts from other hosts
        redoc_url=None,
        lifespan=life,
        responses={"4XX": {"model": bodies.ErrorBody, "description": "The request is invalid."}},
        exception_handlers={
            RequestValidationError: invalid,
            SvmpError: cannot,
            HTTPException: wrong,
            QueueFull: busy,
        },
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.router.route_class = Route
    if token is not None:
        app.openapi = functools.partial(with_token, app)  # type: ignore[method-assign]

    async def answer(work: Callable[[Any, Any], Answer], asked: Any) -> Response:
        """Answer from the model in use, which may be replaced before the next request."""
        served = current.served
        try:
            return as_json(await worker.answer(work, served, asked))
        except UnknownError as error:
            return unknown(error, asked, served.field_of(asked))

    @app.post("/recommend", responses=ok(bodies.Recommended))
    async def recommend(asked: bodies.Recommend) -> Response:
        """Return the best items for users."""
        return await answer(ServedModel.recommend, asked)

    @app.post("/fold-in", responses=ok(bodies.Folded))
    async def fold_in(asked: bodies.FoldIn) -> Response:
        """Return the best items for somebody who is not in the model."""
        return await answer(ServedModel.fold_in, asked)

    @app.post("/predict", responses=ok(bodies.Predicted))
    async def predict(asked: bodies.Predict) -> Response:
        """Return expected ratings, or probabilities, and their standard deviations."""
        return await answer(ServedModel.predict, asked)

    @app.post("/similar", responses=ok(bodies.Neighbours))
    async def similar(asked: bodies.Similar) -> Response:
        """Return the items most similar to an item, or the users most similar to a user."""
        return await answer(ServedModel.similar, asked)

    @app.post("/explain", responses=ok(bodies.Explained))
    async def explain(asked: bodies.Explain) -> Response:
        """Explain scores: how much each of somebody's ratings contributes to them."""
        return await answer(ServedModel.explain, asked)

    @app.get("/items", responses=ok(bodies.ItemList))
    async def items(
        q: Annotated[str, Query(max_length=200, description="Words of a title, or of an id.")] = "",
        n: Annotated[int, Query(ge=1, le=1000)] = 20,
    ) -> Response:
        """Search items by title; without words, return those with the most ratings."""
        return await answer(lambda served, asked: served.search(*asked), (q, n))

    @app.get("/model", responses=ok(bodies.ModelInfo))
    async def model() -> Response:
        """Return information about the model in use."""
        return as_json(current.served.about)

    @app.get("/health", responses=ok(bodies.Health))
    async def health() -> Response:
        """Return the status of the service, and whether model files were loaded or refused."""
        about = current.served.about
        found = {"model": about, "swaps": current.swaps, "refused": current.refused}
        return as_json({"status": "ok", **found})

    @app.get("/ready", responses={**ok(bodies.Ready), 503: {"model": bodies.Ready}})
    async def ready() -> Response:
        """Return 200 if requests can be answered soon, else 503 with the reason."""
        why = worker.unready(limits.seconds)
        found = as_json({"ready": why is None, "reason": why})
        found.status_code = 200 if why is None else 503
        return found

    @app.get("/metrics", responses={200: {"content": {"text/plain": {}}}})
    async def prometheus() -> Response:
        """Return metrics in Prometheus's text format."""
        return Response(metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def page() -> Response:
        return FileResponse(PAGE / "index.html")

    @app.get("/page/base.css", include_in_schema=False)
    async def style() -> Response:
        return FileResponse(web.STYLE)

    app.mount("/page", StaticFiles(directory=PAGE))
    return Gateway(app, limits, metrics, token, None if token is not None else port)


def with_token(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI schema, with the token that all but the open paths require."""
    if app.openapi_schema is None:
        found = FastAPI.openapi(app)
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in found["paths"].items():
            for operation in operations.values():
                operation["security"] = [] if is_open(path) else [{"token": []}]
    assert app.openapi_schema is not None
    return app.openapi_schema


def ok(model: type) -> dict[int | str, dict[str, Any]]:
    """Describe a successful response."""
    return {200: {"model": model}}


def as_json(answer: Answer) -> Response:
    """Return a response in JSON, by an encoder faster than the standard library's."""
    return Response(to_json(answer, inf_nan_mode="null"), media_type="application/json")


# --- errors: one sentence for each field ----------------------------------------------------


async def invalid(request: Request, error: Exception) -> Response:
    """Respond to a request that does not match the schema."""
    assert isinstance(error, RequestValidationError)
    errors: dict[str, str] = {}
    for one in error.errors()[:ERRORS]:
        place = [str(part)[:40] for part in one["loc"] if part not in ("body", "query")]
        place = [part for part in place if "[" not in part]  # a branch of a union of types
        if one["type"] == "json_invalid":
            return web.refusal({"request": "the body is not JSON"}, 400)
        if place and place[-1] in ("constrained-int", "constrained-str"):
            place, said = place[:-1], "an id must be a string or a whole number"
        else:
            said = str(one["msg"])[:200]
        errors.setdefault(".".join(place) or "request", said)
    return web.refusal(errors, 422)


def unknown(error: UnknownError, asked: Any, field: str) -> Response:
    """Respond to a request with an id that is not in the model."""
    said = error.fact
    optional = isinstance(asked, bodies.Recommend | bodies.Predict)
    if error.advice and optional and field in ("users", "items"):
        said += '; with "unknown": "prior" it is answered as for one without any data'
    return web.refusal({field: said}, 404)


async def cannot(request: Request, error: Exception) -> Response:
    """Respond to a request that the model cannot answer."""
    return web.refusal({"request": str(error)}, 422)


async def wrong(request: Request, error: Exception) -> Response:
    """Respond to any other HTTP error."""
    assert isinstance(error, HTTPException)
    return web.refusal({"request": error.detail}, error.status_code, headers=error.headers)


async def busy(request: Request, error: Exception) -> Response:
    """Respond that the queue is full."""
    return web.refusal({"request": "too many requests are waiting: try again later"}, 503)
