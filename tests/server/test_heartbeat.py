"""gunicorn kills a worker that it does not hear of; what it hears must not depend on the wall clock or on our bugs."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from webhook.server.worker import GuardedWorker


@pytest.mark.parametrize("jump", [3600, -3600, 10 * 365 * 86_400], ids=["an hour ahead", "an hour back", "ten years"])
def test_the_master_hears_of_the_worker_at_each_tick_whatever_the_clock_does(
    jump: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[int] = []

    def fails(now: float) -> None:
        raise RuntimeError(f"put in by a test at {now}")

    services: Any = SimpleNamespace(run_due=fails)
    worker = GuardedWorker.__new__(GuardedWorker)
    worker.notify = lambda: beats.append(1)
    moved = time.time() + jump
    monkeypatch.setattr("time.time", lambda: moved)
    for _ in range(30):
        worker.tick(services)
    assert len(beats) == 30
