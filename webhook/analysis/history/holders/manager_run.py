"""Renewals of a holder under another field manager than before, where a watch does not show who made them.

A field manager is what a client calls itself, so it is told, and nothing follows from it.
"""

from msgspec import Struct
from msgspec.structs import replace


class ManagerRun(Struct, frozen=True):
    """The latest renewals under `manager` that followed one under `before`; instants in microseconds since 1970."""

    manager: str
    before: str
    first: int
    last: int
    count: int = 1
    is_over: bool = False
    """The next renewal was under the one before again."""

    def follow(self, manager: str, at: int) -> "ManagerRun | None":
        """Return the run after another renewal; None if that begins another one."""
        if manager == self.manager and not self.is_over:
            return replace(self, last=at, count=self.count + 1)
        if manager == self.before:
            return replace(self, is_over=True)
        return None


def follow_manager(run: ManagerRun | None, before: str, manager: str, at: int) -> ManagerRun | None:
    """Return the latest run after a renewal under `manager`, which followed one under `before`; "" if unknown."""
    following = run.follow(manager, at) if run is not None else None
    if following is not None or manager == before or not (manager and before):
        return following or run
    return ManagerRun(manager, before, at, at)
