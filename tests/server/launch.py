"""The real server in a process of its own, with faults that only a test puts in: `python -m tests.server.launch`.

The argument is a JSON object: the fields of `Options`, those of `Guards` under `guards`, and how a review behaves under
`review`: `normal`, `bug` (raises) or `slow` (takes more than a second). `lines_waiting` is how many log lines may wait.
With `gthread`, the same application runs under gunicorn's worker with threads, as far as that has these options.
"""

import ssl
import sys
import time
from pathlib import Path

import msgspec
from flask import Flask
from gunicorn.app import wsgiapp

from webhook.admission.policy.file import PolicyFile
from webhook.admission.policy.model import Policy
from webhook.server.logs import MAX_LINES_WAITING, STDOUT
from webhook.server.reviewer import ReviewResponse, respond
from webhook.server.serve import serve
from webhook.server.settings import Guards, Options

SLOW_SECONDS = 1.2


class InjectedError(Exception):
    """What the test put in."""


def bug(body: bytes, policy: Policy, now: int) -> ReviewResponse:
    raise InjectedError("put in by a test")


def slow(body: bytes, policy: Policy, now: int) -> ReviewResponse:
    time.sleep(SLOW_SECONDS)
    return respond(body, policy, now)


BEHAVIORS = {"normal": respond, "bug": bug, "slow": slow}


def gthread_arguments(options: Options, review: str = "normal") -> list[str]:
    """The command line of gunicorn; docs/flask.md shows it."""
    tls = Path(options.tls_dir)
    arguments = [
        "--no-control-socket", "--worker-class=gthread", "--threads=64", f"--workers={options.workers}",
        "--keep-alive=5", f"--bind={options.bind}", f"--certfile={tls / 'tls.crt'}", f"--keyfile={tls / 'tls.key'}",
        "--logger-class=webhook.server.serve.GunicornLog",
    ]  # fmt: skip
    if options.client_ca:
        arguments += [f"--ca-certs={options.client_ca}", f"--cert-reqs={int(ssl.CERT_REQUIRED)}"]
    if review != "normal":
        return [*arguments, f"tests.server.launch:create_app({options.policy!r}, {review!r})"]
    return [*arguments, f"webhook.server.app:create_app({options.policy!r})"]


def create_app(policy: str, review: str) -> Flask:
    """The application as webhook.server.app makes it, but for how it reviews."""
    # `serve` must be the first that imports prometheus_client.
    from webhook.server.app import configure_logging, start_app  # noqa: PLC0415
    from webhook.server.service import Service  # noqa: PLC0415

    configure_logging()
    return start_app(Service(Options(), PolicyFile(policy or None), BEHAVIORS[review]))


if __name__ == "__main__":
    options = msgspec.json.decode(sys.argv[1])
    review = options.pop("review", "normal")
    options["client_names"] = tuple(options.get("client_names", ()))
    STDOUT.max_waiting = options.pop("lines_waiting", MAX_LINES_WAITING)
    guards = Guards(**options.pop("guards", {}))
    if options.pop("gthread", False):
        sys.argv = ["gunicorn", *gthread_arguments(Options(**options), review)]
        wsgiapp.run()
    else:
        serve(Options(guards=guards, **options), BEHAVIORS[review])
