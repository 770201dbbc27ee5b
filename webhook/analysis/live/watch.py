"""Keeps a watch of leases running: kubectl ends whenever the API server ends the watch, and is run again."""

import threading
import time
from collections.abc import Callable, Iterable
from subprocess import Popen
from typing import BinaryIO, Final, Protocol, cast

from msgspec import Struct, field

from webhook.analysis.history.stored_leases import Key
from webhook.analysis.inputs import cluster as clusters
from webhook.analysis.inputs.cluster import LEASES, Cluster
from webhook.analysis.inputs.documents import Document, LastLine, make_document
from webhook.analysis.inputs.files import read
from webhook.analysis.inputs.items import Act, InputKind, Item, Observation, Place, Unreadable
from webhook.analysis.inputs.kinds import interpret_all
from webhook.errors import InputError

FIRST_PAUSE: Final = 0.5
MAX_PAUSE: Final = 15.0
"""Seconds before kubectl is run again; doubled each time, from the first again once it has shown something."""
_GRACE: Final = 0.3
"""Seconds in which `stop` may follow: Ctrl-C ends kubectl as it ends the program that watches."""
_AGAIN: Final = ("kubectl runs again", "it begins again")


class Listener(Protocol):
    """Takes in what a watch shows."""

    def begin(self, resource: str) -> None:
        """Note that the watch of a resource begins, perhaps again, with a list of all there is."""

    def observe(self, item: Item) -> None:
        """Take in one item."""

    def show_status(self, status: str) -> None:
        """Report the state of the watch."""


class Listeners(Struct, frozen=True):
    """Several listeners to one watch."""

    all: tuple[Listener, ...]

    def begin(self, resource: str) -> None:
        """Pass it on."""
        for listener in self.all:
            listener.begin(resource)

    def observe(self, item: Item) -> None:
        """Pass it on."""
        for listener in self.all:
            listener.observe(item)

    def show_status(self, status: str) -> None:
        """Pass it on."""
        for listener in self.all:
            listener.show_status(status)


class FirstFailure:
    """Prints why a watch has shown nothing, once: what ends it later, and is tried again, concerns its page alone."""

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self._print = print_line
        self._is_over = False

    def begin(self, resource: str) -> None:
        """Nothing is known yet."""

    def observe(self, item: Item) -> None:  # noqa: ARG002 - a Listener's signature
        """Note that the watch works."""
        self._is_over = True

    def show_status(self, status: str) -> None:
        """Print the first one."""
        if status and not self._is_over:
            self._is_over = True
            self._print(status)


class Listing(Struct):
    """The list of one kind. A watch that begins again shows what was deleted meanwhile: its list lacks it."""

    kind: str = "Lease"
    patience: float = 5.0
    """Seconds after which the list is over, if it has shown nothing more that was known before."""
    missing: set[Key] = field(default_factory=set)
    shown_at: float | None = None

    def begin(self, known: set[Key]) -> None:
        """Note that a list begins; `known` are the objects that there were before."""
        self.missing, self.shown_at = known, None

    def note(self, item: Observation, now: float) -> None:
        """Note what the watch shows; `now` is in seconds, by any clock."""
        name = (item.namespace, item.name)
        if self.shown_at is None or name in self.missing:
            self.shown_at = now
        self.missing.discard(name)

    def note_unreadable(self) -> None:
        """Note that the watch shows an object of which not even the name can be read: no other is known to be gone."""
        self.missing = set()

    def find_deleted(self, now: float) -> list[Observation]:
        """Return, once, that what the list lacks was deleted, when it is over."""
        if self.shown_at is None or now < self.shown_at + self.patience:
            return []
        gone, self.missing = sorted(self.missing), set()
        place, watch = Place("kubectl", 0), InputKind.WATCH
        return [
            Observation(place=place, input_kind=watch, act=Act.DELETED, kind=self.kind, namespace=namespace, name=name)
            for namespace, name in gone
        ]


class LiveWatch(threading.Thread):
    """The watch; `stop` ends it, and kubectl unless it watches from inside a pod."""

    def __init__(
        self, feed: Listener, cluster: Cluster, resource: str = LEASES, *, is_in_cluster: bool = False
    ) -> None:
        super().__init__(name="watch", daemon=True)
        self._feed = feed
        self._cluster = cluster
        self._resource = resource
        self._is_in_cluster = is_in_cluster
        self._stopping = threading.Event()
        self._process: Popen[bytes] | None = None
        self._reason, self._has_shown = "", False

    def stop(self) -> None:
        """End kubectl, and wait for it."""
        self._stopping.set()
        process = self._process
        if process is not None:
            process.terminate()
        if self.ident is not None and not self._is_in_cluster:
            self.join(clusters.END)
        if process is not None and process.poll() is None:
            process.kill()

    def run(self) -> None:
        """Watch again and again; unless it is stopped, only a bug ends the thread."""
        pause, said = FIRST_PAUSE, ""
        while not self._stopping.is_set():
            self._feed.begin(self._resource)
            began = time.monotonic()
            self._run_once()
            if self._stopping.wait(_GRACE):
                return
            pause = FIRST_PAUSE if self._has_shown else min(pause * 2, MAX_PAUSE)
            lasted = time.monotonic() - began
            why = f": {self._reason}" if self._reason else f" after {lasted:.0f} s"
            status = f"The watch of {self._resource} ended{why}; {_AGAIN[self._is_in_cluster]}."
            # A kind that is not served ends every watch for the same reason.
            # A resource that is not served is not missing, and may be served later.
            if (self._has_shown or status != said) and not clusters.is_unserved(self._reason):
                self._feed.show_status(status)
            said = status
            self._stopping.wait(pause)

    def _run_once(self) -> None:
        """Watch until the watch ends."""
        self._reason, self._has_shown = "", False
        try:
            if self._is_in_cluster:
                lines = clusters.watch_in_cluster(self._cluster.namespace, self._resource)
                self._show(make_document(Place(self._resource), line) for line in lines)
            else:
                self._run_kubectl()
        except (InputError, ValueError) as error:
            self._reason = str(error)

    def _run_kubectl(self) -> None:
        self._process = process = clusters.start_watch(self._cluster, self._resource)
        # If it was stopped before there was a process, this one is left.
        if self._stopping.is_set():
            process.terminate()
        complaints = clusters.Complaints(process)
        self._show(read(cast("BinaryIO", process.stdout), self._resource))
        process.wait()
        reason = complaints.wait_for_reason()
        self._reason = clusters.explain_problem(reason)

    def _show(self, shown: Iterable[Document | Unreadable | LastLine]) -> None:
        for item in interpret_all(shown):
            if not self._has_shown:
                self._feed.show_status("")
            self._has_shown = True
            self._feed.observe(item)
