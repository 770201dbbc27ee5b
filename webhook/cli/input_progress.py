"""How far an input is read, and what of it could not be: the first are named on standard error, the others counted."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from webhook.cli.progress import Progress
from webhook.cli.report import say
from webhook.observations.observation import Unreadable

NAMED: Final = 5

T = TypeVar("T")


class InputProgress(Progress):
    """`unreadable` is how much could not be read."""

    unreadable = 0

    def watch(self, items: Iterable[T]) -> Iterator[T]:
        """Every item, each as soon as it is read."""
        for item in super().watch(items):
            if isinstance(item, Unreadable):
                self.unreadable += 1
                if self.unreadable <= NAMED:
                    self.clear()
                    say(f"{item.source}: {item.error}")
            yield item
        if self.unreadable > NAMED:
            say(f"{self.unreadable - NAMED} more could not be read")
