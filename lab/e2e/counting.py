"""A webhook that allows everything and counts the reviews of each object."""

import collections
import http.server
import re
import ssl
import threading
import time
from pathlib import Path
from typing import Any, Final, Self

_UID: Final = re.compile(rb'"uid":"([^"]+)"')
_OBJECT: Final = re.compile(rb'"name":"([^"]*)","namespace":"([^"]*)","operation"')
"""As kube-apiserver writes them; bodies are not decoded, as they may nest deeper than a decoder goes."""


class CountingWebhook:
    """An HTTPS server on loopback; a context manager. Reviews are counted by namespace and name."""

    def __init__(self, certs: Path, keep: dict[str, tuple[int, bytes]] | None = None) -> None:
        """Set up the server.

        `certs` holds tls.crt and tls.key; `keep` is filled, by uid, with the time of each review and the review.
        """
        counts: collections.Counter[tuple[str, str]] = collections.Counter()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            timeout = 60

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                uid, place = _UID.search(body), _OBJECT.search(body)
                if not uid or not place:
                    self.send_error(400)
                    return
                counts[place[2].decode(), place[1].decode()] += 1
                if keep is not None:
                    keep[uid[1].decode()] = (time.time_ns() // 1000, body)
                response = b'"response":{"uid":"%s","allowed":true,"auditAnnotations":{"uid":"%s"}}' % (uid[1], uid[1])
                answer = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",' + response + b"}"
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                """Log nothing: reviews are counted instead."""

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certs / "tls.crt", certs / "tls.key")
        self._counts = counts
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True, name="counting-webhook").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def count_reviews(self, namespace: str, name: str) -> int:
        """Return how many reviews of this object have come."""
        return self._counts[namespace, name]
