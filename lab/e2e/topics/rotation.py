"""Certificates rotate and servers restart under a stream of writes with failurePolicy Fail; no write fails."""

import contextlib
import functools
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from lab.e2e.api_client import MERGE, ApiClient, Reply
from lab.e2e.forwarder import Forwarder
from lab.e2e.manifests import make_lease
from lab.e2e.webhook_server import WebhookServer, make_certificates
from lab.e2e.world import SETTLING_SECONDS, Row, World, build_lease_path
from tests.waiting import wait_for

NAMESPACE = "rotation"
LEAVES = 10
RESTARTS = 2
"""Restarts of each of the two servers."""
WRITERS = 3
PAUSE_SECONDS = 0.05
PRE_STOP_SECONDS = 2.0
PICKED_UP_SECONDS = 30.0


class _Stream:
    """Writers that label a lease of their own as fast as answers come; each write is reviewed."""

    def __init__(self, clients: list[ApiClient]) -> None:
        self.failures: list[str] = []
        self.writes = 0
        self._count = threading.Lock()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(client, f"stream-{number}"), name=f"writer-{number}")
            for number, client in enumerate(clients)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def describe_since(self, writes: int, failures: int) -> str:
        """Return how many writes and failures came after the given counts."""
        return f"{self.writes - writes} writes, {len(self.failures) - failures} failed"

    def _write(self, client: ApiClient, name: str) -> None:
        number = 0
        while not self._ended.wait(PAUSE_SECONDS):
            number += 1
            patch = {"metadata": {"labels": {"number": str(number)}}}
            reply: Reply | None = None
            with contextlib.suppress(OSError):
                reply = client.send("PATCH", build_lease_path(NAMESPACE, name), patch, media=MERGE)
            with self._count:
                self.writes += 1
                if reply is None or reply.status != 200:
                    self.failures.append(reply.message if reply else "no answer from the API server")


def run(world: World) -> Iterator[Row]:
    """Rotate with two webhooks behind a forwarder, as pods behind a Service."""
    world.create_namespace(NAMESPACE, route=NAMESPACE)
    clients = [world.create_user(f"streamer-{number}")[0] for number in range(WRITERS)]
    certs = world.directory / "rotating-certs"
    make_certificates(certs, "--new-ca")
    with ExitStack() as stack:
        servers = [stack.enter_context(WebhookServer(world.directory, certs)) for _ in range(2)]
        forwarder = stack.enter_context(Forwarder(*(server.port for server in servers)))
        _set_bundle(world, forwarder, _read_authority(certs))
        for number, client in enumerate(clients):
            client.send("POST", build_lease_path(NAMESPACE), make_lease(f"stream-{number}")).expect(201)
        stream = stack.enter_context(_Stream(clients))
        reviews = sum(server.count_reviews() for server in servers)
        for claim, step in (
            (f"leaf rotated {LEAVES} times", lambda: _rotate_leaf(certs, servers)),
            ("CA rotated once, in four steps", lambda: _rotate_authority(world, forwarder, certs, servers)),
        ):
            yield _run_step(stream, claim, step)
        reviewed = sum(server.count_reviews() for server in servers) - reviews
        yield Row("the writes were reviewed", f"{reviewed} reviews", reviewed >= 0.95 * stream.writes > 0)
        claim = f"rolling restart, each of two servers {RESTARTS} times"
        yield _run_step(stream, claim, lambda: _restart(forwarder, servers))


def _run_step(stream: _Stream, claim: str, step: Callable[[], None]) -> Row:
    writes, failures = stream.writes, len(stream.failures)
    step()
    failed = stream.failures[failures:]
    observation = stream.describe_since(writes, failures) + (f": {failed[0]}" if failed else "")
    return Row(claim, observation, not failed and stream.writes > writes)


def _rotate_leaf(certs: Path, servers: list[WebhookServer]) -> None:
    for _ in range(LEAVES):
        make_certificates(certs)
        _wait_until_served(certs, servers)


def _rotate_authority(world: World, forwarder: Forwarder, certs: Path, servers: list[WebhookServer]) -> None:
    """Rotate in the order of docs/certificates.md.

    Trust both, serve the new one, see it served, forget the old one.
    """
    old = _read_authority(certs)
    fresh = world.directory / "fresh-certs"
    make_certificates(fresh, "--new-ca")
    _set_bundle(world, forwarder, old + _read_authority(fresh))
    for name in ("ca.key", "ca.crt", "tls.key", "tls.crt"):
        (fresh / name).replace(certs / name)
    _wait_until_served(certs, servers)
    _set_bundle(world, forwarder, _read_authority(certs))


def _restart(forwarder: Forwarder, servers: list[WebhookServer]) -> None:
    """Restart as a Deployment rolls.

    Out of the endpoints, preStop pause, SIGTERM, a successor, back into the endpoints.
    """
    for _ in range(RESTARTS):
        for server in servers:
            forwarder.routed = tuple(other.port for other in servers if other is not server)
            time.sleep(PRE_STOP_SECONDS)
            server.stop()
            server.start()
            forwarder.routed = tuple(each.port for each in servers)
            time.sleep(PRE_STOP_SECONDS)


def _set_bundle(world: World, forwarder: Forwarder, bundle: bytes) -> None:
    world.register(NAMESPACE, forwarder.port, failure_policy="Fail", bundle=bundle)
    time.sleep(SETTLING_SECONDS)


def _read_authority(directory: Path) -> bytes:
    return (directory / "ca.crt").read_bytes()


def _wait_until_served(certs: Path, servers: list[WebhookServer]) -> None:
    certificate = ssl.PEM_cert_to_DER_cert((certs / "tls.crt").read_text())
    for server in servers:
        new = functools.partial(_is_serving, server.port, certificate)
        wait_for(f"the new certificate on port {server.port}", new, PICKED_UP_SECONDS, 0.5)


def _is_serving(port: int, certificate: bytes) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=5) as raw, context.wrap_socket(raw) as connection:
        return connection.getpeercert(binary_form=True) == certificate
