"""Every kind of claim: what it means, and what an input must show before it is made.

"The end" is the moment at which the input is evaluated. "Live" is by the API servers' clocks: less than the lease's
duration, which its holder wrote, has passed since the last stored renewal. A process is a pod, by its uid, or a user
without a pod. All arguments are optional: a claim has those that are known.
"""

from typing import Final

from webhook.analysis.audit.leases import STORED_RULES
from webhook.analysis.audit.registry import FINDINGS, STATE
from webhook.analysis.claims.diagnosis import Cause
from webhook.findings import Kind, Problem, Severity

_SPAN: Final = ("identity", "from", "to")
_INTERVAL: Final = ("identity", "earliest", "latest")
_DATED: Final = "a write that the API server dates: by its log, or by a stamp that moved with that write"
_LOG: Final = "an audit log with the request"

_STATES: Final = (
    Kind("holder", "holderIdentity is `identity` at the end", STATE, ("identity",)),
    Kind(
        "held-since",
        "the latest write that put `identity` there, where another text or none had been, "
        "or one that had released the lease, is in [earliest, latest]",
        f"{_DATED}; of a list, only if one field manager wrote holderIdentity and acquireTime together",
        (*_INTERVAL, "by"),
    ),
    Kind(
        "last-renewed",
        "the latest stored write that moved renewTime while `identity` was in holderIdentity is in [earliest, latest]; "
        "if `by` is a process, it is that of this process",
        f"{_DATED}; without any, renewTime itself, and `how` is then `writer-clock`: what the writer claims",
        (*_INTERVAL, "by", "how"),
    ),
    Kind(
        "expires",
        "if nothing is written to the lease before `from`, it is not live from then on",
        "a dated renewal, and the duration",
        ("identity", "from"),
    ),
    FINDINGS["expired"],
    Kind(
        "free", "holderIdentity is empty, or its holder has released it, throughout [from, to]", STATE, ("from", "to")
    ),
    Kind("never-held", "holderIdentity was never set", "its creation, and every write since", ()),
    Kind("frozen", "electors do not take the lease from `identity` before `to`, or ever", STATE, ("identity", "to")),
    Kind(
        "does-not-exist",
        "no lease of this name exists at the end",
        "its deletion, and nothing stored after it",
        (),
    ),
    Kind(
        "renewal-interval",
        "half of the intervals between renewals, as far as they were seen, are `seconds` or less; the longest by one "
        "holder was `longest_seconds`",
        "three intervals",
        ("seconds", "longest_seconds"),
    ),
)

_SUCCESSION: Final = (
    Kind(
        "taken",
        "holderIdentity changed to `identity` (from `previous`) in [earliest, latest], "
        "or `previous` had released the lease and was still named. `how` says what came before. "
        "after-release: no one held the lease, because its holder had released it or been removed. "
        "after-expiry: it was not live. while-live: it was live. after-deletion: it was deleted and created again. "
        "created: it did not exist. first: it had never been held. unknown: nothing is said of that. "
        "At most `seconds` had passed since the holder before was removed (after-release) "
        "or last renewed it (after-expiry), between the answers if a log has both",
        "both states; `how` needs the renewal before and the change to be dated, further apart than the clocks differ; "
        "first needs its creation and every write since",
        (*_INTERVAL, "previous", "how", "by", "seconds"),
    ),
    Kind(
        "written-in",
        "`by` put `identity` into holderIdentity in [earliest, latest], and is not its process",
        f"{_LOG}, or a stamp that moved; of a field manager it is said that this is a field manager",
        (*_INTERVAL, "by"),
    ),
    Kind(
        "released",
        "`identity` was removed from holderIdentity, or the lease was shortened as a release, in [earliest, latest]; "
        "`how` is own, foreign or unknown: by the tenure's own process or not",
        "both states; own and foreign need the process on both sides",
        (*_INTERVAL, "by", "how"),
    ),
)

_PROCESSES: Final = (
    Kind(
        "second-writer",
        "`by`, which is not the process that took the lease as `identity`, "
        "renewed it `count` times or more in [from, to]; ongoing: within its last duration",
        "the writer of each renewal",
        ("identity", "by", "count", "from", "to"),
    ),
    Kind(
        "silent-together",
        "`count` processes or more, that of the holder among them, made their last requests for the lease "
        "in [from, to], and no process made one from then to `latest`, "
        "although an API server renewed its own lease or answered others; why is not said",
        "an audit log without holes that has reads, and an expired lease",
        ("count", "from", "to", "latest"),
    ),
)

