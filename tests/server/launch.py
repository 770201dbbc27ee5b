"""The real server in a process of its own, with faults that only a test puts in: `python -m tests.server.launch`.

The argument is a JSON object: the fields of `Options`, those of `Guards` under `guards`, and how a review behaves under
`review`: `normal`, `bug` (raises) or `slow` (takes half a second). `lines_waiting` is how many log lines may wait.
"""

import sys
import time

import msgspec

from webhook.policy.model import Policy
from webhook.server import logs, reviewer
from webhook.server.gunicorn_app import serve
from webhook.server.reviewer import ReviewResponse, respond
from webhook.server.settings import Guards, Options

SLOW_SECONDS = 0.5


class InjectedError(Exception):
    """What the test put in."""


def bug(body: bytes, policy: Policy, now: int) -> ReviewResponse:
    raise InjectedError("put in by a test")


def slow(body: bytes, policy: Policy, now: int) -> ReviewResponse:
    time.sleep(SLOW_SECONDS)
    return respond(body, policy, now)


BEHAVIORS = {"normal": respond, "bug": bug, "slow": slow}

if __name__ == "__main__":
    options = msgspec.json.decode(sys.argv[1])
    # The workers are forks, so they inherit it.
    setattr(reviewer, "respond", BEHAVIORS[options.pop("review", "normal")])  # noqa: B010 - types forbid it
    options["client_names"] = tuple(options.get("client_names", ()))
    setattr(logs, "MAX_LINES_WAITING", options.pop("lines_waiting", logs.MAX_LINES_WAITING))  # noqa: B010
    guards = Guards(**options.pop("guards", {}))
    serve(Options(guards=guards, **options))
