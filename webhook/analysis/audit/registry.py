"""Every finding about stored objects: when such a claim is true, how severe it is, what it means, and how to fix it.

The rules that a stored object alone can break have theirs in `stored`, and what a history shows is in
`webhook/analysis/claims/registry.py`.
"""

from collections.abc import Mapping
from typing import Final

from webhook.analysis.audit.repairs import CLEAR_PREFERRED_HOLDER, EMPTY_STAMPS, STAMP
from webhook.findings import Kind, ObjectName, Problem, ReportFinding, Severity
from webhook.text.commands import fill_in

STATE: Final = "any state of the lease"
OUTAGE: Final = 30
"""Seconds that an election should survive."""

FINDINGS: Final[Mapping[str, Kind]] = {
    kind.id: kind
    for kind in (
        Kind(
            "expired",
            "it names `identity` and is not live, throughout [from, to]; if `how` is `writer-clock`, by renewTime "
            "alone, which is what its writer claims",
            STATE,
            ("identity", "from", "to", "how"),
            Problem("held and no longer renewed", {Severity.WARNING: "", Severity.INFO: "for an API server's lease"}),
        ),
        Kind(
            "not-taken-up",
            "an API server chose `identity`, at `from` if that is given, and no process of it has renewed the lease "
            "since, by `to` if that is given, else by the end",
            "a state with a strategy, or the writes from `from` to `to`",
            ("identity", "from", "to"),
            Problem(
                "an API server chose the holder, which has not renewed the lease since",
                {Severity.WARNING: ""},
                fix="{kubectl} get leasecandidates,pods",
            ),
        ),
        Kind(
            "election-stalled",
            "a holder was asked to step down, does not renew any more, preferredHolder is still set, "
            "and no candidate has taken the lease by the end; if `how` is `writer-clock`, "
            "it is not live by renewTime alone, which is what its writer claims",
            "a state with a strategy, a preferredHolder and a lease that is not live",
            ("identity", "previous", "from", "how"),
            Problem(
                "a holder was asked to step down for another candidate, which has not taken the lease",
                {Severity.ERROR: ""},
                fix=CLEAR_PREFERRED_HOLDER,
            ),
        ),
        Kind(
            "lease-shared",
            "several users or programs have written this lease",
            "their names",
            ("identities",),
            Problem(
                "several programs, or service accounts, use one lease",
                {Severity.WARNING: "", Severity.INFO: "if it was long ago, or may be one application"},
                fix="if they are two applications, give each a lease name of its own, "
                "unless one is meant to wait for the other",
            ),
        ),
        Kind(
            "heartbeat-silent",
            "the lease is a heartbeat by its shape, and was not renewed for its duration or longer at the end",
            STATE,
            (),
            Problem(
                "a [heartbeat](alerts.md), which is not an election, is no longer renewed; its owner, if it has one, "
                "is named",
                {Severity.INFO: ""},
                fix="find out whether what the lease is named after still runs: no one else would ever take this lease",
            ),
        ),
        Kind(
            "abandoned",
            "the lease was not live for a day or more at the end",
            STATE,
            ("identity",),
            Problem(
                "held, and not renewed for a day or more",
                {Severity.WARNING: ""},
                fix="if its program is gone for good: {kubectl} delete lease {name}",
            ),
        ),
        Kind(
            "holder-clock",
            "renewTime, as it was written last or shortly before, is more than two seconds from the API server's time "
            "that is stored with it: its writer's clock is off, or, if it is behind, the request took as long",
            "two writes that agree, or one state",
            ("seconds",),
            Problem(
                "the holder's clock is off",
                {
                    Severity.WARNING: "above one duration, or a minute if that is less",
                    Severity.INFO: "above 2 s",
                },
                fix="set the clock of the holder's node (NTP); if other holders are off by as much, the API server's",
            ),
        ),
        Kind(
            "acquire-time-foreign",
            "the stored holderIdentity and acquireTime are of different writes, or managedFields were written by hand",
            STATE,
            (),
            Problem(
                "the holder and `acquireTime` were written by different field managers, so `acquireTime` is not when "
                "the holder took the lease, or was changed since: every elector that was [tried](electors.md) writes "
                "both at once, except in a coordinated election, where the API server writes the holder",
                {Severity.INFO: ""},
                fix="{kubectl} get lease {name} --show-managed-fields -o yaml",
            ),
        ),
        Kind(
            "timing-tight",
            "one missed renewal, or an outage of 30 s, ends the tenure",
            "the duration, and the interval",
            (),
            Problem(
                "a short outage costs the leader its lease",
                {
                    Severity.INFO: "",
                    Severity.WARNING: "for a duration below 10 s, or if one missed renewal ends the lease",
                },
                # Derived as OpenShift's: three retries in the outage, a fourth within the deadline, 30 s more for
                # skewed clocks.
                fix=f"for an outage of {OUTAGE} s set duration/deadline/retry to 73/43/10 s; a holder that dies is "
                "then followed after 73 s",
            ),
        ),
        Kind(
            "lease-without-stamps",
            "the stored lease has no time of the API server for its last renewal",
            STATE,
            (),
            Problem(
                "the API server has no record of the last renewal",
                {Severity.WARNING: "", Severity.INFO: "if its stamps count only with `--policy`"},
                fix=STAMP,
            ),
        ),
        Kind(
            "stamp-missing",
            "the stored lease has no dated stamp in a namespace where the policy file says that writers are stamped",
            STATE,
            (),
            Problem(
                "held and not stamped, in a namespace that the policy of `--policy` "
                "lists under `stamps` ([stamps](stamp.md))",
                {Severity.WARNING: ""},
                fix="lease-webhook doctor --policy FILE   # whether the policies that stamp are there; docs/stamp.md",
            ),
        ),
        Kind(
            "renewal-stamp-tampered",
            "managedFields have what no API server writes, or are dated after the end",
            STATE,
            (),
            Problem(
                "`managedFields` were written by hand",
                {Severity.ERROR: ""},
                fix=EMPTY_STAMPS + STAMP,
            ),
        ),
        Kind(
            "node-gone",
            "no node of this name exists",
            "all nodes",
            (),
            Problem(
                "the node of a heartbeat no longer exists",
                {Severity.WARNING: ""},
                fix="{kubectl} delete lease {name}",
            ),
        ),
        Kind(
            "holder-gone",
            "no pod of this name exists",
            "all pods of the namespace",
            (),
            Problem(
                "the holder's pod no longer exists",
                {Severity.WARNING: "", Severity.INFO: "while the lease is live"},
                fix="{kubectl} get pods",
            ),
        ),
        Kind(
            "candidate-strategy-conflict",
            "no strategy is the one that the LeaseCandidates of the lease, "
            "which renewed in the last 30 minutes, agree on",
            "all candidates of the lease",
            (),
            Problem(
                "the LeaseCandidates of a lease want strategies that exclude each other, so the API server elects no "
                "leader until one of them is changed ([fields](fields.md#the-spec-of-a-leasecandidate))",
                {Severity.ERROR: ""},
            ),
        ),
        Kind(
            "object-types",
            "the object has a field of a wrong type",
            "the object",
            (),
            Problem(
                "a current API server refuses the object",
                {Severity.ERROR: ""},
                fix="correct the type in the manifest; an API server refuses the object",
            ),
        ),
        Kind(
            "token-ahead",
            "the object has the token of a term that never was",
            "the object and the stamped lease",
            (),
            Problem(
                "the token of an object is greater than any term could be when it was written, so its leader cannot "
                "write it (`--fence`)",
                {Severity.ERROR: ""},
            ),
        ),
        Kind(
            "token-old",
            "the object has the token of an earlier term",
            "the object and the stamped lease",
            (),
            Problem(
                "an object has an older token of a [fence](fence.md#find-what-was-left) than the term of its lease, "
                "and was written after that term began (`--fence`)",
                {
                    Severity.WARNING: "",
                    Severity.INFO: "if managedFields do not say when, or the leader may have written it",
                },
            ),
        ),
    )
}


def report_problem(
    check: str,
    message: str,
    subject: ObjectName,
    *,
    severity: Severity | None = None,
    fix: str = "",
    source: str = "",
    identity: str = "",
) -> ReportFinding:
    """Return a finding of the registry, with its usual severity and fix unless others are given.

    The names of the object are filled into the fix, see `fill_in`.
    """
    problem = FINDINGS[check].problem
    assert problem is not None
    command = fill_in(fix or problem.fix, subject.namespace, subject.name)
    return ReportFinding(check, severity or problem.severity, message, command, source, subject, identity)
