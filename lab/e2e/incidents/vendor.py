"""An admission webhook of another vendor: it allows, denies or answers late, and concerns chosen namespaces only."""

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from lab.e2e.incidents.stage import Stage
from lab.e2e.world import REGISTRATIONS

NAME: Final = "scan.vendor.example"


class Vendor:
    """The server of the webhook; a context manager. `register` puts it before the leases of one namespace."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.delays: dict[str, float] = {}
        """Seconds by namespace before it answers."""
        self.denied: set[str] = set()
        authority = stage.plane.authority
        certificate, key = authority.issue("vendor", hosts=["127.0.0.1", "localhost"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = json.dumps(vendor.answer(body["request"])).encode()
                try:
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                """Log nothing: the audit log has it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name="vendor", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return its review, late if a delay was asked for."""
        namespace = request["namespace"]
        time.sleep(self.delays.get(namespace, 0))
        response: dict[str, Any] = {"uid": request["uid"], "allowed": namespace not in self.denied}
        if namespace in self.denied:
            response["status"] = {"code": 403, "message": "the image of the writer was not scanned"}
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}

    def register(self, namespace: str, *, seconds: int = 10, failure_policy: str = "Fail") -> None:
        """Put the webhook before the updates of the leases of a namespace; it takes effect within 1 to 3 s."""
        ca = base64.b64encode(self._stage.plane.authority.file.read_bytes()).decode()
        label = {"kubernetes.io/metadata.name": namespace}
        webhook = {
            "name": NAME,
            "clientConfig": {"url": f"https://127.0.0.1:{self._server.server_address[1]}/review", "caBundle": ca},
            "rules": [
                {
                    "apiGroups": ["coordination.k8s.io"],
                    "apiVersions": ["v1"],
                    "resources": ["leases"],
                    "operations": ["CREATE", "UPDATE"],
                }
            ],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": seconds,
            "failurePolicy": failure_policy,
            "namespaceSelector": {"matchLabels": label},
        }
        body = {"metadata": {"name": f"vendor-{namespace}"}, "webhooks": [webhook]}
        self._stage.admin.send("POST", REGISTRATIONS, body).expect()

    def remove(self, namespace: str) -> None:
        """Take the webhook away."""
        self._stage.admin.send("DELETE", f"{REGISTRATIONS}/vendor-{namespace}").expect(200)
