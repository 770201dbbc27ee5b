"""The service as a Flask application: every route of it, for any WSGI server.

`lease-webhook serve` calls it for all that is not on the fast path of its reviews' port. Under another server it is the
whole service: `gunicorn 'webhook.server.flask_app:create_app()'`; docs/flask.md says what that way lacks.
"""

import logging
import os
import time
from collections.abc import Callable
from typing import Final

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, NotFound

from webhook.policy_file import load
from webhook.review_paths import REVIEW_PATH, VALIDATE
from webhook.server.health_port import PAGES, HealthPort, Readiness
from webhook.server.http import refusal_kinds
from webhook.server.http.guards import Guards
from webhook.server.http.message import TEXT, HttpResponse
from webhook.server.logs import LOG, STDOUT
from webhook.server.observe.audit_log import AuditLog
from webhook.server.observe.metrics import make_metrics
from webhook.server.observe.review_log import ReviewLog
from webhook.server.reviewer import Reviewer

POLICY_VARIABLE: Final = "LEASE_WEBHOOK_POLICY"
_TEXT: Final = TEXT.decode()


def create_app(policy: str = "") -> Flask:
    """The whole service; `policy` is a preset or a file, else that of LEASE_WEBHOOK_POLICY, else `standard`.

    Raises policy_file.PolicyFileError.
    """
    if not LOG.handlers:
        LOG.addHandler(STDOUT)
        LOG.setLevel(logging.INFO)
        LOG.propagate = False
    metrics = make_metrics()
    current = load(policy or os.environ.get(POLICY_VARIABLE) or None)
    metrics.show_policy(current)
    health = HealthPort(lambda: Readiness([], []), metrics.exposition)
    return make_app(Reviewer(current, [metrics, ReviewLog(), AuditLog()]), metrics.refused, health)


def make_app(
    reviewer: Reviewer, count_refusal: Callable[[str], None] = lambda _: None, health: HealthPort | None = None
) -> Flask:
    """The routes of reviews, and with `health` those of probes and metrics.

    `count_refusal` gets the kind of each request that is not a review, of refusal_kinds.OF_APPLICATION.
    """
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = Guards().largest_body
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
        return _to_flask(reviewer.review(request.get_data(), request.query_string, headers, began))

    def refuse(error: HTTPException) -> Response:
        count_refusal(refusal_kinds.OF_APPLICATION.get(error.code or 0, refusal_kinds.OTHER))
        response = Response(f"{error.name.lower()}\n", error.code, content_type=_TEXT)
        allowed = error.get_response().headers.get("Allow")
        if allowed:
            response.headers["Allow"] = allowed
        return response

    for rule, name in ((VALIDATE, "validate"), (f"{VALIDATE}-<path_rest>", "validate_kind")):
        app.add_url_rule(rule, name, review, methods=["POST"], provide_automatic_options=False)
    if health is not None:
        for path in PAGES:
            app.add_url_rule(
                path, path, lambda page=health.page: _to_flask(page(request.path)), provide_automatic_options=False
            )
    app.register_error_handler(HTTPException, refuse)
    return app


def _to_flask(response: HttpResponse) -> Response:
    return Response(response.body, response.status, content_type=response.content_type.decode())
