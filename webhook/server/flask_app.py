"""The service as a Flask application: every route of it, for any WSGI server.

`lease-webhook serve` imports it for the first request that is not plainly a review or an error. Under another server it
is the whole service: `gunicorn 'webhook.server.flask_app:create_app()'`; docs/flask.md says what that way lacks.
"""

import io
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Final
from urllib.parse import unquote_to_bytes

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, NotFound, RequestEntityTooLarge
from werkzeug.test import create_environ

from webhook.api.review import REVIEW_PATH, VALIDATE, may_be_a_review
from webhook.policy_file import load
from webhook.server.http.message import REFUSAL_KINDS, TEXT, Head, HttpResponse
from webhook.server.logs import LOG, STDOUT
from webhook.server.metrics import METRICS_TYPE, OTHER, make_metrics
from webhook.server.observers import AuditLog, ReviewLog
from webhook.server.reviewer import Reviewer
from webhook.server.settings import Guards

POLICY_VARIABLE: Final = "LEASE_WEBHOOK_POLICY"
_TEXT: Final = TEXT.decode()


def create_app(policy: str = "") -> Flask:
    """Return the service; without `policy`, that of LEASE_WEBHOOK_POLICY or `standard`; raises PolicyFileError."""
    if not LOG.handlers:
        LOG.addHandler(STDOUT)
        LOG.setLevel(logging.INFO)
        LOG.propagate = False
    metrics = make_metrics()
    current = load(policy or os.environ.get(POLICY_VARIABLE) or None)
    metrics.show_policy(current)
    app = make_app(
        Reviewer(current, [metrics.record, ReviewLog().record, AuditLog().record]), partial(metrics.count, "malformed")
    )
    # Under another server no more is known than that it answers.
    for path, page in {"/livez": lambda: b"ok\n", "/readyz": lambda: b"ok\n", "/metrics": metrics.exposition}.items():
        kind = METRICS_TYPE if path == "/metrics" else TEXT
        app.add_url_rule(path, path, _page(page, kind), provide_automatic_options=False)
    return app


def make_app(reviewer: Reviewer, count_refusal: Callable[[str], None]) -> Flask:
    """Return the routes of reviews; `count_refusal` gets the kind of each request that is not a review."""
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = Guards().max_body
    # kube-apiserver would follow a redirect to anywhere (CVE-2020-8561), so there is none: `/validate/` and
    # `//validate` are 404.
    app.url_map.merge_slashes = False
    app.url_map.redirect_defaults = False

    def review(**_rest: str) -> Response:
        # Not request.path: werkzeug has taken away doubled slashes at its start.
        if not REVIEW_PATH.fullmatch(request.environ["PATH_INFO"]):
            raise NotFound
        began = time.monotonic()
        headers = {name.lower().encode("latin-1"): value.encode("latin-1") for name, value in request.headers}
        body = request.get_data()
        if not may_be_a_review(len(body), body):
            raise RequestEntityTooLarge
        made = reviewer.review(body, request.query_string, headers, began)
        return Response(made.body, made.status, content_type=made.content_type.decode())

    def refuse(error: HTTPException) -> Response:
        count_refusal(REFUSAL_KINDS.get(error.code or 0, OTHER))
        response = Response(f"{error.name.lower()}\n", error.code, content_type=_TEXT)
        if allowed := error.get_response().headers.get("Allow"):
            response.headers["Allow"] = allowed
        return response

    for rule, name in ((VALIDATE, "validate"), (f"{VALIDATE}-<path_rest>", "validate_kind")):
        app.add_url_rule(rule, name, review, methods=["POST"], provide_automatic_options=False)
    app.register_error_handler(HTTPException, refuse)
    return app


def call(app: Flask, head: Head, body: bytes) -> HttpResponse:
    """Return what an application responds to a request that our own port has read; it blocks."""
    environ = create_environ(
        method=head.method.decode("latin-1"),
        query_string=head.query.decode("latin-1"),
        headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.fields.items()],
        input_stream=io.BytesIO(body),
    )
    # PEP 3333: bytes as text in latin-1. werkzeug would take `//host` for a host.
    environ["PATH_INFO"] = unquote_to_bytes(head.path).decode("latin-1")
    response = Response.from_app(app.wsgi_app, environ, buffered=True)
    return HttpResponse(response.status_code, response.data, response.headers["Content-Type"].encode("latin-1"))


def _page(content: Callable[[], bytes], content_type: bytes) -> Callable[[], Response]:
    return lambda: Response(content(), content_type=content_type.decode())
