"""Connections whose time has passed go, each for itself."""

from typing import Any

from webhook.server.http.connection import sweep


class Expiring:
    """A connection, as the sweep sees it."""

    def __init__(self, expires: float, *, bug: bool = False) -> None:
        self.expires = expires
        self.transport = self
        self.happened: list[str] = []
        self._bug = bug

    def expire(self) -> None:
        self.happened.append("expired")
        if self._bug:
            raise RuntimeError

    def abort(self) -> None:
        self.happened.append("aborted")


def test_only_those_whose_time_has_passed() -> None:
    past, now, future = Expiring(1.0), Expiring(2.0), Expiring(2.1)
    sweep({past, now, future}, 2.0)
    assert [one.happened for one in (past, now, future)] == [["expired"], ["expired"], []]


def test_a_bug_with_one_aborts_it_and_keeps_none_of_the_others() -> None:
    connections: list[Any] = [Expiring(1.0, bug=number == 2) for number in range(5)]
    sweep(set(connections), 2.0)
    assert [one.happened for one in connections] == [["expired"]] * 2 + [["expired", "aborted"]] + [["expired"]] * 2
