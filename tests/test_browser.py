"""Errors in a page are detected by the browser fixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import watched

TROUBLE = {
    "console: broken": "<script>console.error('broken')</script>",
    "thrown: broken": "<script>throw new Error('broken')</script>",
    "request failed: http://127.0.0.1:1/": "<img src='http://127.0.0.1:1/'>",
    "Content Security Policy": (
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'\">"
        "<script>document.title = 'ran'</script>"
    ),
}


@pytest.mark.parametrize("said", TROUBLE)
def test_errors_in_a_page_fail_its_test(browser: Any, said: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=said), watched(browser) as page:
        page.set_content(TROUBLE[said])


def test_allowed_errors_do_not_fail_the_test(new_page: Callable[..., Any]) -> None:
    page = new_page(allow="console: broken", viewport={"width": 320, "height": 480})
    page.set_content(TROUBLE["console: broken"])
    assert page.evaluate("innerWidth") == 320


def test_a_page_without_errors_passes(page: Any) -> None:
    page.set_content("<title>fine</title><script>console.log('fine')</script>")
    assert page.title() == "fine"
