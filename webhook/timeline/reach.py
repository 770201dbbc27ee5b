"""From when to when an input shows what happened."""

from msgspec import Struct

from webhook.observations.observation import Act, Origin


class Reach(Struct):
    """`until` is the last moment of an event, or of a state in a watch; None for dumps, which do not state theirs."""

    until: int | None = None
    _first_event: int | None = None
    _first_state: int | None = None
    _last_state: int | None = None

    def event(self, at: int) -> None:
        """Something happened."""
        self._first_event = at if self._first_event is None else min(self._first_event, at)
        self.until_at_least(at)

    def seen(self, act: Act, origin: Origin, at: int | None) -> None:
        """Something was observed; `at` is None if that does not say when."""
        if at is None:
            return
        if act is not Act.STORED:
            self.event(at)
            return
        if origin is Origin.WATCH:
            self.until_at_least(at)
        if self._first_event is None:
            self._first_state = at if self._first_state is None else min(self._first_state, at)
            self._last_state = at if self._last_state is None else max(self._last_state, at)

    def until_at_least(self, at: int) -> None:
        """The input reaches this moment."""
        self.until = at if self.until is None else max(self.until, at)

    def begins(self, ends: int) -> int:
        """Where to begin to draw: with the first event, or with the list before it; of dumps with the oldest state.

        The states at the start of a watch are older than the watch. Of many the latest was renewed just before it.
        """
        if self._first_event is None:
            first = self._first_state
        elif self._last_state is None:
            first = self._first_event
        else:
            first = min(self._first_event, self._last_state)
        return ends if first is None else min(first, ends)
