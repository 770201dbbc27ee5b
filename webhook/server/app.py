"""The service as a Flask application, for any WSGI server: `gunicorn 'webhook.server.app:create_app()'`.

`lease-webhook serve` runs it under gunicorn with a worker that limits what clients can cost; docs/flask.md says what
other ways lack.
"""

import logging
import os
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

from flask import Blueprint, Flask, Response, request
from werkzeug.exceptions import HTTPException, NotFound

from webhook.admission.policy.file import PolicyFile
from webhook.kubernetes.review import REVIEW_PATH, VALIDATE
from webhook.server.hooks import Hooks
from webhook.server.logs import LOG, STDOUT
from webhook.server.metrics import METRICS_TYPE, OTHER, REFUSED_BY_ROUTES
from webhook.server.reviewer import JSON, TEXT, Reviewer
from webhook.server.service import Service
from webhook.server.service_hooks import MAX_ON_LOOP, ServiceHooks
from webhook.server.settings import Options

POLICY_VARIABLE: Final = "LEASE_WEBHOOK_POLICY"
_MAX_DIGITS: Final = len(str(MAX_ON_LOOP))
_STATUS_LINES: Final = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class ReviewApp(Flask):
    """The Flask application that answers reviews.

    `server_hooks` is what a GuardedWorker looks for; any other server ignores it.
    """

    def __init__(self, reviewer: Reviewer, server_hooks: Hooks) -> None:
        super().__init__(__name__, static_folder=None)
        self.reviewer = reviewer
        self.server_hooks = server_hooks

    def wsgi_app(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a plain review without Flask's objects, and any other request with them.

        The objects would cost twice the CPU of the rest of such a review without TLS, verdict included (docs/design.md,
        "Fast paths"). Both ways call the same reviewer, and a test compares their bytes for every recorded review.
        """
        length = _measure_plain_review(environ)
        if length is None:
            return super().wsgi_app(environ, start_response)
        response = self.reviewer.review(environ["wsgi.input"].read(length), environ)
        headers = [("Content-Type", response.content_type), ("Content-Length", str(len(response.body)))]
        start_response(_STATUS_LINES[response.status], headers)
        return [response.body]


def _measure_plain_review(environ: dict[str, Any]) -> int | None:
    """Return the bytes of the body of a plain review; None for any other request.

    Plain is a POST to VALIDATE of JSON without a coding, with a Content-Length of at most MAX_ON_LOOP. The guarded
    worker gives a chunked body its length, so a chunked review may be plain as well.
    """
    if (
        environ.get("PATH_INFO") == VALIDATE
        and environ["REQUEST_METHOD"] == "POST"
        and environ.get("CONTENT_TYPE") == JSON
        and "HTTP_CONTENT_ENCODING" not in environ
        and (digits := environ.get("CONTENT_LENGTH", "")).isdecimal()
        and len(digits) <= _MAX_DIGITS
        and (length := int(digits)) <= MAX_ON_LOOP
    ):
        return length
    return None


def create_app(policy: str = "") -> ReviewApp:
    """Return the application, its service begun in this process; raises PolicyFileError.

    `policy` is a preset or a file; without it, the variable LEASE_WEBHOOK_POLICY says which, else it is `standard`.
    """
    configure_logging()
    return start_app(Service(Options(), PolicyFile(policy or os.environ.get(POLICY_VARIABLE) or None)))


def start_app(service: Service) -> ReviewApp:
    """Return the application of a service, which begins in this process, with the probes."""
    app = make_review_app(service)
    # On one address, reviews and probes share it.
    app.register_blueprint(_make_probes(service))
    service.start_threads()
    return app


def configure_logging() -> None:
    """Write the log to standard output, unless the embedding program has said where it goes."""
    if not LOG.handlers:
        LOG.addHandler(STDOUT)
        LOG.setLevel(logging.INFO)
        LOG.propagate = False


def make_review_app(service: Service) -> ReviewApp:
    """Return the application of reviews, whose hooks have that of probes, for the last address of a guarded worker."""
    app = ReviewApp(service.reviewer, ServiceHooks(service, make_health_app(service)))
    _add_review_routes(app, service)
    return app


def _add_review_routes(app: ReviewApp, service: Service) -> None:
    """Add the routes of reviews, which count each request that they refuse."""
    app.config["MAX_CONTENT_LENGTH"] = service.guards.max_body
    # kube-apiserver would follow a redirect to anywhere (CVE-2020-8561), so there is none: `/validate/` and
    # `//validate` are 404.
    app.url_map.merge_slashes = False
    app.url_map.redirect_defaults = False

    # `_rest` is `path_rest` of the second route; REVIEW_PATH checks the whole path.
    def review(**_rest: str) -> Response:
        # Not request.path: werkzeug has taken away doubled slashes at its start.
        if not REVIEW_PATH.fullmatch(request.environ["PATH_INFO"]):
            raise NotFound
        response = app.reviewer.review(request.get_data(), request.environ)
        return Response(response.body, _STATUS_LINES[response.status], content_type=response.content_type)

    def refuse(error: HTTPException) -> Response:
        service.metrics.count("malformed", REFUSED_BY_ROUTES.get(error.code or 0, OTHER))
        return _refuse(error, f"{error.name.lower()}\n")

    for path, endpoint in ((VALIDATE, "validate"), (f"{VALIDATE}-<path_rest>", "validate_kind")):
        app.add_url_rule(path, endpoint, review, methods=["POST"], provide_automatic_options=False)
    app.register_error_handler(HTTPException, refuse)


def make_health_app(service: Service) -> Flask:
    """Return the probes and metrics as an application of their own, for a port without TLS."""
    app = Flask("webhook.server.health", static_folder=None)
    app.url_map.merge_slashes = False
    app.register_blueprint(_make_probes(service))

    def refuse(error: HTTPException) -> Response:
        texts = {404: "not found; try /livez, /readyz or /metrics\n", 405: "use GET\n"}
        return _refuse(error, texts.get(error.code or 0, f"{error.name.lower()}\n"))

    app.register_error_handler(HTTPException, refuse)
    return app


def _make_probes(service: Service) -> Blueprint:
    """Return the routes `/livez`, `/readyz` and `/metrics` of a service."""
    probes = Blueprint("probes", __name__)

    def live() -> Response:
        return Response("ok\n", content_type=TEXT)

    def ready() -> Response:
        reasons, warnings = service.find_readiness()
        lines = [*(reasons or ["ok"]), *(f"warning: {warning}" for warning in warnings)]
        return Response("".join(f"{line}\n" for line in lines), 503 if reasons else 200, content_type=TEXT)

    def metrics() -> Response:
        return Response(service.metrics.render(), content_type=METRICS_TYPE)

    for path, probe in (("/livez", live), ("/readyz", ready), ("/metrics", metrics)):
        probes.add_url_rule(path, path.strip("/"), probe, provide_automatic_options=False)
    return probes


def _refuse(error: HTTPException, text: str) -> Response:
    """Return the response to a request that no route takes, with the methods that its path takes."""
    response = Response(text, _STATUS_LINES[error.code or 500], content_type=TEXT)
    if allowed := error.get_response().headers.get("Allow"):
        # werkzeug has them in a set.
        response.headers["Allow"] = ", ".join(sorted(allowed.split(", ")))
    return response
