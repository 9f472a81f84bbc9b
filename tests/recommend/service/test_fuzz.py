"""Requests generated from the OpenAPI schema: answered or refused, never 500."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import pytest

schemathesis = pytest.importorskip("schemathesis")

from .conftest import KINDS, app_of, saved  # noqa: E402

LEFT_OUT = ("positive_data_acceptance",)
"""A request can be as described and yet name items that are not there, or rate beyond the range."""


def fuzz(path: Path, examples: int) -> None:
    app, _ = app_of(path)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    checks = [c for c in schemathesis.checks.CHECKS.get_all() if c.__name__ not in LEFT_OUT]

    for result in schema.get_all_operations():
        operation = result.ok()

        @hypothesis.settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy())
        def asked(case: Any) -> None:
            case.call_and_validate(checks=checks)

        asked()


@pytest.mark.parametrize("kind", ["numbers", "events"])
def test_generated_requests_never_cause_a_server_error(kind: str, folder: Path) -> None:
    fuzz(saved(kind, folder), 25)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "demo"])
def test_many_generated_requests_never_cause_a_server_error(kind: str, folder: Path) -> None:
    fuzz(saved(kind, folder), 1000)
