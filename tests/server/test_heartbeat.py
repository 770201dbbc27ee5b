"""gunicorn kills a worker that it does not hear of; what it hears must not depend on the wall clock or on our bugs."""

import asyncio
import os
import time
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.config import Config

from webhook.server.worker import ReviewServer


@pytest.mark.parametrize("jump", [3600, -3600, 10 * 365 * 86_400], ids=["an hour ahead", "an hour back", "ten years"])
def test_the_master_hears_of_the_worker_once_a_second_whatever_the_clock_does(
    jump: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[int] = []
    flushes: list[int] = []

    def flush() -> None:
        flushes.append(1)
        raise RuntimeError

    service: Any = SimpleNamespace(metrics=SimpleNamespace(flush=flush), load=SimpleNamespace(give_back=lambda: None))
    server = ReviewServer(Config("none:app", log_config=None), service, os.getppid(), lambda: beats.append(1))
    server.config.encoded_headers = []
    asyncio.run(server.on_tick(0))
    moved = time.time() + jump
    monkeypatch.setattr("uvicorn.server.time.time", lambda: moved)
    stops = [asyncio.run(server.on_tick(counter)) for counter in range(1, 31)]
    assert len(beats) == len(flushes) == 4
    assert not any(stops)
