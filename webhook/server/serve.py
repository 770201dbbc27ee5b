"""Starts the server: gunicorn manages the worker processes, with our options and not from files or variables."""

import gc
import logging
import os
import shutil
import socket
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.workers.base import Worker

from webhook.admission.policy.file import PolicyFile
from webhook.certificates.files import LEAF_CERTIFICATE, LEAF_KEY, Unusable
from webhook.server.certificate_reload import CertificateReloader, check_client_ca
from webhook.server.logs import LOG, STDOUT
from webhook.server.reviewer import Respond, respond
from webhook.server.settings import BACKLOG, GRACEFUL_SECONDS, STUCK_WORKER_SECONDS, Options
from webhook.text.commands import make_certs_command

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a directory of our own is made in it, with a random name


class CannotServeError(Exception):
    """The server cannot start; the text says what to do."""


def serve(options: Options, respond: Respond = respond) -> None:
    """Serve until a signal ends it, by SystemExit. Raises CannotServeError and PolicyFileError before it listens.

    `respond` makes the response to each review.
    """
    policy_file = PolicyFile(options.policy or None, options.docs_url)
    with _require("no directory for temporary files is writable"):
        # For counters, heartbeats and the last good certificate.
        in_memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
        memory = Path(tempfile.mkdtemp(prefix="lease-webhook-", dir=in_memory))
    master = os.getpid()
    try:
        if options.client_ca:
            with _require("--client-ca", "; give the CA that signs the API servers' client certificates"):
                check_client_ca(options.client_ca)
        advice = f"; `{make_certs_command(options.tls_dir)}` makes one"
        with _require("no certificate to serve with", advice):
            CertificateReloader(Path(options.tls_dir), memory, options.client_ca).start()
        if options.capture:
            with _require(f"cannot capture into {options.capture}"):
                Path(options.capture).mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_addresses(options)
        # prometheus_client looks at this once, when it is imported, and decides whether processes count together.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(memory)
        GunicornApp(options, memory, policy_file, respond).run()
    finally:
        # A worker that fails to start leaves through here as well, and must not take the others' files away.
        if os.getpid() == master:
            shutil.rmtree(memory, ignore_errors=True)


