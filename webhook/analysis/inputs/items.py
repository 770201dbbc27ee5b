"""The items that inputs consist of: what is said about one Lease or LeaseCandidate at one moment, and the rest."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct

from webhook.admission.rules.stamps import find_latest_stamp
from webhook.analysis.inputs.patches import Mark, SentPatch, SpecChanges
from webhook.analysis.inputs.rewriting import Rewriting
from webhook.cached_property import cached_property
from webhook.kubernetes.managed_fields import Entry, list_entries
from webhook.kubernetes.objects import Lease, LeaseCandidate, LeaseSpec, ObjectMeta, OwnerReference
from webhook.kubernetes.request import NODE_CONTROLLER, AdmissionRequest, UserInfo
from webhook.kubernetes.times import SECOND, format_time

_MAX_PROGRAM: Final = 60
LISTINGS: Final = frozenset({"list", "watch"})
"""Verbs whose requests are answered with the same code whether or not the object exists."""
NO_TEXTS: Final[Mapping[str, str]] = {}
STANDARD_INPUT: Final = "-"
_MAX_DIGITS: Final = 20
"""More than a resourceVersion, or a term, can have."""
MAX_LATEST: Final = 10
"""Intervals that a recorder keeps in order: from as many it shows whether two processes renew in turns."""
MAX_BINS: Final = 100
_NOT_FOUND: Final = 404
_NEAR: Final = 2 * SECOND
MILLISECOND: Final = 1000
_MODES: Final = re.compile(r"[a-z0-9-]{1,80}=[a-z]{1,10}(?:,[a-z0-9-]{1,80}=[a-z]{1,10})*+")
"""The annotation `rules` of lease-webhook."""
_SPEC_FIELDS: Final[dict[str, object]] = {"f:spec": {f"f:{name}": {} for name in LeaseSpec.__struct_encode_fields__}}


class Act(StrEnum):
    """The kind of an observation. A patch and an apply are UPDATED, unless it is known that they created the object."""

    STORED = "stored"
    """The object as it stood, in a list, a manifest or at the start of a watch."""
    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"
    READ = "read"
    """A read, as those make who wait to become leader; also a list or a watch of this name alone."""
    COLLECTION = "collection"
    """A list, a watch or a deletion of many objects at once: it says nothing of a single one. The name may be ""."""


class InputKind(StrEnum):
    """The kind of input an observation comes from, and so what the absence of one means."""

    DUMP = "dump"
    """One moment: nothing about what happened before."""
    WATCH = "watch"
    """Every change, in order; who wrote it is known as a field manager only."""
    AUDIT_LOG = "audit log"
    """Every request, with its writer; objects at level RequestResponse only."""
    REVIEW = "review"
    """Requests about which an API server asked a webhook; renewals are often left out."""


class Writer(Struct, frozen=True, gc=False):
    """Who made a request, as the API server authenticated it; every part may be empty.

    `node` is that of the pod; without a pod, it is the one to whose Node the token is bound. A stamp has the pod's
    `uid` instead of its name; `impersonator` acted as this user.
    """

    user: str = ""
    pod: str = ""
    node: str = ""
    uid: str = ""
    impersonator: str = ""
    groups: tuple[str, ...] = ()
    impersonator_groups: tuple[str, ...] = ()

    @property
    def process(self) -> "Writer":
        """The user and the pod alone, or the node of a token that is of no pod: by these writers are compared."""
        return Writer(self.user, self.pod, self.bound_node, uid=self.uid, impersonator=self.impersonator)

    @property
    def bound_node(self) -> str:
        """The node to whose Node the token is bound, "" if it is of a pod, or of neither.

        Who acts as another user may name any node.
        """
        return "" if self.pod or self.uid or self.impersonator else self.node

    @property
    def is_node_controller(self) -> bool:
        """Whether it is the node controller of Kubernetes, and not someone who impersonates it."""
        return self.user == NODE_CONTROLLER and not self.impersonator

    def is_same(self, other: "Writer | None") -> bool:
        """True if both are one process: a pod by its uid, else by its name; a user without a pod by name and node."""
        if other is None or self.user != other.user or self.impersonator != other.impersonator:
            return False
        if self.uid and other.uid:
            return self.uid == other.uid
        return self.pod == other.pod and self.bound_node == other.bound_node

    def is_pod_of(self, other: "Writer | None") -> bool:
        """True if both are one pod, by its uid: containers of one pod cannot be told apart."""
        return other is not None and bool(self.uid) and self.is_same(other)

    @property
    def name(self) -> str:
        """`shop/checkout` for a service account, else the user's name."""
        account = UserInfo(self.user).service_account
        return "/".join(account) if account else self.user


