"""What could not be read of an input: the first are named on standard error, the others counted."""

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.api.text import escape
from webhook.cli.progress import Progress
from webhook.cli.report import say
from webhook.observations.observation import Item, Unreadable

NAMED: Final = 5


class Complaints:
    """`unreadable` is how many there were."""

    def __init__(self) -> None:
        self.unreadable = 0

    def watch(self, items: Iterable[Item], progress: Progress) -> Iterator[Item]:
        """Every item, each as soon as it is read."""
        for item in progress.watch(items):
            if isinstance(item, Unreadable):
                self.unreadable += 1
                if self.unreadable <= NAMED:
                    progress.clear()
                    say(escape(f"{item.source}: {item.error}"))
            yield item
        if self.unreadable > NAMED:
            say(f"{self.unreadable - NAMED} more could not be read")
