"""Waiting for something outside this process, with a limit."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(what: str, probe: Callable[[], T | None], seconds: float, pause: float = 0.1) -> T:
    """The first true answer of `probe`. Raises TimeoutError that says `what` never came."""
    end = time.monotonic() + seconds
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(pause)
