"""A gunicorn worker for any WSGI application: TLS whose certificate may change, and limits on what a client can cost.

`gunicorn -k webhook.server.worker.GuardedWorker` serves an application at every address, over TLS if there is a
`--certfile`. All periodic work runs in one tick, because each wake-up of an idle process costs as much as
a request: it closes expired connections, looks for changed certificates, and notifies gunicorn that the loop runs. With
it the worker notices a signal, and the death of its master: a worker that kept serving would hold the port against its
successor.
"""

import asyncio
import contextlib
import functools
import logging
import os
import shutil
import signal
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Final

import uvloop
from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker
from msgspec import Struct
from msgspec.structs import replace

from webhook.certificates.files import Unusable
from webhook.server.certificate_reload import CertificateReloader
from webhook.server.hooks import Hooks, Readiness
from webhook.server.http import wsgi
from webhook.server.http.connection import Connection
from webhook.server.http.message import Head, HttpResponse, RefusedError, Request
from webhook.server.http.port import Port, Response
from webhook.server.http.stream import Stream
from webhook.server.logs import LOG, LogThrottle
from webhook.server.settings import BACKLOG, CERTIFICATE_POLL_SECONDS, Guards

_TICK_SECONDS: Final = 0.5
"""Each tick wakes a processor, and most of what an idle pod costs is that. Guards end connections to the tick."""
_DRAINING_TICK_SECONDS: Final = 0.1
_SECONDS_BETWEEN_COUNTS: Final = 1.0
_SECONDS_BETWEEN_EXPIRY_LINES: Final = 3600.0
_MAX_PROBE: Final = 4096
_SHUTDOWN_SECONDS: Final = 2
"""A client that ignores our close_notify would otherwise hold the exit for the whole graceful time."""
_HANDSHAKES_SECONDS: Final = 0.5
"""Given to handshakes that are under way when the server stops: breaking one off fails a write."""
_SWITCH_SECONDS: Final = 0.001
"""Until a thread gives the interpreter to the event loop; Python's default is 5 ms."""


class _Periodic(Struct):
    """A task that runs again and again; `due` is in monotonic seconds."""

    seconds: float
    work: Callable[[], object]
    due: float = 0


