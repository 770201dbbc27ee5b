"""Threads that work until the end of a block, so that none outlives a check that fails."""

import concurrent.futures
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def run_threads(stop: threading.Event, *targets: Callable[[], None]) -> Iterator[None]:
    """Run functions that end once `stop` is set, which the end of the block does; then raise what one has raised."""
    with concurrent.futures.ThreadPoolExecutor(len(targets)) as pool:
        jobs = [pool.submit(target) for target in targets]
        try:
            yield
        finally:
            stop.set()
    for job in jobs:
        job.result()
