"""A worker: two ports with their policy, certificate and counters, an event loop, and one periodic task.

One tick does all that is done again and again, because each wake-up of an idle process costs as much as a review: it
closes expired connections, flushes log lines, looks for changed files, publishes the counts, and notifies gunicorn that
the loop runs. With it the worker notices a signal, and the death of its master: a worker that served on would keep a
port that no other server can take.
"""

import asyncio
import functools
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

import uvloop
from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker
from msgspec import Struct
from msgspec.structs import replace

from webhook.api.review import REVIEW_PATH, VALIDATE, may_be_a_review
from webhook.certificate_files import Unusable
from webhook.policy_file import PolicyFile
from webhook.rules.rule import Mode
from webhook.server.certificate_reload import CertificateReloader
from webhook.server.http.connection import Connection
from webhook.server.http.message import REFUSAL_KINDS, Head, HttpResponse, RefusedError
from webhook.server.http.port import Port
from webhook.server.logs import LOG, STDOUT, LogThrottle
from webhook.server.metrics import METRICS_TYPE, make_metrics
from webhook.server.observers import AuditLog, Capture, ReviewLog
from webhook.server.reviewer import Observer, Reviewer
from webhook.server.settings import BACKLOG, Options

if TYPE_CHECKING:
    from flask import Flask

_TICK_SECONDS: Final = 0.1
_SECONDS_BETWEEN_COUNTS: Final = 1.0
_SECONDS_BETWEEN_EXPIRY_LINES: Final = 3600.0
_MAX_PROBE: Final = 4096
_SHUTDOWN_SECONDS: Final = 2
"""A client that ignores our close_notify would otherwise hold the exit for the whole graceful time."""
_HANDSHAKES_SECONDS: Final = 0.5
"""Given to handshakes that are under way when the server stops: to end one in the middle fails a write."""
MAX_ON_LOOP: Final = 64 * 1024
"""Bytes of a review that is evaluated on the event loop, in at most some 20 ms; most have less than 10 KiB. Larger ones
are evaluated in a thread, one at a time, which others wait for only as long as one call of the decoder takes."""
_SWITCH_SECONDS: Final = 0.001
"""Until that thread gives the interpreter to the event loop; Python's default is 5 ms."""
_VALIDATE: Final = VALIDATE.encode()


class _Periodic(Struct):
    """A task that runs again and again; `due` is in monotonic seconds."""

    seconds: float
    work: Callable[[], object]
    due: float = 0


