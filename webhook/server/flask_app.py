"""The Flask application: the same verdicts under any WSGI server."""

import time
from collections.abc import Callable

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, NotFound

from webhook.policy_file import load
from webhook.server.respond import respond
from webhook.server.review_path import REVIEW_PATH, VALIDATE
from webhook.server.reviewer import OK, Reviewer
from webhook.server.settings import Guards

_REFUSED = {404: "path", 405: "method", 413: "body-size"}


def create_app(reviewer: Reviewer | None = None, refused: Callable[[str], None] = lambda _: None) -> Flask:
    """A new application; without a reviewer it judges by the built-in policy `standard`.

    `refused` is told about requests that are no review: path, method, body-size.
    """
    judge = reviewer or Reviewer(load(None), respond)
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
        started = time.monotonic()
        head = {name.lower().encode("latin-1"): value.encode("latin-1") for name, value in request.headers}
        status, body = judge.answer(request.get_data(), request.query_string, head, started)
        return Response(body, status, content_type="application/json" if status == OK else _TEXT)

    def refuse(error: HTTPException) -> Response:
        refused(_REFUSED.get(error.code or 0, "other"))
        answer = Response(f"{error.name.lower()}\n", error.code, content_type=_TEXT)
        allowed = error.get_response().headers.get("Allow")
        if allowed:
            answer.headers["Allow"] = allowed
        return answer

    for rule, name in ((VALIDATE, "validate"), (f"{VALIDATE}-<path_rest>", "validate_kind")):
        app.add_url_rule(
            rule,
            name,
            review,
            methods=["POST"],
            provide_automatic_options=False,
        )
    app.register_error_handler(HTTPException, refuse)
    return app


_TEXT = "text/plain; charset=utf-8"
