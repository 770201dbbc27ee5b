"""Waiting for something, mostly outside this process, with a limit."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

PATIENCE: Final = 30.0
"""Seconds that are waited for what takes much less."""


def wait_for(what: str, probe: Callable[..., T | None], seconds: float = PATIENCE, pause: float = 0.05) -> T:
    """Return the first true answer of `probe`. Raises TimeoutError that says `what` never came."""
    end = time.monotonic() + seconds
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(pause)
