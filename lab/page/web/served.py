"""A folder on a port of this machine, and the page of `make web` that is opened from it."""

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

ROOT: Final = Path(__file__).parents[3]
SITE: Final = ROOT / "build/web/page"
PATIENCE: Final = 40_000
"""Milliseconds until Python has started on a machine that does much else."""

_CONTROL: Final = """async () => {
    const workers = navigator.serviceWorker;
    await workers.ready;
    if (!workers.controller) await new Promise((resolve) => workers.addEventListener("controllerchange", resolve));
}"""


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_words: object) -> None:
        """Print nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder, as any file server does, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=str(folder)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Web:
    """An open page: `page` is Playwright's, `messages` are those of the console, `requests` those of the page."""

    def __init__(self, context: Any, origin: str, address: str = "/") -> None:
        self.origin = origin
        self.messages: list[str] = []
        self.requests: list[tuple[str, str]] = []
        context.on("request", lambda request: self.requests.append((request.method, request.url)))
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", self._refuse)
        self.page.goto(origin + address)

    def _refuse(self, dialog: Any) -> None:
        self.messages.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, *paths: Path | str | dict[str, Any]) -> None:
        """Open files, and wait until they are read, or refused."""
        files: Sequence[Any] = [path if isinstance(path, dict) else str(path) for path in paths]
        self.clear()
        self.page.set_input_files("#files", files)
        self.page.wait_for_selector("#recognized li, #error:not([hidden]), #verdicts .card")

    def clear(self) -> None:
        """Remove the files and refusals of earlier actions, so that they are not taken for later ones."""
        self.page.evaluate("for (const id of ['recognized', 'verdicts']) document.getElementById(id).replaceChildren()")
        self.page.evaluate("document.getElementById('error').hidden = true")

    def wait_for_cache(self) -> None:
        """Wait until the service worker has all files and answers for this page."""
        # Not wait_for_function, which evaluates its text in the page, as the policy of the page forbids.
        self.page.evaluate(_CONTROL)

    def show(self, view: str) -> None:
        """Go to a view."""
        self.page.click(f"#tab-{view}")

    def read_text(self, selector: str) -> str:
        """Return the text of a place, once it is there."""
        return str(self.page.locator(selector).first.inner_text())

    @property
    def error(self) -> str:
        """Sentence of the error, "" if there is none."""
        return str(self.page.evaluate("document.getElementById('error').textContent"))

    @property
    def timeline(self) -> Any:
        """Frame of the timeline."""
        return self.page.frame_locator("#timeline iframe")

    def list_foreign_requests(self) -> list[tuple[str, str]]:
        """Return each request for something else than the files of the page."""
        own = (f"{self.origin}/", f"blob:{self.origin}/", "data:,")
        return [(method, url) for method, url in self.requests if method != "GET" or not url.startswith(own)]
