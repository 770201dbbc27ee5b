"""The states of a connection: a table, and no code.

| from | to | when |
|---|---|---|
| IDLE | HEAD | the first byte of a request was read |
| HEAD | BODY | its head is whole and accepted |
| BODY | IDLE | it is whole, and gets its response |
| IDLE | RESPONDING | its response is being made off the event loop |
| RESPONDING | IDLE | that response is made |
| RESPONDING | CLOSING | that response took too long |
| HEAD | DISCARDING | it was refused; what still comes of it is discarded, so that the client reads the refusal |
| BODY | DISCARDING | the same |
| DISCARDING | CLOSING | that has lasted long enough |
| IDLE | CLOSING | no request came, or the connection ends with its response |
| any | CLOSED | the transport is gone, or was aborted |

A request with a known head is read and answered without leaving IDLE. Independent of the state: a client that does not
read its responses is not read from, and what a read holds beyond its first request waits for the turns of others.
"""

import enum
from typing import Final


class State(enum.Enum):
    """See the table."""

    IDLE = enum.auto()
    HEAD = enum.auto()
    BODY = enum.auto()
    RESPONDING = enum.auto()
    DISCARDING = enum.auto()
    CLOSING = enum.auto()
    CLOSED = enum.auto()


# As names of the module, because looking up a member of an Enum is a call into Python.
IDLE, HEAD, BODY, RESPONDING = State.IDLE, State.HEAD, State.BODY, State.RESPONDING
DISCARDING, CLOSING, CLOSED = State.DISCARDING, State.CLOSING, State.CLOSED

BETWEEN: Final = (IDLE, CLOSING)
"""No request is being read or answered."""
READING: Final = (HEAD, BODY)
"""In the middle of a request."""
TAKING: Final = (IDLE, HEAD, BODY)
ENDING: Final = (DISCARDING, CLOSING, CLOSED)
"""Whatever comes is ignored."""
