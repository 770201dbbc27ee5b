"""Candidates of a coordinated election that were pinged and did not answer: an API server chooses none of them."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import (
    Pod,
    advise_on_log_of_writer,
    advise_on_pods_of_node,
    find_node_of_name,
    find_pod_with_log,
)
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.elections.pings import Ping
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.analysis.named_pods import drop_uuid
from webhook.kubernetes.times import SECOND, parse_stamp

_SHORTEST: Final = 10 * SECOND
"""A candidate that hears a ping answers at once; an API server waits 5 s."""


class UnansweredPing(Struct, frozen=True):
    """A ping, and until when the input shows no answer to it, in microseconds since 1970."""

    namespace: str
    ping: Ping
    until: int
    writer: Writer | None = None
    """The pod that wrote the candidate, None if no log shows it."""
    node: str = ""
    """The node that a candidate of no known pod is named for; "" if the input shows none."""
    successor: str = ""
    """A candidate for the lease that was created later, and named alike but for the UUID at the end; "" if none was."""
    succeeded_at: int = 0
    """When that was created, in microseconds since 1970."""

    def describe(self, now: int) -> str:
        """Return it as a sentence without its end: what a watch shows need not be a write of an API server."""
        name, at = format_name(self.ping.candidate), format_clock(self.ping.at, now)
        what = f"the API server pinged LeaseCandidate {name} at {at}"
        if not self.ping.is_by_server:
            what = f"LeaseCandidate {name} was pinged at {at}"
        if self.successor:
            at = format_clock(self.succeeded_at, now)
            successor = f"{format_name(self.successor)}, created at {at}"
            return f"{what}, and the input shows no answer: {successor}, may have replaced it"
        return f"{what}, and the input shows no answer until {format_clock(self.until, now)}"

    def add_to(self, advice: Advice) -> Advice:
        """Return an advice that looks at the candidate first."""
        name = format_name(self.ping.candidate)
        sentence = (
            f"See why LeaseCandidate {name} did not answer its ping: an API server chooses only among those that do"
        )
        if self.node:
            own = advise_on_pods_of_node(f"{sentence}.", Pod(self.namespace, "", node=self.node))
            if not advice.command:
                return replace(own, sentence=f"{advice.sentence} {own.sentence}")
            return Advice(f"{sentence}. {advice.sentence}", f"{own.command}; {advice.command}", advice.pods)
        pod = find_pod_with_log(self.namespace, self.writer, self.ping.candidate)
        own = advise_on_log_of_writer(sentence, self.namespace, self.writer, self.ping.candidate)
        # A name that ends in a UUID is that of a pod, or of a machine, and of one start of its process.
        named = pod.name if pod.is_logged else drop_uuid(self.ping.candidate)
        if named in advice.pods:
            return advice  # which looks at it
        if not advice.command:
            end = ":" if pod.is_logged else ". If it is a pod:"
            return replace(own, sentence=f"{advice.sentence} {sentence}{end}")
        return Advice(f"{sentence}. {advice.sentence}", f"{own.command}; {advice.command}", (*own.pods, *advice.pods))


def find_unanswered_ping(histories: ClusterHistory, history: LeaseHistory) -> UnansweredPing | None:
    """Return the latest one for a lease; None if there is none, or if the input may lack an answer."""
    bounds = histories.bounds
    if histories.find_strategy(history) is None or bounds.is_log_leaky:
        return None
    replaced = None
    for ping in reversed(histories.pings.list_for_lease(history.namespace, history.name)):
        writer = histories.candidate_writers.find_pod(history.namespace, ping.candidate)
        if _is_of_gone_pod(histories, history, ping, writer):
            continue
        until = bounds.logged_until if ping.is_by_server else histories.watched_until.get(ping.source, 0)
        if until - ping.at < _SHORTEST or bounds.has_hole(ping.at, until):
            continue
        node = "" if writer is not None else find_node_of_name(history, ping.candidate)
        found = UnansweredPing(history.namespace, ping, until, writer, node)
        if not (successor := _find_successor(histories, history, ping)):
            return found
        created, name = successor
        replaced = replaced or replace(found, successor=name, succeeded_at=created)
    return replaced


def _find_successor(histories: ClusterHistory, history: LeaseHistory, ping: Ping) -> tuple[int, str] | None:
    """Return when a candidate of the same name but for its UUID was created later, and its name; None if none was.

    So it is if a process starts again: its old LeaseCandidate stays for a while. The new one answers pings.
    """
    host, own = drop_uuid(ping.candidate), histories.candidates.get((history.namespace, ping.candidate))
    since = parse_stamp(own.metadata.creation_timestamp) if own is not None else None
    if host == ping.candidate or since is None:
        return None
    alike = (
        (created, name)
        for (namespace, name), one in histories.candidates.items()
        if (namespace, name) not in histories.pings.unanswered and drop_uuid(name) == host != name
        if namespace == history.namespace and one.spec.lease_name == history.name
        if (created := parse_stamp(one.metadata.creation_timestamp)) is not None and created > since
    )
    return max(alike, default=None)


def _is_of_gone_pod(histories: ClusterHistory, history: LeaseHistory, ping: Ping, writer: Writer | None) -> bool:
    """Return whether the pod of a candidate was deleted, so that no one answers; without one, that of its name.

    The LeaseCandidate of a pod that has ended stays for half an hour.
    """
    named = writer if writer is not None else _find_holder_of_name(history, ping.candidate)
    if named is not None:
        return bool(histories.deleted_pods.list_deletions_by(named))
    name = drop_uuid(ping.candidate)
    return name != ping.candidate and bool(histories.deleted_pods.list_deletions_of(history.namespace, name, ""))


def _find_holder_of_name(history: LeaseHistory, candidate: str) -> Writer | None:
    """Return the pod that held the lease under the name of a candidate, which an API server gives to its holder."""
    owns = (one.processes.own for one in reversed(history.tenures) if one.holder == candidate)
    return next((one for one in owns if one is not None and one.pod), None)