_PODS: Final = (
    Kind(
        "holder-pod-deleted",
        "`by` asked for the deletion, or the eviction, of the pod of a process of `identity` at `to`, "
        "which was accepted; if `how` is unknown, it may have been a dry run",
        "the request in an audit log, and the pod of the holder",
        ("identity", "by", "to", "how"),
    ),
)

_RELATED: Final = (
    Kind(
        "related-write",
        "`by` created, updated, scaled or deleted `object` at `to`, though an update may change nothing; "
        "if `how` is unknown, it may have been a dry run. It is the account of a process "
        "that held the lease or asked for it, or the workload that its pod is named after, "
        "or the workload of a pod that reads a lease whose holder no API server chooses, "
        "or the pod of a holder, into which a container for debugging was put while it held the lease, "
        "or the Node of its lease, or an owner of it that was deleted within two minutes before Kubernetes deleted it, "
        "or it may have had something else stored than was asked for, "
        "or it may grant or refuse what was refused for the first time after it, "
        "or for the last time before it, within two minutes; whether it does is not said",
        "the request in an audit log",
        ("object", "by", "to", "how"),
    ),
)

_COORDINATED: Final = (
    Kind(
        "chosen",
        "an API server put `identity` into holderIdentity in [earliest, latest]; if `by` is a field manager: a writer "
        "with the field manager of API servers did",
        f"{_LOG} of an API server; a field manager is a hint",
        (*_INTERVAL, "by"),
    ),
    Kind(
        "candidates-not-served",
        "a request for LeaseCandidates was answered at `to` with 404, as by an API server "
        "that does not serve that version, and none of another version, or later, was answered otherwise",
        "the request in an audit log, and a lease with a strategy",
        ("to",),
    ),
    FINDINGS["not-taken-up"],
    FINDINGS["election-stalled"],
)

CAUSES: Final[dict[Cause, str]] = {
    Cause.STOPPED: "its process made no request for it: ended, paused, blocked, cut off, reconfigured, or limited",
    Cause.REFUSED_RIGHTS: "its requests were refused for lack of a right",
    Cause.REFUSED_CREDENTIALS: "its requests were refused because its credentials were not accepted",
    Cause.REFUSED_WEBHOOK: "its writes were refused by an admission webhook",
    Cause.REFUSED_POLICY: "its writes were refused by a policy of the API server",
    Cause.REFUSED_FIELDS: "it applied without force what another field manager owned, and the API server refused that",
    Cause.REFUSED_OTHER: "its writes were refused by the API server for another reason, such as an invalid object",
    Cause.FAILED: "its writes failed in the API server, or in a webhook that it called",
    Cause.THROTTLED: "the API server answered that there were too many requests",
    Cause.CONFLICT: "its writes conflicted with other writes",
    Cause.UNANSWERED: "the API server answered it, and it did not receive the answers, or not in time",
    Cause.API_SERVER: "the API server, or its etcd, was slow or away for all of its clients",
    Cause.NETWORK: "no client reached the API server",
    Cause.REWRITTEN: "its writes were stored with another holder or renewTime than they asked for",
    Cause.INTERVAL: "it renews less often than the lease lasts",
    Cause.NOT_RENEWING: "its process wrote the lease again and again, and left renewTime as it was",
    Cause.ASKED_TO_STEP_DOWN: "it was asked to step down in a coordinated election, and did",
    Cause.NOT_TAKEN_UP: "it was chosen in a coordinated election, and has not renewed since",
    Cause.POD_DELETED: "its pod was deleted or evicted, and its process ended with it, or lost its credentials",
    Cause.NOT_RUNNING: "it was written into the lease by another writer, and has not renewed since",
}
"""The causes of a silence, each with what it means."""

