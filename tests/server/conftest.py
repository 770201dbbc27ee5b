"""Both ways to serve: the worker that `lease-webhook serve` uses, and gunicorn's with threads.

A test of a running server starts it by the fixture `start`, so it runs against both. tests/data/server-gthread.json
lists what the second way lacks, test by test, with the reason: those are skipped, and with LACKING=1 each must fail.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import pytest

from tests.server.harness import Server, running, running_gthread
from webhook.server.logs import LOG, STDOUT

LACKING: Final[dict[str, str]] = json.loads((Path(__file__).parents[1] / "data" / "server-gthread.json").read_text())
"""Reasons by test, with its other parameters if only some of its cases are lacking."""
WAYS: Final = {"guarded": running, "gthread": running_gthread}

Start = Callable[..., AbstractContextManager[Server]]


@pytest.fixture(scope="module", params=WAYS)
def start(request: pytest.FixtureRequest) -> Start:
    """Return what starts the service: `start(directory of the certificates, **options)`."""
    return WAYS[request.param]


@pytest.fixture
def the_log_as_it_was() -> Iterator[None]:
    """A service takes the log of its process over."""
    handlers, level, propagate = list(LOG.handlers), LOG.level, LOG.propagate
    yield
    STDOUT.stop()
    LOG.handlers, LOG.level, LOG.propagate = handlers, level, propagate


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is listed, or expect it to fail."""
    for item in items:
        case = getattr(item, "callspec", None)
        if not isinstance(item, pytest.Function) or case is None or case.params.get("start") != "gthread":
            continue
        others = case.id.removeprefix("gthread").removeprefix("-")
        names = (f"{item.path.stem}::{item.originalname}", f"{item.path.stem}::{item.originalname}[{others}]")
        for reason in [LACKING[name] for name in names if name in LACKING]:
            if os.environ.get("LACKING"):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
            else:
                item.add_marker(pytest.mark.skip(reason=f"plain gunicorn: {reason}"))
