"""Why renewals failed to come: where to look, the evidence, and the causes that the input leaves."""

from enum import StrEnum

from msgspec import Struct

from webhook.analysis.claims.words import describe_by_writer, describe_user, format_clock, format_name
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.inputs.items import RelatedWrite, Writer


class Blame(StrEnum):
    """The part of the system to examine for the cause."""

    SERVER = "api-server"
    NETWORK = "network"
    """A path that all clients share: a load balancer, or the network before the API server."""
    CLIENT = "client"
    CONFLICT = "conflict"
    THROTTLED = "throttled"
    """The API server answered that there were too many requests: its priority and fairness."""
    COORDINATED = "coordinated"
    """It was asked to step down."""
    REWRITTEN = "rewritten"
    """A mutating webhook or policy changed the holder or renewTime of its writes."""
    POD = "pod"
    """Its pod was deleted, or evicted."""
    REFUSED = "refused"
    """The API server, or a webhook or policy in it, refused the renewals."""
    UNKNOWN = "unknown"


class Cause(StrEnum):
    """The possible reasons why a holder did not renew; `webhook.analysis.claims.registry` says what each means."""

    STOPPED = "stopped"
    REFUSED_RIGHTS = "refused-rights"
    REFUSED_CREDENTIALS = "refused-credentials"
    REFUSED_WEBHOOK = "refused-webhook"
    REFUSED_POLICY = "refused-policy"
    REFUSED_FIELDS = "refused-fields"
    REFUSED_OTHER = "refused-other"
    FAILED = "failed"
    THROTTLED = "throttled"
    CONFLICT = "conflict"
    UNANSWERED = "unanswered"
    API_SERVER = "api-server"
    NETWORK = "network"
    REWRITTEN = "rewritten"
    INTERVAL = "interval"
    NOT_RENEWING = "not-renewing"
    ASKED_TO_STEP_DOWN = "asked-to-step-down"
    NOT_TAKEN_UP = "not-taken-up"
    POD_DELETED = "pod-deleted"
    NOT_RUNNING = "not-running"


class RemovedWebhook(Struct, frozen=True):
    """A configuration that was deleted; `creator` had created it before the failures, None if the log lacks that."""

    kind: str
    name: str
    creator: Writer | None = None

    @property
    def text(self) -> str:
        """`ValidatingWebhookConfiguration guard`."""
        return f"{self.kind} {format_name(self.name)}"

    @property
    def who_installs(self) -> str:
        """`alice, who had created it, installs it`, or that it is installed, if the log does not show by whom."""
        return f"{describe_user(self.creator)}, who had created it, installs it" if self.creator else "it is installed"


class ReplacedAccount(Struct, frozen=True):
    """An account, by the write that deleted it; `is_back`: it was created again."""

    deletion: RelatedWrite
    is_back: bool

    def describe(self, now: int) -> str:
        """`ServiceAccount shop/db was deleted at 12:00:00Z by alice and created again`, and what follows from that."""
        write = self.deletion
        name = f"{write.kind} {format_name(write.namespace)}/{format_name(write.name)}"
        again = " and created again" if self.is_back else ""
        when = format_clock(write.at, now)
        what = f"{name} was deleted at {when}{describe_by_writer(write.writer)}{again}"
        return f"{what}: tokens issued before that are not accepted"


class Diagnosis(Struct, frozen=True):
    """Where to look, and the evidence as a clause of a sentence; `refusal` is the last one if the writes were refused.

    `possible_causes` are those that the input leaves, of those that the registry of claims lists: one if it excludes
    the others. `is_silent` is set if an audit log shows that no request of the holder was received.
    """

    blame: Blame
    evidence: str
    possible_causes: tuple[Cause, ...]
    refusal: Refusal | None = None
    is_silent: bool = False
    requests: int = 0
    """How many requests of its pod a log shows while it was silent."""
    other_name: str = ""
    """The name for which its pod asked in writes that were not stored, if that is another one: a new process."""
    is_alive: bool = False
    """True if its process renewed another lease meanwhile."""
    may_be_stored: bool = False
    """True if writes that failed were stored all the same, or may have been."""

    deletion: str = ""
    """How its pod was deleted, as a clause, if its token was not accepted after that."""
    token_node: str = ""
    """The node to whose Node its token is bound, and to no pod, if its requests were not accepted."""
    others: str = ""
    """Other requests of its pod that were answered meanwhile, as a clause, if a log shows some."""
    has_gone_on: bool = False
    """True if these leave no long time without one: its pod ran and was connected."""
    runs_on: bool = False
    """True if it has asked for other things until the end, and for the lease no more since its last renewal."""
    is_end_shown: bool = False
    """True if a kubelet wrote meanwhile that its pod, or a container of it, had ended."""
    is_asked_since_end: bool = False
    """True if all requests of its pod came after that: a process that starts waits until the lease expires."""
    is_asked_since_status: bool = False
    """True if they came after a kubelet had written the status of the pod, which does not show why, and did again."""
    is_shared: bool = False
    """True if most other leases paused at the same time, and went on: it need not be its own process."""
    has_lost_heartbeats: bool = False
    """True if heartbeats of nodes or API servers stopped with it, and others went on: a part of the cluster."""
    has_ended_log: bool = False
    """True if the log of one of several API servers ends in that time."""
    is_heard_in_ended_log_only: bool = False
    """True if that log has every request of its process for the lease: it may know no other API server."""
    silent_log: str = ""
    """The name of the log of its API server, if that answered nobody about a lease for most of that time."""
    is_alone_in_silent_log: bool = False
    """True if no other lease was renewed there before, so that nothing but the holder's silence shows that of it."""
    silent_node: str = ""
    """The node of its pod, as its token says, if the lease of that was not renewed for most of that time either."""
    named_node: str = ""
    """The node whose name is the holder, if the lease of that was not renewed for most of that time either."""
    gone: str = ""
    """A clause about the deletion of its pod, if a log shows that it is gone by now; else ""."""
    has_late_server: bool = False
    """True if the lease of an API server was late as well, and no other."""
    has_other_writers: bool = False
    """True if others wrote the lease again and again, and whether its updates conflicted is not known."""
    is_older_than_request: bool = False
    """True if it had not renewed for a while when it was asked to step down."""
    is_server_restarted: bool = False
    """True if an API server, which the holder may have used, had gone then, and came again."""
    waits_for_etcd: bool = False
    """True if reads of the lease failed because etcd did not answer the API server, as that says."""
    has_failed_reads: bool = False
    """True if reads of the lease by others failed as well, which no admission webhook sees."""
    status_written: tuple[int, ...] = ()
    """The times at which a kubelet wrote the status of its pod: when it fell silent, and when it asked again."""
    active_at: int | None = None
    """When its pod asked for something else between these two: it need not have ended at the first."""
    replaced_account: ReplacedAccount | None = None
    """Its account, if that was deleted just before its credentials were no longer accepted."""
    removed_webhook: RemovedWebhook | None = None
    """The configuration with whose deletion failures to call a webhook ended; None if that is not known."""

    @property
    def is_of_its_writes(self) -> bool:
        """Whether writes of this lease failed, and not the API server as a whole; they may have been limited too."""
        return Cause.FAILED in self.possible_causes and Cause.API_SERVER not in self.possible_causes