_INCIDENTS: Final = (
    Kind(
        "leader-lost",
        "`previous` did not renew after `from`, the lease was not live at `to`, "
        "or may not have been, if `how` is unknown, and then `identity` was put there",
        "writes on both sides that an API server dates",
        ("identity", "previous", "from", "to", "how", "seconds", "cause", "causes"),
        Problem("a leader lost its lease, and why", {Severity.WARNING: ""}),
    ),
    Kind(
        "renewal-late",
        "`identity` was the holder in [from, to] and no stored write of its process moved renewTime in between, "
        "for longer than most clients try; if `how` is `writer-clock`, these are the renewTimes of two renewals "
        "that followed each other, which is what their writers claim",
        "every write of that time, dated",
        (*_SPAN, "how", "cause", "causes"),
        Problem(
            "a leader nearly lost its lease, and why",
            {Severity.WARNING: "", Severity.INFO: "for a heartbeat that did not expire"},
        ),
    ),
    Kind(
        "lease-stolen",
        "`previous` was replaced by `identity` in [earliest, latest] while the lease was live; "
        "a warning: while it may have been",
        "both states, dated on both sides for an error",
        ("identity", "previous", "earliest", "latest", "by"),
        Problem(
            "a lease was taken from its holder, so two may have led at once",
            {
                Severity.ERROR: "",
                Severity.WARNING: (
                    "if it has no known time, one pod may have written both names, "
                    "no process of the name that was written in is known, "
                    "or a log of requests does not show what was stored"
                ),
            },
        ),
    ),
    Kind(
        "lease-contended",
        "`identity` and `previous` replaced each other `count` times or more in [from, to], each time while the lease "
        "was live; ongoing: the last of them holds it, and the next change would not be late by those before",
        "each of these writes, dated, by writers that are not known to be others than the holders",
        ("identity", "previous", "count", "from", "to"),
        Problem("two holders take the lease from each other again and again, so both may lead", {Severity.ERROR: ""}),
    ),
    Kind(
        "handed-over",
        "`by`, which is the process of `previous` or runs in its pod, replaced that by `identity` in [earliest, "
        "latest] while the lease was live",
        "the process of the holder, and the writer of the change",
        ("identity", "previous", "earliest", "latest", "by"),
        Problem("a holder, or its pod, wrote the next one into the lease, instead of a release", {Severity.INFO: ""}),
    ),
    Kind(
        "foreign-release",
        "`previous` was removed from holderIdentity in [earliest, latest] by a writer that is not its process; "
        "a warning, if the lease had expired by then",
        "the process on both sides",
        ("previous", "identity", "earliest", "latest", "by"),
        Problem(
            "a lease was released by someone else than its holder, so two may have led at once",
            {Severity.ERROR: "", Severity.WARNING: "if the lease had expired, or its holder had missed renewals"},
        ),
    ),
    Kind(
        "holder-removed",
        "`previous` was removed from holderIdentity in [earliest, latest] while the lease was live: "
        "at `earliest`, or between that and the removal; if `how` is unknown, nothing is said of that",
        "both states; without `how`, the removal dated",
        ("previous", "earliest", "latest", "by", "how"),
        Problem(
            "the holder was removed from a live lease, and the input does not show that it did so itself",
            {Severity.WARNING: ""},
        ),
    ),
    Kind(
        "lease-deleted",
        "the lease was deleted in [earliest, latest] while `previous` was its holder",
        "the deletion",
        ("previous", "identity", "earliest", "latest", "by"),
        Problem(
            "someone deleted a lease that was held",
            {
                Severity.ERROR: "",
                Severity.WARNING: "if no other replica took it, or its holder may have deleted it",
                Severity.INFO: "for a heartbeat",
            },
        ),
    ),
    Kind(
        "identity-shared",
        "two processes renewed the lease as `identity`; ongoing: both within its last duration",
        "the writers of renewals; a warning: two rhythms, or refused writes with that identity",
        ("identity", "by", "from", "to"),
        Problem(
            "two processes renew under one name",
            {Severity.ERROR: "", Severity.WARNING: "from a watch, which shows only the rhythm of the renewals"},
        ),
    ),
    Kind(
        "holder-replaced",
        "from a write in [earliest, latest] on, `by`, another pod of the holder's account, renewed it as `identity`",
        "the uids of two pods",
        ("identity", "by", "earliest", "latest"),
    ),
    FINDINGS["lease-shared"],
    Kind(
        "write-refused",
        "`count` writes of `by`, the last one at `to`, were answered with an error",
        _LOG,
        ("by", "code", "count", "from", "to"),
        Problem(
            "writes of a client were answered with an error",
            {Severity.WARNING: "", Severity.INFO: "if a later write of the same user was stored"},
        ),
    ),
    Kind(
        "read-refused",
        "`count` reads of `by`, the last one at `to`, were answered with an error, and it wrote nothing that was",
        _LOG,
        ("by", "code", "count", "from", "to"),
        Problem("reads of a client were answered with an error, and it could not take part", {Severity.WARNING: ""}),
    ),
    Kind(
        "write-fenced",
        "a fence refused `count` writes of `by` in [from, to]",
        _LOG,
        ("by", "count", "from", "to"),
        Problem("a fence refused writes of a holder that had lost its lease", {Severity.WARNING: ""}),
    ),
    Kind(
        "taken-late",
        "`identity` took the lease at `to`, and could have from `from` on; if `how` is silent, its process made no "
        "request for it in [earliest, latest]; asking: it made some; unknown: nothing is said of that",
        "two dated writes, later than followers need; `how` needs a log with reads and without holes",
        ("identity", "how", "from", "to", "earliest", "latest"),
        Problem("a process could have taken the lease earlier than it did", {Severity.WARNING: ""}),
    ),
    Kind(
        "no-candidate",
        "no process made a request for the lease in [from, to], or no other one than that of `identity`; "
        "if `how` is writes, none to write it",
        "an audit log without holes, and no one holds the lease, or it has expired; reads, if the log has some",
        ("identity", "how", "from", "to"),
    ),
    Kind(
        "stored-other-than-asked",
        "`count` writes or more in [from, to], the last one of `by`, asked for another `field` than was stored: "
        "the last one for `asked`, and `stored` was; a time counts if two seconds or more lie between; "
        "ongoing: the last one was stored so",
        "an audit log with the objects of requests, and those of answers or the patches of webhooks",
        ("field", "asked", "stored", "count", "by", "from", "to"),
        Problem(
            "a webhook or a policy changed what an elector wrote",
            {Severity.WARNING: "", Severity.ERROR: "for the holder", Severity.INFO: "for leaseTransitions"},
        ),
    ),
    Kind(
        "preferred-holder-foreign",
        "`by`, which is not an API server, set preferredHolder to `identity`, or cleared it, in [earliest, latest]",
        _LOG,
        ("identity", "earliest", "latest", "by"),
        Problem("someone else than an API server set or cleared `preferredHolder`", {Severity.WARNING: ""}),
    ),
    Kind(
        "clusters-mixed",
        "the input is of several clusters, or clocks of its API servers differ by more than five seconds",
        "uids that change back and forth, a log of writes to a lease after another one was created, or two logs of one "
        "time with writes that exclude each other",
        (),
        Problem(
            "a lease changes its UID back and forth, was written after another one of its name was created, or was "
            "written at once by API servers that share no etcd: the input is of several clusters, or clocks differ, "
            "and nothing else is said of it",
            {Severity.ERROR: ""},
        ),
    ),
)

