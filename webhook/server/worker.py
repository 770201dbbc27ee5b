"""A gunicorn worker on uvicorn's loop and server, with two ports, a sweep and a certificate that changes.

What is overridden, and why:
- ReviewServer.startup: uvicorn knows one kind of port, and sets no limit to a TLS handshake or its end.
- ReviewServer.on_tick: what is done again and again hangs on the timer that uvicorn has anyway, because a wake-up of an
  idle process costs as much as a review; a worker whose master was killed would serve on, on a port that nobody can
  take back; and uvicorn times gunicorn's heartbeat by the wall clock, so that a clock set back an hour would have all
  workers killed.
- ReviewServer.shutdown: lets handshakes that are under way end, and says the last log lines before the process ends
  by its signal.
- ReviewWorker._serve: uvicorn-worker builds its own server and TLS context from file names.
"""

import asyncio
import functools
import itertools
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from gunicorn.arbiter import Arbiter
from msgspec.structs import replace
from uvicorn.config import Config
from uvicorn.server import Server
from uvicorn_worker import UvicornWorker

from webhook.certificates.inspect import Unusable
from webhook.server.health_port import HealthProtocol
from webhook.server.http.connection import sweep
from webhook.server.http.port_state import Load
from webhook.server.http.protocol import GuardedProtocol
from webhook.server.logs import LOG
from webhook.server.review_port import ReviewProtocol
from webhook.server.settings import BACKLOG
from webhook.server.worker_services import Service, guarded

SHUTDOWN_SECONDS: Final = 2
"""A client that ignores our close_notify would otherwise hold the exit for the whole graceful time."""

HANDSHAKES_SECONDS: Final = 0.5
"""How long handshakes that are under way may take when the server stops; an end in the middle is a failed write."""

TICKS_A_SECOND: Final = 10
"""uvicorn's own."""

LARGEST_PROBE: Final = 4096


class ReviewServer(Server):
    """uvicorn's server with our two ports."""

    def __init__(self, config: Config, service: Service, master: int, beat: Callable[[], object]) -> None:
        super().__init__(config)
        self._beat = beat
        self._service = service
        self._master = master
        self._tasks: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on the reviews' port and on the health port, in this order."""
        loop = asyncio.get_running_loop()
        service, config, state = self._service, self.config, self.server_state
        review_socket, health_socket = sockets or []
        health_load = Load(replace(service.load.guards, largest_body=LARGEST_PROBE), service.metrics)
        self.servers = [
            await loop.create_server(
                functools.partial(
                    ReviewProtocol,
                    service.load,
                    service.reviewer,
                    frozenset(service.options.client_names),
                    config,
                    state,
                    loop,
                ),
                sock=review_socket,
                ssl=service.certificates.listener_context(),
                backlog=BACKLOG,
                ssl_handshake_timeout=service.load.guards.handshake_seconds,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS,
            ),
            await loop.create_server(
                functools.partial(HealthProtocol, health_load, service.readiness, service.metrics, config, state, loop),
                sock=health_socket,
                backlog=BACKLOG,
            ),
        ]
        self._tasks = [asyncio.create_task(work) for work in (service.watch_certificate(), service.watch_policy())]
        self.started = True

    async def on_tick(self, counter: int) -> bool:
        """Whether to stop, asked ten times a second; once a second tell the master that the loop turns."""
        self._tend(counter)
        if counter % TICKS_A_SECOND == 0:
            self._beat()
        return await super().on_tick(counter) or os.getppid() != self._master

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain; the sweep goes on until the last connection is closed.

        Nobody is accepted any more, but whoever is in the middle of a TLS handshake becomes a connection first.
        """
        self._tasks.append(asyncio.create_task(self._tend_while_draining()))
        for server in self.servers:
            server.close()
        connections: Any = self.server_state.connections
        for connection in list(connections):
            connection.shutdown()
        await asyncio.sleep(HANDSHAKES_SECONDS)
        await super().shutdown(sockets)
        for task in self._tasks:
            task.cancel()
        self._service.stop()

    async def _tend_while_draining(self) -> None:
        """There are no ticks any more."""
        for counter in itertools.count(1):
            await asyncio.sleep(1 / TICKS_A_SECOND)
            self._tend(counter)

    def _tend(self, counter: int) -> None:
        """What is done at each tick: let go of whose time has passed, and once a second show what was counted."""
        guarded(lambda: sweep(self.server_state.connections, time.monotonic()))
        if counter % TICKS_A_SECOND == 0:
            guarded(self._service.metrics.flush)
            guarded(self._service.load.give_back)


class ReviewWorker(UvicornWorker):  # type: ignore[misc] # uvicorn-worker has no types
    """One process that answers reviews."""

    CONFIG_KWARGS = {  # noqa: RUF012 - uvicorn-worker declares it so
        "loop": "uvloop",
        "http": GuardedProtocol,
        "ws": "none",
        "lifespan": "off",
        "interface": "asgi3",
        # Nothing stands in front of this server, and forwarding headers from a client must not be believed.
        "proxy_headers": False,
        "access_log": False,
        "server_header": False,
        "date_header": False,
    }

    async def _serve(self) -> None:
        service: Service = self.wsgi
        try:
            service.start()
        except Unusable as problem:
            LOG.error("no certificate can serve", extra={"fields": {"problem": str(problem)}})
            sys.exit(Arbiter.WORKER_BOOT_ERROR)
        self.config.app = service.asgi_app
        self.config.timeout_graceful_shutdown = self.cfg.graceful_timeout
        server = ReviewServer(self.config, service, self.ppid, self.notify)
        # A master that alone gets SIGINT or SIGQUIT sends SIGQUIT. uvicorn-worker's handler does not reach the server:
        # the master would wait out the graceful time and kill.
        asyncio.get_running_loop().add_signal_handler(signal.SIGQUIT, server.handle_exit, signal.SIGTERM, None)
        # gunicorn wraps its sockets; both kinds have what the loop needs.
        await server.serve(sockets=[listener.sock for listener in self.sockets])
        if not server.started:
            sys.exit(Arbiter.WORKER_BOOT_ERROR)
