"""Routes that validate a body directly from its bytes, which is several times faster.

FastAPI documents them like any other route; its handling of dependencies and forms, of which there
are none here, is skipped.
"""

from __future__ import annotations

from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

BODY = "asked"
"""Name of the argument for the body."""


class Route(APIRoute):
    """A route whose endpoint may have one argument, the body."""

    def __init__(self, path: str, endpoint: Any, **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        hints = get_type_hints(endpoint)
        self.check = TypeAdapter(hints[BODY]).validate_json if BODY in hints else None

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.check is None or scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        request = Request(scope, receive)
        sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if sent != "application/json":
            raise HTTPException(415, "the body must be sent as application/json")
        try:
            asked = self.check(await request.body())
        except ValidationError as error:
            raise RequestValidationError(error.errors(include_url=False)) from None
        response: Response = await self.endpoint(asked)
        await response(scope, receive, send)