class WsgiServer:
    """The ports of one worker, and what serves them. Without `certificates` nothing is encrypted.

    If the application offers a second one for `health`, `addresses` are two, and the last is its: every worker listens
    on it, and the kernel gives a probe to a worker that is awake. So a response is proof that an event loop runs; if
    none runs, nothing answers and the kubelet restarts the pod. One stuck worker beside healthy ones gets no probes and
    is replaced by gunicorn.
    """

    def __init__(
        self,
        app: wsgi.Application,
        guards: Guards,
        certificates: CertificateReloader | None = None,
        *,
        addresses: Sequence[tuple[str, int]] = (("localhost", 0),),
        threads: int = 1,
        client_names: frozenset[str] = frozenset(),
        certificate_poll_seconds: float = CERTIFICATE_POLL_SECONDS,
    ) -> None:
        self.app = app
        self.certificates = certificates
        self.hooks: Hooks = getattr(app, "server_hooks", None) or Hooks()
        self._client_names = client_names
        self._threads = ThreadPoolExecutor(threads, "application")
        self._inspection = ThreadPoolExecutor(1, "certificate")
        self._certificate_poll: Future[str | None] | None = None
        self._expiry_lines = LogThrottle(_SECONDS_BETWEEN_EXPIRY_LINES)
        health = self.hooks.health if len(addresses) > 1 else None
        review_addresses = addresses[:-1] if health else addresses
        self.ports = [
            self._make_port(app, guards, address, is_secure=certificates is not None) for address in review_addresses
        ]
        self.secure_ports = frozenset(self.ports if certificates else ())
        if health:
            # A server that stops takes no more probes.
            health_guards = replace(guards, max_body=_MAX_PROBE, drain_seconds=0)
            respond = functools.partial(self._respond_on_loop, health)
            variables = _make_variables(addresses[-1], is_secure=False)
            self.ports.append(Port(respond, health_guards, self.hooks.count, variables=variables))
        self._periodic = [_Periodic(_SECONDS_BETWEEN_COUNTS, self._show_counts)]
        if certificates:
            self._periodic.append(_Periodic(certificate_poll_seconds, self._poll_certificate))

    def start(self) -> None:
        """Load the certificate, and log what is in use; raises certificates.files.Unusable."""
        self.hooks.start(self)
        if self.certificates:
            self.certificates.start()
            if self.certificates.error:
                self._report_certificate(self.certificates.error)
            self._show_certificate()

    def run_due(self, now: float) -> None:
        """Run the tasks that are due; `now` is monotonic seconds."""
        for port in self.ports:
            _run_logged(port.close_expired, now)
        if (poll := self._certificate_poll) is not None and poll.done():
            self._certificate_poll = None
            _run_logged(self._use_certificate, poll)
        for task in self._periodic:
            if now >= task.due:
                task.due = now + task.seconds
                _run_logged(task.work)

    def stop(self) -> None:
        """Begin nothing more in threads."""
        for threads in (self._threads, self._inspection):
            threads.shutdown(wait=False, cancel_futures=True)

    def find_readiness(self) -> Readiness:
        """Return whether this worker should get traffic.

        A refused file does not make the server unready: every replica mounts the same file, so all of them would drop
        out at once, and with `failurePolicy: Fail` that stops renewals. The last good one stays in use.
        """
        return (
            Readiness(self.certificates.list_reasons(), self.certificates.list_warnings())
            if self.certificates
            else Readiness()
        )

    # Requests.

    def _make_port(self, app: wsgi.Application, guards: Guards, address: tuple[str, int], *, is_secure: bool) -> Port:
        return Port(
            functools.partial(self._respond, app),
            guards,
            self.hooks.count,
            self._check_client,
            self._check_beginning,
            variables=_make_variables(address, is_secure=is_secure),
        )

    def _check_client(self, _head: Head, names: frozenset[str]) -> None:
        """Refuse a certificate of the right CA with a name that is not allowed."""
        if self._client_names and not names & self._client_names:
            raise RefusedError(403, "this client certificate is not allowed")

    def _check_beginning(self, size: int, beginning: bytes | bytearray) -> None:
        if problem := self.hooks.find_problem_of_body(size, beginning):
            raise RefusedError(413, problem)

    def _respond_on_loop(self, app: wsgi.Application, request: Request) -> HttpResponse:
        return wsgi.call_app(app, wsgi.make_environ(request))

    def _respond(self, app: wsgi.Application, request: Request) -> Response:
        """Call the application, in a thread unless it says that it takes milliseconds."""
        if len(request.body) <= self.hooks.max_on_loop:
            return wsgi.call_app(app, wsgi.make_environ(request))
        return self._respond_in_thread(app, wsgi.make_environ(request))

    def _respond_in_thread(self, app: wsgi.Application, environ: wsgi.Environ) -> Response:
        loop = asyncio.get_running_loop()
        response: asyncio.Future[HttpResponse | Stream] = loop.create_future()

        def deliver(result: HttpResponse | Stream) -> None:
            loop.call_soon_threadsafe(_resolve, response, result)

        job = self._threads.submit(wsgi.call_app_in_thread, app, environ, loop, deliver)
        response.add_done_callback(lambda done: job.cancel() if done.cancelled() else None)
        return response

    # The periodic tasks.

    def _show_counts(self) -> None:
        """Show what is in flight, and return freed memory."""
        self.hooks.show_in_flight(sum(port.requests_in_flight for port in self.ports))
        for port in self.ports:
            port.trim_memory()

    def _report_certificate(self, error: str) -> None:
        """Count and log that changed files were loaded, or refused with this error."""
        self.hooks.count("reloads", "certificate", "failure" if error else "success")
        if error:
            is_kept = self.certificates is not None and self.certificates.has_good_pair
            kept = (
                "the last good one stays in use" if is_kept else "there is no good one, so API servers refuse this one"
            )
            LOG.error(f"certificate rejected; {kept}", extra={"fields": {"problem": error}})
        else:
            LOG.info("certificate reloaded")

    def _poll_certificate(self) -> None:
        """Read the files in a thread, because inspecting takes a tenth of a second; a later tick reports it."""
        if self.certificates and self._certificate_poll is None:
            self._certificate_poll = self._inspection.submit(self.certificates.poll)

    def _use_certificate(self, poll: Future[str | None]) -> None:
        if not self.certificates:
            return
        result = poll.result()
        if result is not None:
            self._report_certificate(self.certificates.error)
        if result == "success":
            self._show_certificate()
        if self.certificates.expires_soon() and self._expiry_lines.admit(time.monotonic()) is not None:
            is_over = not self.certificates.has_good_pair
            self._show_certificate(logging.ERROR, f"certificate {'is not accepted' if is_over else 'expires soon'}")

    def _show_certificate(self, level: int = logging.INFO, message: str = "serving a certificate") -> None:
        if self.certificates and (certificate := self.certificates.current):
            self.hooks.show_certificate(certificate)
            LOG.log(level, message, extra={"fields": {"not_after": f"{certificate.not_after:%FT%TZ}"}})


