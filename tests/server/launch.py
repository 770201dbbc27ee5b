"""The real server in a process of its own, with the seams that only a test may use: `python -m tests.server.launch`.

The argument is a JSON object: the fields of `Options`, those of `Guards` under `guards`, and how `respond` behaves:
`normal`, `bug` (raises) or `slow` (takes half a second).
"""

import sys
import time

import msgspec

from webhook.policy.model import Policy
from webhook.server.gunicorn_app import serve
from webhook.server.respond import Reply, respond
from webhook.server.settings import Guards, Options

SLOW_SECONDS = 0.5


class InjectedError(Exception):
    """What the test put in."""


def bug(body: bytes, policy: Policy, now: int) -> Reply:
    raise InjectedError("put in by a test")


def slow(body: bytes, policy: Policy, now: int) -> Reply:
    time.sleep(SLOW_SECONDS)
    return respond(body, policy, now)


BEHAVIOURS = {"normal": respond, "bug": bug, "slow": slow}

if __name__ == "__main__":
    told = msgspec.json.decode(sys.argv[1])
    told["client_names"] = tuple(told.get("client_names", ()))
    guards = Guards(**told.pop("guards", {}))
    serve(Options(guards=guards, respond=BEHAVIOURS[told.pop("respond", "normal")], **told))
