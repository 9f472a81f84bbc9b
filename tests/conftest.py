"""Fixtures: random data, compiled loops for small networks, and pages in a headless Chromium."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

ABOUT_LOOPS = ("against_bayespy", "fuzz", "inference", "kernels", "models", "network", "parts")
"""Rooms whose tests fit small networks to check compiled loops."""
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 120_000
"""Milliseconds to wait for a page to show something; a first run compiles its loops."""
DONE_BY_THE_PAGE = "net::ERR_ABORTED"
"""How a request ends that the page itself aborts, which is not an error."""
BEGINNINGS: dict[str, Any] = {}
"""By module: the state of its random generator before its first test."""


def pytest_configure() -> None:
    """Let tests press Ctrl-C in the background too, where shells start programs that ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def data_of_its_own(request: pytest.FixtureRequest) -> None:
    """Restore the random generator of a module, so that no test's data depend on other tests."""
    module = getattr(request, "module", None)
    generator = getattr(module, "RNG", None)
    if module is not None and isinstance(generator, np.random.Generator):
        generator.bit_generator.state = BEGINNINGS.setdefault(
            module.__name__, generator.bit_generator.state
        )


@pytest.fixture(autouse=True)
def loops_for_small_networks(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let `fit` use compiled loops for small networks too, in the rooms whose tests are about them.

    Other rooms, and tests marked `by_size`, have svmp's own rule.
    """
    room = request.node.path.relative_to(Path(__file__).parent).parts[0]
    if room in ABOUT_LOOPS and request.node.get_closest_marker("by_size") is None:
        monkeypatch.setattr("svmp.inference.program.default.SMALL", 0)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium, for one module: while it runs, its thread has a running event loop."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no browser here: none of {', '.join(PROGRAMS)} is installed")
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Make pages that fail the test if they have an error.

    Takes Playwright's options of a context, as `viewport=`, `color_scheme=` or `offline=`; errors
    that match the regular expression `allow=` are ignored.
    """
    with ExitStack() as pages:
        yield lambda **options: pages.enter_context(watched(browser, **options))


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    """A page that fails the test if it has an error."""
    return new_page()


@contextmanager
def watched(browser: Browser, *, allow: str = r"(?!)", **options: Any) -> Iterator[Page]:
    """Open a page; at the end, fail if it logged or threw an error, or if a request failed."""
    troubles: list[str] = []

    def failed(request: Request) -> None:
        if request.failure != DONE_BY_THE_PAGE:
            troubles.append(f"request failed: {request.url}: {request.failure}")

    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.on("console", lambda m: troubles.append(f"console: {m.text}") if m.type == "error" else 0)
    page.on("pageerror", lambda error: troubles.append(f"thrown: {error}"))
    page.on("requestfailed", failed)
    yield page
    context.close()
    left = [trouble for trouble in troubles if not re.search(allow, trouble)]
    if left:
        pytest.fail("\n".join(["the page had trouble:", *left]))
