"""A watch that ends again and again for one reason says so once."""

import subprocess
import sys
import threading

import pytest

from webhook.analysis.inputs.cluster import CANDIDATES, Cluster, Complaints
from webhook.analysis.inputs.items import Item, OtherObject, Place
from webhook.analysis.live import watch
from webhook.analysis.live.watch import FirstFailure, LiveWatch
from webhook.errors import InputError

UNSERVED = 'error: the server doesn\'t have a resource type "leasecandidates"'
NOT_FOUND = "the API server returned 404 for /apis/coordination.k8s.io/v1alpha1/leasecandidates"
OTHER = "Error from server (Forbidden): no"


class Listener:
    """Remembers what it is told, until `runs` watches have begun."""

    def __init__(self, runs: int) -> None:
        self.statuses: list[str] = []
        self.has_begun_often = threading.Event()
        self._left = runs

    def begin(self, resource: str) -> None:
        assert resource == CANDIDATES
        self._left -= 1
        if self._left == 0:
            self.has_begun_often.set()

    def observe(self, item: Item) -> None:
        raise AssertionError(item)

    def show_status(self, status: str) -> None:
        self.statuses.append(status)


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ([OTHER] * 5, [OTHER]),
        ([UNSERVED] * 3, []),
        ([NOT_FOUND] * 3, []),
        ([UNSERVED, OTHER, OTHER, UNSERVED], [OTHER]),
    ],
    ids=["one reason", "a kind that is not served", "a version that is not served", "another reason"],
)
def test_a_reason_why_a_watch_ended_is_reported_once(
    reasons: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(reasons)

    def watching(cluster: Cluster, resource: str) -> None:
        raise InputError(next(left, reasons[-1]))

    monkeypatch.setattr(watch, "MAX_PAUSE", 0.01)
    monkeypatch.setattr(watch, "_GRACE", 0)
    monkeypatch.setattr("webhook.analysis.inputs.cluster.start_watch", watching)
    listener = Listener(len(reasons) + 2)
    live = LiveWatch(listener, Cluster(), CANDIDATES)
    live.start()
    assert listener.has_begun_often.wait(30)
    live.stop()
    assert not live.is_alive()
    assert listener.statuses == [f"The watch of {CANDIDATES} ended: {one}; kubectl runs again." for one in expected]


@pytest.mark.parametrize(
    ("printed", "reason"),
    [("Warning: v1 is deprecated", ""), ("error: gone\nWarning: v1 is deprecated", "error: gone")],
    ids=["only a warning", "an error before a warning"],
)
def test_a_warning_is_no_reason_why_kubectl_ended(printed: str, reason: str) -> None:
    words = [sys.executable, "-c", "import sys; print(sys.argv[1], file=sys.stderr)", printed]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
        assert Complaints(process).wait_for_reason() == reason


def test_what_kubectl_says_of_a_deprecated_version_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    printed = "Warning: coordination.k8s.io/v1beta1 LeaseCandidate is deprecated in v1.36+\nopen a browser"
    words = [sys.executable, "-c", "import sys; print(sys.argv[1], file=sys.stderr)", printed]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
        Complaints(process).wait_for_reason()
    assert capsys.readouterr().err == "open a browser\n"


def test_a_user_who_may_not_watch_the_cluster_is_pointed_to_one_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    forbidden = 'Error from server (Forbidden): User "dev" cannot list resource "leases" at the cluster scope'
    words = [sys.executable, "-c", "import sys; sys.exit(sys.argv[1])", forbidden]

    started: list[subprocess.Popen[bytes]] = []

    def watching(cluster: Cluster, resource: str) -> "subprocess.Popen[bytes]":
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return started[-1]

    monkeypatch.setattr(watch, "MAX_PAUSE", 0.01)
    monkeypatch.setattr(watch, "_GRACE", 0)
    monkeypatch.setattr("webhook.analysis.inputs.cluster.start_watch", watching)
    listener = Listener(2)
    live = LiveWatch(listener, Cluster(), CANDIDATES)
    live.start()
    assert listener.has_begun_often.wait(30)
    live.stop()
    for process in started:
        process.communicate()
    assert f"{forbidden}; -n NAMESPACE looks in one namespace" in listener.statuses[0]


@pytest.mark.parametrize(
    ("has_shown_something", "printed"), [(False, [OTHER]), (True, [])], ids=["from the start", "later"]
)
def test_why_a_watch_shows_nothing_is_printed_once(has_shown_something: bool, printed: list[str]) -> None:
    lines: list[str] = []
    listener = FirstFailure(lines.append)
    listener.begin(CANDIDATES)
    listener.show_status("")
    if has_shown_something:
        listener.observe(OtherObject(Place("kubectl"), "Pod"))
    for _ in range(2):
        listener.show_status(OTHER)
    assert lines == printed