class GunicornApp(BaseApplication):  # type: ignore[misc] # gunicorn has no types
    """What gunicorn runs: our options as its settings, and the application of reviews in each worker."""

    def __init__(self, options: Options, memory: Path, policy_file: PolicyFile, respond: Respond) -> None:
        self._options = options
        self._memory = memory
        self._policy_file = policy_file
        self._respond = respond
        super().__init__()

    def load_config(self) -> None:
        """Give gunicorn its settings; it reads no file and no variable."""
        settings: dict[str, Any] = {
            # First the reviews, then probes and metrics.
            "bind": [self._options.bind, self._options.health_bind],
            "workers": self._options.workers,
            "worker_class": _make_worker_class(self._options),
            "certfile": str(Path(self._options.tls_dir, LEAF_CERTIFICATE)),
            "keyfile": str(Path(self._options.tls_dir, LEAF_KEY)),
            "ca_certs": self._options.client_ca or None,
            "cert_reqs": ssl.CERT_REQUIRED if self._options.client_ca else ssl.CERT_NONE,
            "logger_class": "webhook.server.serve.GunicornLog",
            "proc_name": "lease-webhook",
            "backlog": BACKLOG,
            "graceful_timeout": GRACEFUL_SECONDS,
            "timeout": STUCK_WORKER_SECONDS,
            # A worker's heartbeat is a file: on a disk, a slow disk would have a healthy worker killed.
            "worker_tmp_dir": str(self._memory),
            # Workers are never recycled for their age: memory is flat, and each recycling may cost a request.
            "max_requests": 0,
            # It would write a socket into the home directory, which is read-only in a good container.
            "control_socket_disable": True,
            # One line for each request costs as much as the request.
            "accesslog": None,
            "loglevel": "info",
            "umask": 0o027,
            "when_ready": _log_addresses,
            # A worker that starts later inherits what the master read.
            "pre_fork": self._prepare_fork,
            "child_exit": _forget,
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> object:
        """Return what a worker serves; called in the worker."""
        from webhook.server.app import make_review_app  # noqa: PLC0415 - see `_make_worker_class`
        from webhook.server.service import Service  # noqa: PLC0415

        return make_review_app(Service(self._options, self._policy_file, self._respond))

    def _prepare_fork(self, _arbiter: Arbiter, _worker: Worker) -> None:
        """Read a changed policy, and leave the objects that are here to no collection of garbage.

        A worker shares its master's memory until one of them writes, and a collection writes to all it visits: 9 MiB.
        """
        self._policy_file.poll()
        gc.freeze()


class GunicornLog(Logger):  # type: ignore[misc] # gunicorn has no types
    """The lines of gunicorn and of asyncio, in our form and through our handler, which workers inherit by the fork."""

    def setup(self, cfg: Config) -> None:
        """Send everything to one handler; also called again on SIGHUP."""
        super().setup(cfg)
        for name in ("webhook.server", "gunicorn.error", "asyncio"):
            logger = logging.getLogger(name)
            logger.handlers = [STDOUT]
            # gunicorn's lines are about starting and stopping; ours say what an operator needs.
            logger.setLevel(logging.INFO if name == "webhook.server" else logging.WARNING)
            logger.propagate = False
        logging.captureWarnings(capture=True)
        logging.getLogger("py.warnings").handlers = [STDOUT]


@contextmanager
def _require(what: str, advice: str = "") -> Iterator[None]:
    """Turn a failure of the environment into a CannotServeError; a bug of ours stays a traceback."""
    try:
        yield
    except (OSError, Unusable) as error:
        reason = getattr(error, "strerror", None) or error
        raise CannotServeError(f"{what}: {reason}{advice}") from error


def _check_addresses(options: Options) -> None:
    """Listen on each for a moment. gunicorn would try for five seconds and log each attempt."""
    # gunicorn's own upgrade (SIGUSR2) hands over sockets that are bound already.
    if "GUNICORN_FD" in os.environ:
        return
    with ExitStack() as bound:
        for flag, address in (("--bind", options.bind), ("--health-bind", options.health_bind)):
            host, _, port = address.rpartition(":")
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            probe = bound.enter_context(socket.socket(family, socket.SOCK_STREAM))
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            problem, advice = f"cannot listen on {address}", f"; choose another with {flag}"
            with _require(problem, advice):
                try:
                    probe.bind((host.strip("[]"), int(port)))
                except TypeError as error:  # IDNA cannot encode the host
                    raise CannotServeError(f"{problem}: not the name of a host{advice}") from error
                probe.listen()


def _log_addresses(arbiter: Arbiter) -> None:
    """Log where we listen: with port 0 only the kernel knows, and gunicorn's own line calls our TLS port http."""
    names = [listener.getsockname()[:2] for listener in arbiter.LISTENERS]
    reviews, health = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in names)
    LOG.info("listening", extra={"fields": {"reviews": reviews, "health": health}})


def _make_worker_class(options: Options) -> type:
    """Return the guarded worker with these options; its module and the application are imported before the fork."""
    # They bring prometheus_client, see `serve`.
    from webhook.server import app  # noqa: F401, PLC0415
    from webhook.server.worker import GuardedWorker  # noqa: PLC0415

    class ReviewWorker(GuardedWorker):
        """The worker of `lease-webhook serve`."""

        guards = options.guards
        client_names = frozenset(options.client_names)
        certificate_poll_seconds = options.certificate_poll_seconds

    return ReviewWorker


def _forget(_arbiter: Arbiter, worker: Worker) -> None:
    """Take a dead worker's gauges out of the sum."""
    from prometheus_client.multiprocess import mark_process_dead  # noqa: PLC0415 - see `serve`

    mark_process_dead(worker.pid)  # type: ignore[no-untyped-call] # prometheus_client types it half
