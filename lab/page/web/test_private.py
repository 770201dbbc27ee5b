"""Privacy: nothing leaves the machine, no content of a file is stored, and no network is needed."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lab.page.web.conftest import Start
from lab.page.web.served import SITE, Web, serve
from lab.page.web.test_views import LEASE, LOG, WATCH, check_views

CACHE = """async (urls) => {
    for (const [name, url] of Object.entries(urls)) await (await caches.open(name)).put(url, new Response(name));
}"""
REQUEST = """(url) => fetch(url).then(() => "answered", (error) => "refused")"""
CACHED = """async () => {
    const found = [];
    for (const name of await caches.keys())
        for (const request of await (await caches.open(name)).keys()) found.push(request.url);
    return found;
}"""
STORED = "() => [localStorage.length, sessionStorage.length, document.cookie.length]"


def test_only_files_of_the_page_are_requested_while_files_are_read(start: Start) -> None:
    web = start()
    web.open(LOG, WATCH)
    check_views(web)
    assert web.list_foreign_requests() == []
    assert any(url.endswith("pyodide.asm.wasm") for _, url in web.requests)


@pytest.mark.parametrize("place", ["page", "worker"])
def test_the_policy_refuses_any_other_origin(start: Start, tmp_path: Path, place: str) -> None:
    web = start()
    web.open(LOG)
    asker: Any = web.page if place == "page" else web.page.workers[0]
    with serve(tmp_path) as elsewhere:
        assert asker.evaluate(REQUEST, f"{elsewhere}/") == "refused"
    web.messages.clear()
    web.requests = [one for one in web.requests if not one[1].startswith(elsewhere)]


def test_injected_scripts_do_not_run(start: Start) -> None:
    web = start()
    web.page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); }"  # noqa: E501
    )
    assert web.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in message for message in web.messages)
    web.messages.clear()


def test_nothing_of_what_is_opened_is_stored(start: Start) -> None:
    web = start()
    web.open(LOG, WATCH)
    check_views(web)
    web.wait_for_cache()
    assert web.page.evaluate(STORED) == [0, 0, 0]
    assert web.page.evaluate("indexedDB.databases().then((all) => all.length)") == 0
    files = {f"{web.origin}/{file.relative_to(SITE)}" for file in SITE.rglob("*")}
    assert set(web.page.evaluate(CACHED)) <= {*files, f"{web.origin}/"}


def test_without_a_network_everything_works(start: Start) -> None:
    web = start()
    web.open(LOG)
    web.wait_for_cache()
    web.page.context.set_offline(True)
    web.page.reload()
    web.open(LOG, WATCH)
    check_views(web)


def test_the_address_keeps_view_and_lease_and_no_data(start: Start) -> None:
    web = start()
    web.open(LOG, WATCH)
    web.page.click(f"#leases button.link:text-is('{LEASE}')")
    assert web.page.url == f"{web.origin}/#view=why&lease=invoices%2Finvoices"
    web.page.reload()
    assert LEASE in web.read_text("#leases")
    web.open(LOG, WATCH)
    web.page.wait_for_selector(f"#account h2:has-text('{LEASE}')")


def test_an_address_opens_a_view(start: Start) -> None:
    assert start(address="/#view=review").page.is_visible("#review")
    assert start(address="/#view=none").page.is_visible("#why")


@pytest.fixture
def open_beside(browser: Any, tmp_path: Path) -> Iterator[Callable[[str], Web]]:
    """Serve the page in a folder of an origin, "" for its root, and open another page of it."""
    with ExitStack() as stack:

        def open_other(folder: str) -> Web:
            (tmp_path / folder).mkdir(exist_ok=True)
            for file in SITE.iterdir():
                (tmp_path / folder / file.name).symlink_to(file)
            (tmp_path / "other").mkdir()
            (tmp_path / "other/index.html").write_text('<title>another</title><link rel="icon" href="data:,">')
            context = browser.new_context()
            stack.callback(context.close)
            return Web(context, stack.enter_context(serve(tmp_path)), "/other/")

        yield open_other


def test_caches_of_other_sites_of_the_origin_stay(open_beside: Callable[[str], Web]) -> None:
    web = open_beside("page")
    cached = {
        "other-site-v1": "/other/a",
        "v-0123456789abcdef": "/other/b",
        f"lease-webhook {web.origin}/b/ v-1": "/b/",
    }
    earlier = {"v-fedcba9876543210": "/page/a", f"lease-webhook {web.origin}/page/ v-1": "/page/b"}
    web.page.evaluate(CACHE, {**cached, **earlier})
    web.page.goto(f"{web.origin}/page/")
    web.wait_for_cache()
    kept = set(web.page.evaluate("caches.keys()"))
    assert kept & {*cached, *earlier} == set(cached)
    assert len(kept) == len(cached) + 1


def test_another_page_of_the_origin_is_not_kept_as_this_one(open_beside: Callable[[str], Web]) -> None:
    web = open_beside("")
    web.page.goto(web.origin)
    web.wait_for_cache()
    web.page.goto(f"{web.origin}/other/")
    assert "tab-why" in web.page.evaluate("caches.match('/').then((found) => found.text())")