class GuardedWorker(Worker):  # type: ignore[misc] # gunicorn has no types
    """One process of gunicorn that serves an application from an event loop, within the limits of `guards`.

    Its settings are gunicorn's and, in subclasses, the attributes below.
    """

    guards: ClassVar[Guards] = Guards()
    client_names: ClassVar[frozenset[str]] = frozenset()
    """Names of which a client certificate must have one; if empty, any certificate that `--ca-certs` signed will do."""
    certificate_poll_seconds: ClassVar[float] = CERTIFICATE_POLL_SECONDS

    def init_signals(self) -> None:
        """Keep only those of the event loop: gunicorn's handlers would end the process in the middle of a request."""
        for number in self.SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGUSR1, self.handle_usr1)
        signal.siginterrupt(signal.SIGUSR1, False)  # noqa: FBT003 - the library's own

    def run(self) -> None:
        """Serve until a signal; called by gunicorn in the child."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        # Where workers share a directory, one that starts finds the last good certificate of the others.
        own = None if self.cfg.worker_tmp_dir else tempfile.mkdtemp(prefix="guarded-worker-")
        try:
            certificates = self._make_reloader(Path(own or self.cfg.worker_tmp_dir))
            server = WsgiServer(
                self.wsgi,
                self._find_guards(),
                certificates,
                # gunicorn wraps its sockets.
                addresses=[_parse_address(listener.sock.getsockname()) for listener in self.sockets],
                threads=max(self.cfg.threads, 1),
                client_names=self.client_names,
                certificate_poll_seconds=self.certificate_poll_seconds,
            )
            try:
                server.start()
            except Unusable as problem:
                LOG.error("no certificate can serve", extra={"fields": {"problem": str(problem)}})
                sys.exit(Arbiter.WORKER_BOOT_ERROR)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve(server))
            server.stop()
        finally:
            if own:
                shutil.rmtree(own, ignore_errors=True)

    def tick(self, server: WsgiServer) -> None:
        """Run due tasks. Failures never stop gunicorn's heartbeat."""
        _run_logged(server.run_due, time.monotonic())
        self.notify()

    def _find_guards(self) -> Guards:
        """Return the guards. gunicorn's `--keep-alive` replaces ours only if it is not the default of gunicorn.

        With that default, API servers would lose writes.
        """
        setting = self.cfg.settings["keepalive"]
        if setting.get() == setting.default:
            return self.guards
        return replace(self.guards, keep_alive_seconds=setting.get())

    def _make_reloader(self, memory: Path) -> CertificateReloader | None:
        if not self.cfg.certfile:
            return None
        chain, key = Path(self.cfg.certfile), Path(self.cfg.keyfile or self.cfg.certfile)
        client_ca = "" if self.cfg.cert_reqs == ssl.CERT_NONE else self.cfg.ca_certs or ""
        name = key.name if key.parent == chain.parent else str(key.absolute())
        return CertificateReloader(chain.parent, memory, client_ca, chain=chain.name, key=name)

    async def _serve(self, server: WsgiServer) -> None:
        loop = asyncio.get_running_loop()
        # The master sends SIGTERM to stop gracefully, and SIGQUIT if it got SIGINT or SIGQUIT itself; a terminal sends
        # SIGINT to all. They all mean the same, because draining is short.
        stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, stopping)
        listeners = []
        for listener, port in zip(self.sockets, server.ports, strict=True):
            secure: dict[str, Any] = {}
            if server.certificates and port in server.secure_ports:
                secure = {
                    "ssl": server.certificates.make_listener_context(),
                    "ssl_handshake_timeout": port.guards.handshake_seconds,
                    "ssl_shutdown_timeout": _SHUTDOWN_SECONDS,
                }
            protocol = functools.partial(Connection, port)
            listeners.append(await loop.create_server(protocol, sock=listener.sock, backlog=BACKLOG, **secure))
        while self.alive and os.getppid() == self.ppid:
            self.tick(server)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), _TICK_SECONDS)
        # Nothing is accepted any more, but a TLS handshake that is under way becomes a connection first.
        for each in listeners:
            each.close()
        began = time.monotonic()
        for port in server.ports:
            port.drain(began)
        while (elapsed := time.monotonic() - began) < self.cfg.graceful_timeout:
            if elapsed >= _HANDSHAKES_SECONDS and not any(port.connections for port in server.ports):
                break
            self.tick(server)
            await asyncio.sleep(_DRAINING_TICK_SECONDS)

    def _stop(self, stopping: asyncio.Event) -> None:
        self.alive = False
        stopping.set()


def _make_variables(address: tuple[str, int], *, is_secure: bool) -> dict[str, Any]:
    """Return what the environ of every request to an address has."""
    return {
        "SERVER_NAME": address[0],
        "SERVER_PORT": str(address[1]),
        "SERVER_SOFTWARE": "guarded-worker",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https" if is_secure else "http",
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }


def _parse_address(name: Any) -> tuple[str, int]:  # noqa: ANN401 - of a socket of any family
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else (str(name) or "unix", 0)


def _resolve(response: "asyncio.Future[HttpResponse | Stream]", result: HttpResponse | Stream) -> None:
    """Give a response to the connection that waits for it, if it still does."""
    if not response.done():
        response.set_result(result)
    elif isinstance(result, Stream):
        result.abandon()


def _run_logged(work: Callable[..., object], *arguments: object) -> None:
    """Do some periodic work; a failure must not stop the loop."""
    try:
        work(*arguments)
    except Exception:  # noqa: BLE001 - any bug in the work; it is logged
        LOG.exception("a periodic task failed")
