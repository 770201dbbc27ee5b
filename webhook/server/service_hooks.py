"""The hooks that the guarded worker calls beyond PEP 3333; no other server calls them."""

from typing import Final

from webhook.certificates.files import Certificate
from webhook.kubernetes.review_size import may_be_a_review
from webhook.server.hooks import Hooks, ServerStatus
from webhook.server.http.wsgi import Application
from webhook.server.service import Service

MAX_ON_LOOP: Final = 64 * 1024
"""Bytes of a review that is evaluated on the event loop, in at most some 20 ms; most have less than 10 KiB. Larger ones
are evaluated in a thread, one at a time, which others wait for only as long as one call of the decoder takes."""
NOT_BEGUN_AS_REVIEW: Final = "a body of this size must begin as an API server begins a review"


class ServiceHooks(Hooks):
    """The hooks of a service: they begin it, show in its metrics what the worker counts, and know what a review is."""

    max_on_loop = MAX_ON_LOOP

    def __init__(self, service: Service, health: Application) -> None:
        self.health = health
        self.service = service

    def start(self, server: ServerStatus) -> None:
        """Begin in this process, which may be a fork of the one that made the service."""
        self.service.server = server
        self.service.start_threads()

    def count(self, counter: str, *labels: str) -> None:
        """Count in the metrics."""
        self.service.metrics.count(counter, *labels)

    def show_in_flight(self, requests: int) -> None:
        """Set the gauge of requests in flight."""
        self.service.metrics.show_in_flight(requests)

    def show_certificate(self, serving: Certificate) -> None:
        """Set the gauges of the certificate that is served."""
        self.service.metrics.show_certificate(serving)

    def find_problem_of_body(self, size: int, beginning: bytes | bytearray) -> str:
        """Return why a large body is refused by its first bytes; "" if it may be a review."""
        return "" if may_be_a_review(size, beginning) else NOT_BEGUN_AS_REVIEW