class WorkerServices:
    """Made in a worker, after the fork. `ports` are those of the reviews and of health, in this order.

    Every worker listens on the plain port of health, and the kernel gives a probe to a worker that is awake. So a
    response is proof that an event loop runs; if none runs, nothing answers and the kubelet restarts the pod. One
    stuck worker beside healthy ones gets no probes and is replaced by gunicorn.
    """

    def __init__(self, options: Options, memory: Path, policy_file: PolicyFile) -> None:
        self._policy_file = policy_file
        self._metrics = metrics = make_metrics()
        self._capture = Capture(Path(options.capture)) if options.capture else None
        observers: list[Observer] = [metrics.record, ReviewLog().record]
        if options.audit_lines:
            observers.append(AuditLog().record)
        if self._capture:
            observers.append(self._capture.record)
        self._reviewer = Reviewer(policy_file.current, observers)
        self.certificates = CertificateReloader(Path(options.tls_dir), memory, options.client_ca)
        self._expiry_lines = LogThrottle(_SECONDS_BETWEEN_EXPIRY_LINES)
        self._thread = ThreadPoolExecutor(1, "thread")  # for what would hold up the event loop
        self._certificate_poll: Future[str | None] | None = None
        self._app: Flask | None = None
        self._client_names = frozenset(options.client_names)
        # A server that stops takes no more probes.
        of_health = replace(options.guards, max_body=_MAX_PROBE, drain_seconds=0)
        self.ports = (
            Port(self._respond, options.guards, metrics.count, self._accept, _accept_body),
            Port(self._respond_to_probe, of_health, metrics.count),
        )
        self._periodic = [
            _Periodic(_SECONDS_BETWEEN_COUNTS, self.show_counts),
            _Periodic(options.certificate_poll_seconds, self._poll_certificate),
            _Periodic(options.policy_poll_seconds, self._poll_policy),
        ]

    def start(self) -> None:
        """Log from a thread from now on, load the certificate, log what is in use; raises certificates.Unusable."""
        STDOUT.start()
        if self._capture:
            self._capture.start()
        self.certificates.start()
        if self.certificates.error:
            self._report("certificate", self.certificates.error)
        self._show_certificate()
        self._use_policy()

    def run_due(self, now: float) -> None:
        """Run the tasks that are due; `now` is monotonic seconds."""
        for port in self.ports:
            _guarded(port.close_expired, now)
        STDOUT.flush()
        if (poll := self._certificate_poll) is not None and poll.done():
            self._certificate_poll = None
            _guarded(self._use_certificate, poll)
        for one in self._periodic:
            if now >= one.due:
                one.due = now + one.seconds
                _guarded(one.work)

    def stop(self) -> None:
        """Flush what is counted, captured and logged, and stop."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._capture:
            self._capture.stop()
        self._metrics.flush()
        STDOUT.stop()

    def readiness(self) -> tuple[list[str], list[str]]:
        """Return why this worker should get no traffic, and what an operator must fix though it can serve without.

        A refused file does not make the server unready: every replica mounts the same file, so all of them would drop
        out at once, and with `failurePolicy: Fail` that stops renewals. The last good one stays in use.
        """
        refused = self._policy_file.error
        warnings = [f"policy: {refused}; the last good one is in use"] if refused else []
        if self._policy_file.current.mode is Mode.OFF:
            warnings.append("policy: mode is off, every write is allowed; remove it to evaluate writes again")
        return self.certificates.reasons(), warnings + self.certificates.warnings()

    def show_counts(self) -> None:
        """Show in the metrics what was counted, and return freed memory."""
        self._metrics.show_in_flight(sum(port.requests_in_flight for port in self.ports))
        self._metrics.show_dropped("log", STDOUT.dropped)
        if self._capture:
            self._metrics.show_dropped("capture", self._capture.dropped)
        self._metrics.flush()
        for port in self.ports:
            port.trim_memory()

    # The handlers of the two ports.

    def _accept(self, _head: Head, names: frozenset[str]) -> None:
        """Refuse a certificate of the right CA with a name that is not allowed."""
        if self._client_names and not names & self._client_names:
            raise RefusedError(403, "this client certificate is not allowed")

    def _respond(self, head: Head, body: bytes, began: float) -> HttpResponse | asyncio.Future[HttpResponse]:
        """Evaluate a review, by the same function that Flask calls: docs/design.md says what the framework costs."""
        method, path, query, fields, _ = head
        if method == b"POST" and (path == _VALIDATE or REVIEW_PATH.fullmatch(path.decode("latin-1"))):
            if len(body) > MAX_ON_LOOP:
                return asyncio.ensure_future(self._review_large(body, query, fields, began))
            return self._reviewer.review(body, query, fields, began)
        if REVIEW_PATH.fullmatch(unquote_to_bytes(path).decode("latin-1")) is None:
            response = HttpResponse(404, b"not found\n")
        elif method != b"POST":
            response = HttpResponse(405, b"method not allowed\n", headers=b"allow: POST\r\n")
        else:
            return asyncio.get_running_loop().run_in_executor(self._thread, lambda: self._call_flask(head, body))
        self._metrics.count("malformed", REFUSAL_KINDS[response.status])
        return response.to(method)

    async def _review_large(self, *request: *tuple[bytes, bytes, Mapping[bytes, bytes], float]) -> HttpResponse:
        loop = asyncio.get_running_loop()
        return self._reviewer.record(await loop.run_in_executor(self._thread, self._reviewer.evaluate, *request))

    def _call_flask(self, head: Head, body: bytes) -> HttpResponse:
        # It takes 9 MiB, and nothing that an API server sends needs it.
        from webhook.server import flask_app  # noqa: PLC0415

        self._app = self._app or flask_app.make_app(self._reviewer, functools.partial(self._metrics.count, "malformed"))
        return flask_app.call(self._app, head, body)

    def _respond_to_probe(self, head: Head, body: bytes, began: float) -> HttpResponse:  # noqa: ARG002 - a probe has no body
        if head.method not in {b"GET", b"HEAD"}:
            return HttpResponse(405, b"use GET\n", headers=b"allow: GET, HEAD\r\n")
        if head.path == b"/livez":
            response = HttpResponse(200, b"ok\n")
        elif head.path == b"/readyz":
            reasons, warnings = self.readiness()
            lines = [*(reasons or ["ok"]), *(f"warning: {warning}" for warning in warnings)]
            response = HttpResponse(503 if reasons else 200, "".join(f"{line}\n" for line in lines).encode())
        elif head.path == b"/metrics":
            response = HttpResponse(200, self._metrics.exposition(), METRICS_TYPE)
        else:
            response = HttpResponse(404, b"not found; try /livez, /readyz or /metrics\n")
        return response.to(head.method)

    # The periodic tasks.

    def _poll_policy(self) -> None:
        self._polled("policy", self._policy_file.poll(), self._policy_file, self._use_policy)

    def _polled(
        self, what: str, result: str | None, files: CertificateReloader | PolicyFile, use: Callable[[], None]
    ) -> None:
        """Report what a poll of files returned, and use them if they were loaded again."""
        if result is not None:
            self._report(what, files.error)
        if result == "success":
            use()

    def _report(self, what: str, error: str) -> None:
        """Count and log that changed files were loaded, or refused with this error."""
        self._metrics.count("reloads", what, "failure" if error else "success")
        if error:
            LOG.error("%s rejected; the last good one stays in use", what, extra={"fields": {"problem": error}})
        else:
            LOG.info("%s reloaded", what)

    def _poll_certificate(self) -> None:
        """Read the files in a thread, because inspecting takes a tenth of a second; a later tick reports it."""
        if self._certificate_poll is None:
            self._certificate_poll = self._thread.submit(self.certificates.poll)

    def _use_certificate(self, poll: Future[str | None]) -> None:
        self._polled("certificate", poll.result(), self.certificates, self._show_certificate)
        if self.certificates.expires_soon() and self._expiry_lines.admit(time.monotonic()) is not None:
            self._show_certificate(logging.ERROR, "certificate expires soon")

    def _show_certificate(self, level: int = logging.INFO, message: str = "serving a certificate") -> None:
        if certificate := self.certificates.current:
            self._metrics.show_certificate(certificate)
            LOG.log(level, message, extra={"fields": {"not_after": f"{certificate.not_after:%FT%TZ}"}})

    def _use_policy(self) -> None:
        policy = self._policy_file.current
        self._reviewer.policy = policy
        self._metrics.show_policy(policy)
        fields = {"preset": policy.preset, "hash": policy.digest, "mode": policy.mode.word}
        if policy.mode is Mode.OFF:
            LOG.error("the policy is off: every write is allowed", extra={"fields": fields})
        else:
            LOG.info("policy in use", extra={"fields": fields})


class ReviewWorker(Worker):  # type: ignore[misc] # gunicorn has no types
    """One process that answers reviews. Its master imports this module too, so that workers share its memory."""

    def init_signals(self) -> None:
        """Keep only those of the event loop: gunicorn's handlers would end the process in the middle of a review."""
        for number in self.SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGUSR1, self.handle_usr1)
        signal.siginterrupt(signal.SIGUSR1, False)  # noqa: FBT003 - the library's own

    def run(self) -> None:
        """Serve until a signal; called by gunicorn in the child."""
        services: WorkerServices = self.wsgi
        sys.setswitchinterval(_SWITCH_SECONDS)
        try:
            services.start()
        except Unusable as problem:
            LOG.error("no certificate can serve", extra={"fields": {"problem": str(problem)}})
            sys.exit(Arbiter.WORKER_BOOT_ERROR)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(services))
        services.stop()

    def tick(self, services: WorkerServices) -> None:
        """Run due tasks. Failures never stop gunicorn's heartbeat."""
        _guarded(services.run_due, time.monotonic())
        self.notify()

    async def _serve(self, services: WorkerServices) -> None:
        loop = asyncio.get_running_loop()
        # The master sends SIGTERM to stop gracefully, and SIGQUIT if it got SIGINT or SIGQUIT itself; a terminal sends
        # SIGINT to all. They all mean the same, because draining is short.
        for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        reviews, health = services.ports
        # gunicorn wraps its sockets.
        review_socket, health_socket = (listener.sock for listener in self.sockets)
        servers = [
            await loop.create_server(
                functools.partial(Connection, reviews),
                sock=review_socket,
                backlog=BACKLOG,
                ssl=services.certificates.listener_context(),
                ssl_handshake_timeout=reviews.guards.handshake_seconds,
                ssl_shutdown_timeout=_SHUTDOWN_SECONDS,
            ),
            await loop.create_server(functools.partial(Connection, health), sock=health_socket, backlog=BACKLOG),
        ]
        while self.alive and os.getppid() == self.ppid:
            self.tick(services)
            await asyncio.sleep(_TICK_SECONDS)
        # Nothing is accepted any more, but a TLS handshake that is under way becomes a connection first.
        for server in servers:
            server.close()
        began = time.monotonic()
        for port in services.ports:
            port.drain(began)
        while (elapsed := time.monotonic() - began) < self.cfg.graceful_timeout:
            if elapsed >= _HANDSHAKES_SECONDS and not any(port.connections for port in services.ports):
                break
            self.tick(services)
            await asyncio.sleep(_TICK_SECONDS)

    def _stop(self) -> None:
        self.alive = False


def _accept_body(size: int, beginning: bytes | bytearray) -> None:
    """Refuse a large body that no API server sends by its first bytes."""
    if not may_be_a_review(size, beginning):
        raise RefusedError(413, "a body of this size must begin as an API server begins a review")


def _guarded(work: Callable[..., object], *arguments: object) -> None:
    """Do some periodic work; a failure must not stop the loop."""
    try:
        work(*arguments)
    except Exception:  # noqa: BLE001 - any bug in the work; it is logged
        LOG.exception("a periodic task failed")
