"""The processes that write a lease in the name of one holder: which of them is the holder's own, and who else renews.

In: the text of the holder, and the writers of what an input shows. Out: whose write it was, as far as that can be
known, and when other processes renewed and pods asked for the lease, in microseconds since 1970. Which process is the
holder's own does not depend on times.
"""

from collections import deque
from collections.abc import Iterable
from functools import partial
from itertools import islice, pairwise
from typing import Final

from msgspec import Struct, field

from webhook.admission.rules.holders import fits_pod, names_pod
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.request import UserInfo

MAX_WRITERS: Final = 8
MAX_REQUESTS: Final = 64
MAX_REQUESTS_AFTER_LOSS: Final = 6
MIN_RENEWALS: Final = 3
"""Renewals after which another writer counts as a process that shares an identity: by hand anyone may renew once."""


class OtherProcess(Struct):
    """A process that renewed a lease besides its holder's own: how often, and when first and last.

    `backward` of these moved renewTime back by more than the duration, which renews nothing. The first renewal was
    stored at `earliest` or later, the last one at `latest` or before. `is_followed`: the holder's own renewed after it.
    `is_before`: the holder's own did not renew before it.
    """

    count: int
    first: int
    last: int
    earliest: int
    latest: int
    backward: int = 0
    nameless: int = 0
    """So many were patches that name no holder: whoever makes them need not know whose the lease is."""
    is_followed: bool = False
    is_before: bool = False

    def add(self, later: "OtherProcess") -> None:
        """Add what it did later."""
        self.count, self.backward = self.count + later.count, self.backward + later.backward
        self.nameless += later.nameless
        self.last, self.latest, self.is_before = later.last, later.latest, False


