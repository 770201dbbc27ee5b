"""A browser for all tests, and a new page for each."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import sync_playwright

from lab.page.timeline_page import TimelinePage
from webhook.analysis.timeline.model import Timeline

OpenPage: TypeAlias = Callable[..., TimelinePage]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.exit("make page needs Chromium: apt-get install chromium, or CHROMIUM=/path/of/it", returncode=1)
    with sync_playwright() as driver:
        # As root, as in a container, Chromium starts without its sandbox only.
        running = driver.chromium.launch(executable_path=program, chromium_sandbox=os.geteuid() != 0)
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[OpenPage]:
    """A function that opens a timeline from a file.

    After the test, the browser must have printed nothing and requested nothing else.
    """
    contexts: list[Any] = []
    pages: list[TimelinePage] = []

    def open_timeline(
        timeline: Timeline, *, scheme: str = "light", width: int = 1280, height: int = 900
    ) -> TimelinePage:
        contexts.append(browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height}))
        pages.append(TimelinePage(contexts[-1].new_page(), tmp_path, timeline))
        return pages[-1]

    yield open_timeline
    for page in pages:
        assert page.messages == []
        assert page.requests == [page.url]
    for context in contexts:
        context.close()