class WebhookAnnotations(Struct, frozen=True):
    """Notes of lease-webhook about a write: the modes of rules, those whose denial a cap or an exemption lifted."""

    modes: Mapping[str, str] = NO_TEXTS
    would_deny: Sequence[str] = ()
    event: str = ""


class Answer(Struct, frozen=True, gc=False):
    """The answer of the API server; `took` in microseconds; `annotations` are those of the audit log."""

    code: int = 200
    message: str = ""
    took: int = 0
    annotations: Mapping[str, str] = NO_TEXTS

    @property
    def is_stored(self) -> bool:
        """Return whether the write was stored."""
        return 200 <= self.code < 300

    @property
    def webhook_annotations(self) -> WebhookAnnotations:
        """Annotations of lease-webhook in the log; the API server puts the name of the webhook before each key."""
        modes: dict[str, str] = {}
        would_deny: list[str] = []
        events: list[str] = []
        for key, text in sorted(self.annotations.items()):
            webhook, _, name = key.rpartition("/")
            if name == "rules" and _MODES.fullmatch(text):
                modes |= {rule: mode for rule, _, mode in (one.partition("=") for one in text.split(","))}
                would_deny += self.annotations.get(f"{webhook}/would-deny", "").split(",")
                events.append(self.annotations.get(f"{webhook}/event", ""))
        return WebhookAnnotations(
            modes, [*dict.fromkeys(filter(None, would_deny))], ", ".join(dict.fromkeys(filter(None, events)))
        )


class Place(Struct, frozen=True, gc=False):
    """A position in the input: a file, or `-`, and the number of the document in it; `is_only`: there is no other."""

    path: str
    document: int = 1
    is_only: bool = False

    def __str__(self) -> str:
        return f"{self.path}#{self.document}"

    @property
    def short(self) -> str:
        """The path, with the number of the document unless it is the only one; standard input has no path."""
        if self.path == STANDARD_INPUT:
            return "standard input" if self.is_only else f"standard input, document {self.document}"
        return self.path if self.is_only else str(self)


Length = Annotated[int, Meta(ge=0, lt=2**62)]


class CountedRenewals(Struct, frozen=True, gc=False):
    """The renewals that a recorder did not keep one by one, up to the state that has it, which it counts.

    `histogram` has intervals in milliseconds, each with its number; `latest` has those after them, in microseconds and
    in order, the last one before the state itself.
    """

    latest: Annotated[Sequence[Length], Meta(min_length=1, max_length=MAX_LATEST)]
    histogram: Annotated[Mapping[Length, Length], Meta(max_length=MAX_BINS)] = {}


class CollectionDeletion(Struct, frozen=True, gc=False):
    """What one request to delete many objects of a namespace deleted.

    `names` has the name and the uid of each, "" if that is not known. `is_whole`: every object of the kind. Unless
    `is_shown`, the log has no answer that lists them, and those of `names` are what was asked for.
    """

    names: tuple[tuple[str, str], ...] = ()
    is_whole: bool = False
    is_shown: bool = True

    @property
    def is_unknown(self) -> bool:
        """Whether it deleted objects of which the log does not show which they are."""
        return not (self.is_shown or self.is_whole or self.names)


