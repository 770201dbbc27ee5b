"""A gunicorn worker with an event loop, two ports, and one periodic task.

One tick does all that is done again and again, because each wake-up of an idle process costs as much as a review: it
closes expired connections, looks for changed files, publishes the counts, and notifies gunicorn that the loop runs.
With it the worker notices a signal, and the death of its master: a worker that served on would keep a port that no
other server can take.
"""

import asyncio
import functools
import os
import signal
import sys
import time
from typing import Final

import uvloop
from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker

from webhook.certificates.inspect import Unusable
from webhook.server.http.connection import Connection
from webhook.server.logs import LOG
from webhook.server.settings import BACKLOG
from webhook.server.worker_services import WorkerServices, guarded

TICK_SECONDS: Final = 0.1

SHUTDOWN_SECONDS: Final = 2
"""A client that ignores our close_notify would otherwise hold the exit for the whole graceful time."""

HANDSHAKES_SECONDS: Final = 0.5
"""How long handshakes that are under way may take when the server stops; to end one in the middle fails a write."""

SWITCH_SECONDS: Final = 0.001
"""How long the event loop waits for the interpreter while another thread computes; Python's default is 5 ms."""


class ReviewWorker(Worker):  # type: ignore[misc] # gunicorn has no types
    """One process that answers reviews."""

    def init_signals(self) -> None:
        """Only those of the event loop: gunicorn's handlers would end the process in the middle of a review."""
        for number in self.SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGUSR1, self.handle_usr1)
        signal.siginterrupt(signal.SIGUSR1, False)  # noqa: FBT003 - the library's own

    def run(self) -> None:
        """Serve until a signal; called by gunicorn in the child."""
        services: WorkerServices = self.wsgi
        sys.setswitchinterval(SWITCH_SECONDS)
        try:
            services.start()
        except Unusable as problem:
            LOG.error("no certificate can serve", extra={"fields": {"problem": str(problem)}})
            sys.exit(Arbiter.WORKER_BOOT_ERROR)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(services))
        services.stop()

    def tick(self, services: WorkerServices) -> None:
        """Do what is due. Whatever fails in it, gunicorn hears of a loop that runs."""
        now = time.monotonic()
        for port in services.ports:
            guarded(functools.partial(port.close_expired, now))
        guarded(functools.partial(services.run_due, now))
        self.notify()

    async def _serve(self, services: WorkerServices) -> None:
        loop = asyncio.get_running_loop()
        # The master sends SIGTERM to stop gracefully, and SIGQUIT if it got SIGINT or SIGQUIT itself; a terminal sends
        # SIGINT to all. They all mean the same, because draining is short.
        for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        servers = await self._listen(services)
        while self.alive and os.getppid() == self.ppid:
            self.tick(services)
            await asyncio.sleep(TICK_SECONDS)
        # Nothing is accepted any more, but a TLS handshake that is under way becomes a connection first.
        for server in servers:
            server.close()
        began = time.monotonic()
        for port in services.ports:
            port.drain(began)
        while (elapsed := time.monotonic() - began) < self.cfg.graceful_timeout:
            if elapsed >= HANDSHAKES_SECONDS and not any(port.connections for port in services.ports):
                break
            self.tick(services)
            await asyncio.sleep(TICK_SECONDS)

    def _stop(self) -> None:
        self.alive = False

    async def _listen(self, services: WorkerServices) -> list[asyncio.Server]:
        reviews, health = services.ports
        # gunicorn wraps its sockets.
        review_socket, health_socket = (listener.sock for listener in self.sockets)
        listen = asyncio.get_running_loop().create_server
        return [
            await listen(
                functools.partial(Connection, reviews),
                sock=review_socket,
                backlog=BACKLOG,
                ssl=services.certificates.listener_context(),
                ssl_handshake_timeout=reviews.guards.handshake_seconds,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS,
            ),
            await listen(functools.partial(Connection, health), sock=health_socket, backlog=BACKLOG),
        ]
