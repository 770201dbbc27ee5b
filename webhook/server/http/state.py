"""The states of a connection, as a table of data: every change is an event that the table allows, or an error.

`draw_diagram` renders the table for docs/architecture.md. Three things are not in the table, because they may hold in
several states. All are in `Connection`:

- whether the client reads its responses (`_may_write`): while it does not, nothing is read from it;
- what a read holds beyond its first request (`_unread`), which waits for the round robin (`_takes_turns`);
- whether the connection may be used again, decided with each response (`keep_alive`, `Port.is_draining`).
"""

from collections.abc import Mapping
from typing import Final


class State:
    """A state of a connection; each is one object."""

    def __init__(self, name: str, meaning: str) -> None:
        self.name, self.meaning = name, meaning

    def __repr__(self) -> str:
        return self.name


class Event:
    """Something that changes the state of a connection; each is one object."""

    def __init__(self, meaning: str) -> None:
        self.meaning = meaning

    def __repr__(self) -> str:
        return self.meaning


IDLE: Final = State("idle", "nothing of a request was read")
HEAD: Final = State("head", "a part of a head was read")
BODY: Final = State("body", "the head is accepted")
RESPONDING: Final = State("responding", "the request is whole; nothing more is read until its response is written")
STREAMING: Final = State("streaming", "a part of the response is written")
DISCARDING: Final = State("discarding", "a request was refused; what follows is dropped so that the refusal is read")
CLOSING: Final = State("closing", "we have closed; the peer has not yet")
CLOSED: Final = State("closed", "the transport is gone, or was aborted")

BEGIN: Final = Event("the first byte of a request was read")
ACCEPT: Final = Event("its head is whole and accepted")
COMPLETE: Final = Event("the request is whole")
STREAM: Final = Event("a first part of the response is written")
RESPOND: Final = Event("the response is written")
REFUSE: Final = Event("the request is refused")
CLOSE: Final = Event("the connection ends with what was written")
LOSE: Final = Event("the transport is gone")


class IllegalEventError(Exception):
    """An event that the table does not have for this state: a bug of ours."""

    def __init__(self, state: State, event: Event) -> None:
        super().__init__(f"illegal event for a connection that is {state}: {event}")


_ENDS: Final = {CLOSE: CLOSING, LOSE: CLOSED}
TABLE: Final[Mapping[State, Mapping[Event, State]]] = {
    # A request with a known head is read in one piece.
    IDLE: {BEGIN: HEAD, COMPLETE: RESPONDING, **_ENDS},
    HEAD: {ACCEPT: BODY, REFUSE: DISCARDING, LOSE: CLOSED},
    BODY: {COMPLETE: RESPONDING, REFUSE: DISCARDING, LOSE: CLOSED},
    RESPONDING: {RESPOND: IDLE, STREAM: STREAMING, **_ENDS},
    STREAMING: {RESPOND: IDLE, **_ENDS},
    DISCARDING: _ENDS,
    CLOSING: {LOSE: CLOSED},
    CLOSED: {LOSE: CLOSED},
}
IN_REQUEST: Final = (HEAD, BODY)
"""In the middle of a request."""
READ_IN: Final = (IDLE, *IN_REQUEST)
"""More input is read."""
ANSWERING: Final = (RESPONDING, STREAMING)
"""More input waits."""
DISCARDED_IN: Final = (DISCARDING, CLOSING, CLOSED)
"""More input is discarded."""


def advance(state: State, event: Event) -> State:
    """Return the state after an event; raises IllegalEventError if the table does not have it."""
    try:
        return TABLE[state][event]
    except KeyError:
        raise IllegalEventError(state, event) from None


def draw_diagram() -> str:
    """Return the table as a state diagram of Mermaid; every state may lose its transport, which is one arrow."""
    arrows = [
        f"    {before} --> {after}: {event}"
        for before, events in TABLE.items()
        for event, after in events.items()
        if event is not LOSE
    ]
    lost = f"    {CLOSING} --> {CLOSED}: {LOSE} (from any state)"
    return "\n".join(["stateDiagram-v2", f"    [*] --> {IDLE}", *arrows, lost, f"    {CLOSED} --> [*]"])