# A finding of a stored object may also be a state, or follow from a history.
_ELSEWHERE: Final = {kind.id for kinds in (_STATES, _COORDINATED, _INCIDENTS) for kind in kinds}
_STORED: Final = tuple(kind for kind in FINDINGS.values() if kind.id not in _ELSEWHERE)

_RULES: Final = tuple(Kind(id_, f"the stored object breaks the rule `{id_}`", "the object", ()) for id_ in STORED_RULES)

SUBJECTS: Final[dict[str, tuple[Kind, ...]]] = {
    "The state at the end": _STATES,
    "Holders one after another": _SUCCESSION,
    "Processes": _PROCESSES,
    "Pods": _PODS,
    "Beside the lease": _RELATED,
    "Coordinated elections": _COORDINATED,
    "What went wrong": _INCIDENTS,
    "Stored objects": _STORED,
    "Rules that stored objects break": _RULES,
}
PROBLEMS: Final[dict[str, Problem]] = {
    kind.id: kind.problem for kinds in SUBJECTS.values() for kind in kinds if kind.problem
}
"""What is wrong, by the ids of findings; rules have their own."""
KINDS: Final[dict[str, Kind]] = {kind.id: kind for kinds in SUBJECTS.values() for kind in kinds}
FINDING_IDS: Final = tuple(id_ for id_ in KINDS if id_ in PROBLEMS or id_ in STORED_RULES)
"""The ids of claims that may be findings; the others say what is the case, and nothing is wrong with it."""