class HolderProcesses(Struct):
    """What is known of the processes behind one identity, in one tenure."""

    identity: str
    """The holderIdentity of the lease."""
    namespace: str = ""
    """The namespace of the lease."""
    own: Writer | None = None
    """The process that took the lease, or, if another writer named the holder, the one that renews; None if unknown."""
    is_process_known: bool = False
    """The process is surely the one whose pod the holder names, or took the lease and renewed it."""
    renewals: int = 0
    """The renewals by its own process that were seen; those of unknown writers are taken for its own."""
    nameless_renewals: int = 0
    """So many of these by known writers were patches that name no holder."""
    unknown_renewals: int = 0
    """Renewals by unknown writers among these: they may be another one's."""
    unknown_at: int = 0
    """The time of the last of those, in microseconds since 1970; 0 if there are none."""
    is_last_known: bool = True
    """Its latest renewal is known to be by its own process."""
    taken_by: Writer | None = None
    """Who wrote the holder into the lease."""
    seen_writer: Writer | None = None
    """The writer of the state with which an input begins; None if the input does not show it."""
    may_name_other_pod: bool = False
    """The text names the pod of a process that it followed, or may: whether that knows of this one is not known."""
    node: str = ""
    """Node of the pod that renewed last."""
    others: dict[Writer, OtherProcess] = field(default_factory=dict)
    """Other processes that renewed it under this name, however often: none of them becomes the holder."""
    beside: set[Writer] = field(default_factory=set)
    """Writers between two of its own writes in a log without objects; they may use the same name."""
    requests: deque[int] = field(default_factory=partial(deque, (), MAX_REQUESTS))
    """The times of its pods' latest requests for the lease, as far as an audit log shows."""
    unrenewed: deque[int] = field(default_factory=partial(deque, (), MAX_REQUESTS))
    """The times of the latest writes of its own process that were stored, and left renewTime as it was."""
    requests_after_loss: list[int] = field(default_factory=list)
    """The times of the first requests of its pods after another one had taken the lease."""
    conflicted_after_loss: int | None = None
    """When an update of its pods first conflicted after another one had been written in; None if none did."""

    # Who writes.

    def begin_seen(self, writer: Writer) -> None:
        """Begin with who wrote the state with which an input begins."""
        self.own, self.is_process_known = writer.process, self.is_surely_pod(writer)
        self.seen_writer = writer.process

    def begin(self, writer: Writer | None, known: Writer | None) -> None:
        """Begin with who wrote the holder in; `known` is the process that had this identity before."""
        if writer is None:
            self.own, self.is_process_known = known, known is not None
            return
        is_named = self.is_surely_pod(writer)
        self.own = writer.process if is_named or known is None or known.is_same(writer) else known
        self.is_process_known = is_named or known is not None

    def forget_process(self) -> None:
        """Forget which process had this identity before: who renews next is its own."""
        self.own, self.is_process_known = None, False

    def begin_with_renewal(self, before: "HolderProcesses", *, is_nameless: bool) -> None:
        """Begin with a renewal by another pod than that of the processes before, under their identity."""
        self.is_process_known, self.renewals, self.nameless_renewals = True, 1, 1 if is_nameless else 0
        is_pod_unknown = before.own is not None and not before.own.pod
        may_name_pod_before = before.names_own_pod or before.may_name_other_pod or is_pod_unknown
        self.may_name_other_pod = may_name_pod_before and not self.names_own_pod

    def renew(
        self,
        writer: Writer | None,
        at: int,
        within: tuple[int, int],
        *,
        so_far: OtherProcess,
        is_set_back: bool,
        is_nameless: bool,
    ) -> bool:
        """Remember who renewed; return False if that was another process than the holder's own.

        `within` are the earliest and the latest moment at which that was stored. `so_far` is what its own process did,
        if that turns out to be another one. `is_set_back`: renewTime was moved back by more than the duration.
        `is_nameless`: it was a patch that names no holder.

        | the writer | is |
        |---|---|
        | not known | counted as its own process |
        | its own process, or the first one that is seen | its own process |
        | any, of a heartbeat that names no holder | its own process |
        | one that follows who only wrote the holder in | its own process from now on |
        | any other | another one, which never becomes the holder |
        """
        if writer is None or not writer.user:
            self.renewals, self.is_last_known = self.renewals + 1, False
            self.unknown_renewals, self.unknown_at = self.unknown_renewals + 1, at
            return True
        own = self.own
        if own is None or own.is_same(writer) or not self.identity:
            self._renew_by_own(writer, is_nameless=is_nameless)
            return True
        if self._is_after_who_wrote_it_in(own, writer):
            if so_far.count:
                so_far.is_before = writer.process not in self.others
                self.others[own] = so_far
            self.renewals = self.nameless_renewals = self.unknown_renewals = self.unknown_at = 0
            self._renew_by_own(writer, is_nameless=is_nameless)
            return True
        self._renew_by_other(writer, at, within, is_set_back=is_set_back, is_nameless=is_nameless)
        return False

    def _is_after_who_wrote_it_in(self, own: Writer, writer: Writer) -> bool:
        """Return whether what was taken for its own process only wrote the holder in, or did not take the lease."""
        is_likelier_pod = self.is_pod(writer) and not self.is_pod(own)
        is_likelier = not self.renewals or is_likelier_pod or writer.is_same(self.taken_by)
        return self._is_by_surer_pod(writer) or (not self.is_process_known and is_likelier)

    def _renew_by_own(self, writer: Writer, *, is_nameless: bool) -> None:
        self.own, self.node = writer.process, writer.node or self.node
        self.others.pop(self.own, None)
        for other in self.others.values():
            other.is_followed = True
        self.renewals, self.is_last_known = self.renewals + 1, True
        self.nameless_renewals += 1 if is_nameless else 0
        self.is_process_known = self.is_process_known or self.is_surely_pod(writer) or writer.is_same(self.taken_by)

    def _renew_by_other(
        self, writer: Writer, at: int, within: tuple[int, int], *, is_set_back: bool, is_nameless: bool
    ) -> None:
        if writer.process not in self.others and len(self.others) >= MAX_WRITERS:
            return
        earliest, latest = within
        other = self.others.setdefault(writer.process, OtherProcess(0, at, at, earliest, latest))
        other.count, other.last, other.latest = other.count + 1, at, latest
        other.is_before = False
        other.backward += 1 if is_set_back else 0
        other.nameless += 1 if is_nameless else 0

    def merge_concurrent_process(self, newcomer: "HolderProcesses", renewed: OtherProcess) -> None:
        """Add a process that had been taken for the next one of this name, and has `renewed` the lease."""
        assert self.own is not None
        assert newcomer.own is not None
        others = {**newcomer.others, newcomer.own: renewed}
        self.renewals += others.pop(self.own).count + newcomer.unknown_renewals
        self.unknown_renewals += newcomer.unknown_renewals
        self.unknown_at = max(self.unknown_at, newcomer.unknown_at)
        for who, seen in others.items():
            if who in self.others:
                self.others[who].add(seen)
            elif len(self.others) < MAX_WRITERS:
                self.others[who] = seen
        self.requests_after_loss.clear()
        self.conflicted_after_loss = None

    def note_beside(self, writers: Iterable[Writer]) -> None:
        """Remember who wrote between two of its writes."""
        self.beside.update(islice(writers, MAX_WRITERS - len(self.beside)))

    def note_request_after_loss(self, at: int) -> None:
        """Remember a request of its pods after another one had taken the lease."""
        if len(self.requests_after_loss) < MAX_REQUESTS_AFTER_LOSS:
            self.requests_after_loss.append(at)

    def note_requests_after_loss_since(self, since: int) -> None:
        """Remember the requests of its pods since another one began to write: that this follows it, was known later."""
        for at in self.requests if self.is_process_known else ():
            if at > since:
                self.note_request_after_loss(at)

    def note_conflict_after_loss(self, at: int) -> None:
        """Remember that its pods tried to renew although another one had been written in."""
        self.conflicted_after_loss = at if self.conflicted_after_loss is None else self.conflicted_after_loss

    # Whose write it was.

    @property
    def known_renewals(self) -> int:
        """How many renewals its own process is known to have made."""
        return self.renewals - self.unknown_renewals

    def is_pod(self, writer: Writer) -> bool:
        """Return whether a writer may be the pod that the holder names; who acts as another user could name any pod.

        A stranger may be it, too: any account that may write the lease may have a pod with a name that fits. Likewise
        of an agent on a node, whose token is bound to that.
        """
        name = writer.pod or writer.bound_node
        return bool(name) and not writer.impersonator and fits_pod(self.identity, name)

    def may_be_own(self, writer: Writer) -> bool:
        """Return whether a request may be its own process's: also as another user, or with a token without a pod."""
        own = self.own
        if own is None or own.is_same(writer) or writer.impersonator == own.user:
            return True
        return writer.user == own.user and not (writer.pod and own.pod)

    def is_here(self, writer: Writer) -> bool:
        """Return whether a writer is of the lease's namespace: pods of other ones may have the same name."""
        account = UserInfo(writer.user).service_account
        return account is not None and account[0] == self.namespace

    def is_surely_pod(self, writer: Writer) -> bool:
        """Return whether a writer is the pod that the holder names: of this namespace, and of no shorter name.

        An elector whose account is of another namespace than its lease is followed, but gives way to such a pod.
        """
        name = writer.pod or writer.bound_node
        return self.is_pod(writer) and self.is_here(writer) and names_pod(self.identity, name)

    def is_by(self, writer: Writer) -> bool | None:
        """Return whether a writer is the holder's own process; None if that cannot be known."""
        if self.own is not None and self.own.is_same(writer):
            return True
        if self.is_process_known:
            return self._is_by_surer_pod(writer)
        # Who was seen to write it may be a stranger; a pod that the holder names is not.
        return True if self.is_surely_pod(writer) else None

    def _is_by_surer_pod(self, writer: Writer) -> bool:
        """Return whether a writer is surely the pod that the holder names, and its own is of another account or person.

        Pods of one account may use one name, and then either may be the holder.
        """
        own = self.own
        if own is None or self.is_surely_pod(own) or not self.is_surely_pod(writer):
            return False
        return writer.user != own.user or bool(own.impersonator)

    def may_renew(self, writer: Writer | None) -> bool:
        """Return whether another writer that renews it may be the holder: of its account, or of a text without its pod.

        Who wrote a text that is not its own, and renews it, looks like the holder of which it is the text.
        """
        own = self.own
        if own is None or not self.names_own_pod:
            return True
        return writer is not None and writer.user == own.user and not writer.impersonator

    def may_renew_last(self, writer: Writer | None) -> bool:
        """Return whether the last renewal by another writer may be the holder's: not if it surely is another pod."""
        is_named = self.own is not None and self.is_surely_pod(self.own)
        return self.may_renew(writer) and (not is_named or (writer is not None and self.is_pod(writer)))

    def is_renewed_by_another(self, start: int, end: int) -> bool:
        """Return whether one that may be of its identity renewed under it while its own process was silent."""
        others = (seen for who, seen in self.others.items() if self.may_renew(who))
        return any(one.first < end and start < one.last for one in others)

    def may_share(self, writer: Writer | None) -> bool:
        """Return whether a writer is another pod of its process's account, which may use the same identity.

        If the identity names its pod, only a pod of that name may: one that was replaced may live on.
        """
        own = self.own
        if own is None or writer is None:
            return False
        may_share = not self.is_pod(own) or self.is_pod(writer)
        return writer.user == own.user and bool(writer.pod and own.pod) and may_share

    def is_replaced_by(self, writer: Writer | None) -> bool:
        """Return whether a writer is another pod of the account whose pod holds it."""
        own = self.own
        if own is None or writer is None or writer.user != own.user or writer.impersonator or own.impersonator:
            return False
        is_known = self.is_process_known or self.renewals > 0
        return is_known and bool(own.pod or own.uid) and bool(writer.pod or writer.uid) and not own.is_same(writer)

    def is_from_pod_of(self, before: "HolderProcesses | None") -> bool:
        """Return whether this holder was written from the pod of the one before; containers of a pod look the same.

        Unless another pod renews it then: the holder before wrote its successor in.
        """
        if before is None or not before.is_process_known or before.own is None:
            return False
        is_led_elsewhere = self.own is not None and not before.own.is_pod_of(self.own)
        return before.own.is_pod_of(self.taken_by) and not is_led_elsewhere

    @property
    def names_own_pod(self) -> bool:
        """Whether the text names the pod of its own process; else another one that renews may be the holder."""
        return self.own is not None and self.is_pod(self.own)

    @property
    def may_stand_for_other(self) -> bool:
        """True if another process may lead under the same text: it does not name this pod, and others renew the lease.

        The writer of the first state of an input, if it hardly renews, may be a stranger.
        """
        is_stranger = self.taken_by is None and not self.is_process_known and self.renewals < MIN_RENEWALS
        is_shared = not self.names_own_pod and (bool(self.others) or self._is_after_seen_writer)
        return self.may_name_other_pod or is_stranger or is_shared

    @property
    def _is_after_seen_writer(self) -> bool:
        """Whether another process than its own wrote the state with which the input begins: that may be the holder."""
        return self.own is not None and self.seen_writer is not None and not self.own.is_same(self.seen_writer)

    @property
    def impersonator(self) -> str:
        """Who acted as the one that wrote the holder, "" if that wrote itself."""
        return self.taken_by.impersonator if self.taken_by else ""

    @property
    def is_alone(self) -> bool:
        """Whether one pod made all renewals that were seen, and they are many: a stranger writes once or twice."""
        has_pod = self.own is not None and bool(self.own.pod) and self.is_last_known
        return has_pod and self.renewals >= MIN_RENEWALS and not self.others

    @property
    def foreign_taker(self) -> Writer | None:
        """Who wrote the holder into the lease, if that was not itself; None if it was, or if that is not known.

        A text that does not name the pod which renews may be the taker's own; and another pod of an account may use the
        same identity.
        """
        taker, own = self.taken_by, self.own
        if taker is None or own is None or own.is_same(taker) or not self.names_own_pod:
            return None
        return None if self.may_share(taker) else taker

    @property
    def is_own_taking(self) -> bool | None:
        """Whether its own process wrote the holder; None if that is not known."""
        taker, own = self.taken_by, self.own
        if taker is None or own is None:
            return None
        if own.is_same(taker):
            return True if self.is_process_known or self.is_surely_pod(taker) else None
        return False if self.is_process_known else None

    @property
    def doubtful_taker(self) -> Writer | None:
        """Who wrote the holder, unless that is known to be its own process; None if it is not known who did."""
        return None if self.is_own_taking else self.taken_by

    @property
    def is_never_renewed(self) -> bool:
        """Whether no process is known to have renewed it, and a writer other than the pod that it names wrote it in."""
        return self.taken_by is not None and not self.renewals and not self.is_pod(self.taken_by)

    # Who renews it beside.

    def may_be_taken_by(self, other: Writer) -> bool:
        """Return whether one of the `others` may have taken the lease: who did is not known, nor whose it was then."""
        return self.taken_by is None and (not self.known_renewals or self.others[other].is_before)

    @property
    def sharers(self) -> list[Writer]:
        """The processes that renewed it besides its own, and not only once or twice, the latest last."""
        often = [
            (other.last, writer)
            for writer, other in self.others.items()
            if other.count - other.backward >= MIN_RENEWALS
        ]
        return [writer for _, writer in sorted(often, key=lambda pair: pair[0])]

    @property
    def is_shared_without_names(self) -> bool:
        """True if all of these named no holder: the identity is that of its own process then."""
        return bool(self.identity) and all(self.others[one].nameless == self.others[one].count for one in self.sharers)

    @property
    def has_several_writers(self) -> bool:
        """Whether its own process renewed it, and another one again and again."""
        return bool(self.known_renewals and self.sharers)

    @property
    def renews_in_turns(self) -> bool:
        """Whether several processes renew it alternately: its own one renews after another one, or several others do.

        Else one followed the other: the process may have got other credentials.
        """
        sharers = self.sharers
        others = [self.others[one] for one in sharers]
        return len(sharers) > 1 or any(other.is_followed and not other.is_before for other in others)

    @property
    def writers(self) -> list[Writer]:
        """Who renewed it, its own process first."""
        return [*([self.own] if self.own else []), *self.sharers]

    @property
    def pods(self) -> list[str]:
        """The pod of its own process, and of others that renewed it again and again."""
        return [writer.pod for writer in self.writers if writer.pod]

    def find_longest_pause(self, until: int) -> int:
        """Return the longest time between two of its latest requests until an instant, in microseconds; 0 of fewer."""
        times = sorted(one for one in self.requests if one <= until)
        return max((after - before for before, after in pairwise(times)), default=0)

    def list_requests_after(self, at: int) -> list[int]:
        """Return when its pods asked for the lease: after an instant as its holder, or since another one held it."""
        return [*(one for one in self.requests if one > at), *self.requests_after_loss]

    def count_requests(self, start: int, end: int) -> int | None:
        """Return how many requests of its pods were received between two instants; None if that cannot be known."""
        is_pod = self.own is not None and self.is_process_known and bool(self.own.pod)
        return sum(1 for at in self.requests if start < at <= end) if is_pod else None
