"""A page for all tests of a module, since Python takes seconds to start, and one alone where a test needs that."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from lab.page.web.served import SITE, Web, serve

Start: TypeAlias = Callable[..., Web]


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    if not (SITE / "index.html").exists():
        pytest.exit("make page needs build/web/page: make web", returncode=1)
    with serve(SITE) as origin:
        yield origin


def _check_settled(web: Web) -> None:
    """Check that the browser printed nothing, and asked for nothing but the files of the page."""
    messages, web.messages = web.messages, []
    assert messages == []
    assert web.list_foreign_requests() == []


@pytest.fixture(scope="module")
def shared(browser: Any, site: str) -> Iterator[Web]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield Web(context, site)
    context.close()


@pytest.fixture
def web(shared: Web) -> Iterator[Web]:
    """The page of the module; a test replaces what was open before."""
    shared.page.evaluate("document.getElementById('error').hidden = true")
    yield shared
    _check_settled(shared)


@pytest.fixture
def start(browser: Any, site: str) -> Iterator[Start]:
    """A function that opens a separate page: `scheme`, `width`, `address`."""
    contexts: list[Any] = []
    pages: list[Web] = []

    def begin(*, scheme: str = "light", width: int = 1280, address: str = "/") -> Web:
        contexts.append(browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}))
        pages.append(Web(contexts[-1], site, address))
        return pages[-1]

    yield begin
    for page in pages:
        _check_settled(page)
    for context in contexts:
        context.close()