class Observation(Struct, frozen=True, dict=True, kw_only=True):
    """One observation.

    `at` is the moment by an API server's clock in microseconds since 1970, None if only the object itself can say.
    `verb` is what RBAC calls the request, "" if the input does not show requests. `object` is the state after a write,
    or before a deletion; None if the input does not carry it, or carries it with wrong types, which `problem` then
    names. `old` is the state before, in reviews only, as is `request`. `is_dry_run` writes were never stored.
    Unless `is_surely_not_dry_run`, a deletion may have been a dry run: a log at level Metadata hides its options.
    `collection_deletion` is what it deleted of many objects, None if it was no request to do so.
    `term` is that of a lease whose stamps are believed, None if it is not known.
    `uid` and `resource_version` are those of the object as stored: an audit event and a watch event of the same write
    have the same; `replaces` is the resourceVersion that a request says it replaces; each "" if the input does not say.
    """

    place: Place
    input_kind: InputKind
    act: Act
    kind: str
    namespace: str
    name: str
    object: Lease | LeaseCandidate | None = None
    old: Lease | LeaseCandidate | None = None
    at: int | None = None
    verb: str = ""
    writer: Writer | None = None
    answer: Answer | None = None
    is_dry_run: bool = False
    is_surely_not_dry_run: bool = True
    collection_deletion: CollectionDeletion | None = None
    shows_absence: bool = False
    """A request that did not find its object, and the input shows none until it is created."""
    problem: str = ""
    request: AdmissionRequest | None = None
    term: int | None = None
    uid: str = ""
    resource_version: str = ""
    replaces: str = ""
    version: str = ""
    """The version of the API that a request is by, as a log says."""
    source: str = ""
    """The address and the program that a request came from, as a log says."""
    user: UserInfo | None = None
    """The writer with its groups, of an audit log only."""
    text: bytes = b""
    """The object in JSON, of a list or a watch only."""
    size: int = 0
    """Bytes of the document that shows it; 0 if it is made of another one."""
    is_stamp_old: bool = False
    """The stamp of the API server is that of an earlier write: this one was made by a writer that is not stamped."""
    is_order_unsure: bool = False
    """A write that a log shows just after it may have come before it: nothing but clocks, which differ, orders them."""
    refused_holder: str | None = None
    """The holder that an update asked for which was not stored, "" if it was a release; of an audit log only."""
    refused_renew_time: str = ""
    """The renewTime that such an update asked for."""
    was_stored: bool | None = False
    """A write of which its answer says that it failed was stored all the same; None if that is not known."""
    counted_renewals: CountedRenewals | None = None
    """The renewals since the state before, if a recorder kept only their number."""
    rewritings: tuple[Rewriting, ...] = ()
    """What was stored differently than the request asked; of an audit log only."""
    asked: Lease | None = None
    """The lease that a write requested, if it failed, or if a webhook changed it and a log does not show the result."""
    is_from_cache: bool = False
    """A read that an API server may have answered from its memory, without its etcd; of an audit log only."""
    is_watched: bool = False
    """A watch shows the same write as the request of a log."""
    has_object_of_log: bool = False
    """The object is that of the log, as what else shows the same write was saved without managedFields."""
    shown_by: tuple[str, ...] = ()
    """The paths of other watches that show the same state."""
    may_be_logged: bool = False
    """A log has a write that may have made this state of a watch, though not which of several."""
    log: str = ""
    """The path of the log that has the request, if `place` is that of a watch."""
    asked_lease: str = ""
    """The lease that a write of a LeaseCandidate names, if it was not stored and a log shows the request."""
    asked_manager: str = ""
    """The field manager for which a creation asked, which clients choose; "" if a log does not show it."""
    patched_renew_time: str = ""
    """The renewTime that a patch asked for, if a log shows the patch, and not what was stored."""
    sent_patch: SentPatch | None = None
    """What a patch of the spec asked for, as a log shows, whatever it shows of what was stored."""
    asked_changes: SpecChanges | None = None
    """The fields of the spec that a patch asked to set, if a log shows the patch, and not what was stored."""
    answered_object: bytes = b""
    """The object with which a read was answered, as JSON; of an audit log only."""
    read_at: int | None = None
    """When the read was answered that shows this state, of which a log lacks the write; None if no read shows it."""
    requested_at: int | None = None
    """When the request was received that made this state, although its answer says that it failed; None of any other.
    """
    unchanged_at: int = 0
    """When a read was last answered, by etcd, with the state that this write of a log made; 0 if none was."""
    is_deleted_later: bool = False
    """A read shows this state, and a log that has no write before it has its deletion."""
    may_change_nothing: bool = False
    """Another update replaced the state that this one names as well: one of them changed nothing."""
    is_beside_spec: bool = False
    """A write that a log shows, and not what was stored, left the spec as it was: a patch of annotations and labels
    alone, or an update that changed nothing."""
    marks: tuple[Mark, ...] = ()
    """The annotations and labels that such a patch set or removed."""
    patched_owners: tuple[OwnerReference, ...] = ()
    """The owners that such a patch set."""

    @cached_property
    def entries(self) -> Sequence[Entry]:
        """Entries of managedFields of the object."""
        return () if self.object is None else list_entries(self.object.metadata.managed_fields)

    @property
    def is_deletion(self) -> bool:
        """True if it deleted the object: a request only marks one with finalizers, which is gone with the last of them.

        A watch says when it is gone, with the object as it was before.
        """
        if self.act is Act.DELETED and self.input_kind is not InputKind.AUDIT_LOG:
            return True
        if self.object is not None and self.object.metadata.deletion_timestamp and self.act is not Act.STORED:
            return not self.object.metadata.finalizers
        return self.act is Act.DELETED

    @property
    def has_not_found(self) -> bool:
        """Whether the API server says that the object does not exist: 404 may also say that it knows no such path."""
        if self.answer is None or self.answer.code != _NOT_FOUND or self.act is Act.CREATED:
            return False
        return self.answer.message == f'{self.kind.lower()}s.coordination.k8s.io "{self.name}" not found'

    @property
    def took(self) -> int:
        """The microseconds that its answer took, 0 if the input does not say."""
        return self.answer.took if self.answer else 0

    @property
    def is_stored(self) -> bool:
        """Whether it says what is, or was, stored: no dry run, and nothing that was refused."""
        return not self.is_dry_run and (self.answer is None or self.answer.is_stored)

    @property
    def log_path(self) -> str:
        """The path of the log that has the request, even if something else shows the same write."""
        return self.log or self.place.path

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all inputs that show the state: each watch among them continues from it."""
        return (self.place.path, *self.shown_by)

    @property
    def has_managed_fields(self) -> bool:
        """Whether the object shows managedFields; kubectl hides them unless it is asked."""
        return self.object is not None and has_managed_fields(self.object)

    @cached_property
    def latest_stamp(self) -> int | None:
        """The latest time that an API server stamped into the object; a client may have invented it."""
        return find_latest_stamp(self.entries)


class Unreadable(Struct, frozen=True):
    """Something that could not be read; `error` is one line."""

    place: Place
    error: str
    is_foreign: bool = False
    """Nothing in it looks like a Lease, a LeaseCandidate or a review, or it is a template of one."""
    line: int = 0
    """Where it begins in its file; 0 if that is not known."""
    is_template: bool = False
    """It has actions of a Go template, so it is not an object until it is rendered."""


NO_KIND: Final = "no kind"
"""For people, instead of the kind of an object that names none."""


class OtherObject(Struct, frozen=True):
    """An object of another kind; with a name if it is a pod (and has a `service_account`) or a node, or has a token.

    `metadata` is that of an object with the token of a fence, whosever it is; else None.
    """

    place: Place
    kind: str
    namespace: str = ""
    name: str = ""
    service_account: str = ""
    metadata: ObjectMeta | None = None


class ElectionEvent(OtherObject, frozen=True):
    """An Event that names a leader: what a client says, in a sentence, about the `lease` in the namespace.

    Anyone who may create Events can invent it, with any time; `at` is in microseconds since 1970.
    """

    lease: str = ""
    at: int = 0
    text: str = ""


class LogEnd(Struct, frozen=True):
    """The last request of an audit log, about any object: it lacks none for a lease until then, but in a hole."""

    at: int


class ClockSkew(Struct, frozen=True):
    """The least difference between clocks of API servers, in microseconds; it comes before what they wrote.

    `is_within`: they wrote one input.
    """

    least: int
    is_within: bool = False


class FenceReport(Struct, frozen=True, gc=False, kw_only=True):
    """A write of any object that a fence refused, or only noted if `is_refused` is false.

    `namespace` and `name` are the lease's; `target` is what was to be written; `at` is in microseconds since 1970.
    """

    place: Place
    at: int
    fence: str
    namespace: str
    name: str
    writer: Writer
    target: str
    message: str
    is_refused: bool


class RecordingGap(Struct, frozen=True):
    """A time in which a recorder did not see what happened, in microseconds since 1970 by its computer's clock.

    `place` is where a record says so, None if no record does.
    """

    start: int
    end: int
    reason: str
    place: Place | None = None

    def is_recorded_after(self, place: Place) -> bool:
        """Return whether a record has something at a place, and the gap after that: what it shows was seen before."""
        return self.place is not None and self.place.path == place.path and place.document < self.place.document

    def __str__(self) -> str:
        return f"not recorded from {format_time(self.start)} to {format_time(self.end)}: {self.reason}"


class StoreRestored(RecordingGap, frozen=True):
    """The store of an API server was put back to an earlier state: what was known may no longer be so at `end`."""

    def __str__(self) -> str:
        between = f"between {format_time(self.start)} and {format_time(self.end)}"
        return f"{between} {self.reason}; no conclusion is drawn across this point"


class PodDeletion(Struct, frozen=True, gc=False, kw_only=True):
    """A request that deleted a pod, or evicted it, which was accepted at `at`, in microseconds since 1970.

    `uid` is that of the pod, "" if the log does not show it. Unless `is_surely_not_dry_run`, the request may have been
    a dry run: a log at level Metadata hides the options of most requests. `grace` is for how many seconds the pod may
    take to end, as the request says; None if it does not, or is not shown.
    """

    at: int
    namespace: str
    name: str
    writer: Writer
    uid: str = ""
    is_eviction: bool = False
    is_surely_not_dry_run: bool = True
    grace: int | None = None


class PodAct(StrEnum):
    """What a request about a pod did."""

    REFUSED = "refused"
    """It was to create a pod, and did not."""
    STATUS = "status"
    """It wrote the status of a pod, as its kubelet and the scheduler do."""
    BOUND = "bound"
    """It gave a pod a node."""
    KEPT = "kept"
    """It was to evict a pod, and did not."""
    RAN = "ran"
    """It ran a program in a pod, as `kubectl exec` and hooks of backups do; `message` names it, and a signal it sends.
    """
    RESIZED = "resized"
    """It changed what a running pod may use, as a vertical autoscaler does; `message` is what limits it set."""
    IMAGE_SET = "image-set"
    """It set the image of a container of a running pod, which its kubelet then restarts; `message` says which."""
    JOB_STATUS = "job-status"
    """The job controller wrote the status of the Job that is named, as when a pod of it starts or ends."""


class ContainerEnd(Struct, frozen=True, gc=False):
    """The end of a container as the status of its pod says it: why, and when, in microseconds since 1970, if it does.

    The time is of the clock of the kubelet.
    """

    container: str
    reason: str = ""
    exit_code: int | None = None
    at: int | None = None


class PodStatus(Struct, frozen=True, gc=False, kw_only=True):
    """What somebody wrote as the status of a pod: of a patch, only what it changes; `message` is shortened.

    `uid` is that of the pod, "" if the request does not say it.
    """

    uid: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    ended: tuple[ContainerEnd, ...] = ()


class PodRequest(Struct, frozen=True, gc=False, kw_only=True):
    """A request about a pod that was answered at `at`, in microseconds since 1970, and not about its deletion.

    `name` is "" if the log does not show it: the API server chooses that of a pod with a generateName. `message` is why
    it was refused, shortened. `status` is what was written as its status; None if the log does not show that.
    """

    at: int
    act: PodAct
    namespace: str
    name: str
    writer: Writer
    code: int = 200
    message: str = ""
    status: PodStatus | None = None


class Failure(Struct, frozen=True, gc=False, kw_only=True):
    """What a request was to do that failed; `resource` has its group, `namespace` is "" for no single one.

    `lacks_rights`: the answer says that its user may not do so.
    """

    verb: str
    resource: str
    namespace: str
    code: int
    lacks_rights: bool = False


class PodActivity(Struct, frozen=True, gc=False, kw_only=True):
    """A request that a pod made about anything but a lease, and that was answered, whatever the answer was.

    `received` and `at`, when it was answered, are in microseconds since 1970. `is_write`: it changed something, and is
    not what electors and clients write beside their work, such as Events; `may_be_write`: it may have been a dry run
    of a deletion. `failure` is what it was to do of its work, if that failed, or was refused, and `message` is the
    answer then, shortened.
    """

    received: int
    at: int
    writer: Writer
    is_write: bool
    may_be_write: bool = False
    failure: Failure | None = None
    message: str = ""
    program: str = ""
    """The name with which its user agent begins; "" if the log does not say it."""


class RelatedWrite(Struct, frozen=True, gc=False, kw_only=True):
    """A write to an object that leaders depend on, which was accepted at `at`, in microseconds since 1970.

    `namespace` is "" for an object of the whole cluster; `verb` is `created`, `updated`, `scaled` or `deleted`. Unless
    `is_surely_not_dry_run`, a deletion may have been a dry run: a log at level Metadata hides its options. `received`
    is when the request came, if the log says so. `change` is what it set of a workload, as a clause, if the log shows
    the request, and `switched_off` the container that it gave an argument which switches elections off. `program` is
    the name with which the writer's user agent begins. It `may_change_nothing` if it is a patch that the log does not
    show: who applies what is stored already changes nothing. `taints` are those of a Node after it, None if the log
    does not show them.
    """

    at: int
    kind: str
    namespace: str
    name: str
    verb: str
    writer: Writer
    is_surely_not_dry_run: bool = True
    received: int | None = None
    change: str = ""
    switched_off: str = ""
    program: str = ""
    may_change_nothing: bool = False
    taints: tuple[str, ...] | None = None


class ObjectAbsence(Struct, frozen=True, gc=False):
    """A pod or a node that was not there at `at`, in microseconds since 1970; `namespace` is "" of a node.

    A request did not find it when it came, or had created another one of that name when it was answered.
    """

    at: int
    kind: str
    namespace: str
    name: str


AboutInput = LogEnd | ClockSkew | RecordingGap | PodDeletion | PodRequest | PodActivity | RelatedWrite | ObjectAbsence
"""Items that are about no lease alone."""
Item = AboutInput | Observation | Unreadable | OtherObject | FenceReport


class Input(NamedTuple):
    """A file or standard input; `read` gives its items, for a file all of them at each call."""

    path: str
    read: Callable[[], Iterator[Item]]


def parse_number(text: str | None) -> int:
    """Return a resourceVersion or a term; 0 if it is not a number."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < _MAX_DIGITS else 0


def has_managed_fields(stored: Lease | LeaseCandidate) -> bool:
    """Return whether an object shows managedFields at all."""
    return bytes(memoryview(stored.metadata.managed_fields)[:1]) == b"["


def name_program(user_agent: str) -> str:
    """Return the name of a program from its user agent, which begins with that: `csi-resizer/v1.14.0 (linux/amd64)`."""
    name, _, _ = user_agent.strip().partition("/")
    return name.split(" ", 1)[0][:_MAX_PROGRAM]


def is_dated_by_stamp(entries: Sequence[Entry]) -> bool:
    """True if these are the entries of a lease that a `StampReader` read, and its stamp has a time."""
    return [(one.manager, one.stamp is None) for one in entries] == [(None, False)]
