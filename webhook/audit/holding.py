"""Leases that no one can take, that no one renews, or whose timings are tight."""

import re
from collections.abc import Iterator
from typing import Final

from webhook.api.micro_time import canonical_seconds
from webhook.api.text import cut, quote
from webhook.audit.finding import Finding
from webhook.audit.subject import Subject
from webhook.history.standing import State
from webhook.history.timing import DEFAULT_DURATION, proposal_for, timing_of
from webhook.reports.model import Severity
from webhook.rules.times import DAY, span

_POD: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
COSTLY: Final = 3600
"""Writes an hour from which on a lease is reported; client-go's default causes 1800."""
TIGHTEST: Final = 10
"""Seconds of duration: no default of a known client is shorter."""
_OUTAGE: Final = 30
_POD_OF_DEPLOYMENT: Final = re.compile(
    r"[a-z0-9.-]+-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}"
)
"""Kubernetes makes such names of an alphabet without vowels. Source: apimachinery `pkg/util/rand/rand.go`."""


def frozen(subject: Subject) -> Iterator[Finding]:
    """A lease that no one else can take, for a year or more."""
    why = subject.stands.frozen
    if why is None:
        return
    until = "until it is repaired" if why.until is None else f"until {canonical_seconds(why.until)}"
    message = f"no one else can take this lease {until}: {why.reason}"
    yield subject.finding(why.rule, Severity.ERROR, message, why.repair)


def expired(subject: Subject) -> Iterator[Finding]:
    """A lease whose holder no longer renews it."""
    standing = subject.stands
    if standing.state is not State.EXPIRED or standing.last_renewal is None:
        return
    ago = subject.now - standing.last_renewal
    holder = quote(cut(standing.holder, 80))
    seen = f"last renewed {canonical_seconds(standing.last_renewal)}, {span(ago)} ago, for {standing.duration or 0} s"
    if subject.is_apiserver_identity:
        message = f"API server {holder} no longer runs: {seen}; another API server removes the lease within an hour"
        yield subject.finding("expired", Severity.INFO, message, "{kubectl} get lease {name} # in an hour")
    elif subject.is_heartbeat:
        message = f"node {holder} no longer reports: {seen}"
        yield subject.finding("expired", Severity.WARNING, message, "kubectl describe node {name}")
    elif ago >= DAY:
        message = f"no one has led for a day or more: {holder} holds it, {seen}"
        repair = "if its program is gone for good: {kubectl} delete lease {name}"
        yield subject.finding("abandoned", Severity.WARNING, message, repair)
    else:
        message = f"no one leads: {holder} holds the lease and no longer renews it; {seen}"
        repair = f"{{kubectl}} get pods; {{kubectl}} logs {pod_of(standing.holder) or 'POD'} --previous"
        yield subject.finding("expired", Severity.WARNING, message, repair)


def pod_of(holder: str) -> str:
    """The pod that a holder names, as client-go and most others build identities: host name, `_`, something unique.

    It goes into commands, and anyone may have written the holder: "" if it is no name of a pod.
    """
    name = holder.rpartition("_")[0] or holder
    return name if _POD.fullmatch(name) else ""


def names_a_pod(holder: str) -> bool:
    """Whether a holder has the name of an elector in a pod: a host name and an underscore, or a Deployment's pod."""
    return "_" in holder or _POD_OF_DEPLOYMENT.fullmatch(holder) is not None


def timing(subject: Subject) -> Iterator[Finding]:
    """An elector that a short outage of the API server, or one missed renewal, ends; or that writes too often."""
    standing, interval = subject.stands, subject.interval
    is_election = not subject.is_heartbeat and not subject.lease.strategy
    if standing.state is not State.LIVE or not standing.duration or standing.duration <= 1:
        return
    found = timing_of(standing.duration, interval)
    proposal = proposal_for(_OUTAGE)
    numbers = f"{proposal.duration}/{proposal.deadline}/{proposal.retry} s"
    repair = f"for an outage of {_OUTAGE} s set duration/deadline/retry to {numbers}"
    if interval is not None and found.missed_renewals < 1:
        message = f"it is renewed every {interval:.1f} s and lasts {standing.duration} s: one missed renewal ends it"
        yield subject.finding("timing-tight", Severity.WARNING, message, repair)
    elif is_election and standing.duration < DEFAULT_DURATION:
        severity = Severity.WARNING if standing.duration < TIGHTEST else Severity.INFO
        message = (
            f"it lasts {standing.duration} s: an API server that is away for more than {found.survives:.0f} s costs "
            "the leader its lease"
        )
        yield subject.finding("timing-tight", severity, message, repair)
    elif is_election and found.survives < _OUTAGE:
        assumed = "" if found.is_seen else f", if it is renewed every {found.retry:.0f} s"
        message = f"an API server that is away for more than {found.survives:.0f} s costs the leader its lease{assumed}"
        yield subject.finding("timing-tight", Severity.INFO, message, repair)
    if interval is not None and found.writes_per_hour >= COSTLY:
        message = f"it is written {found.writes_per_hour:.0f} times an hour"
        repair = f"raise the retry period; {standing.duration / 4:.0f} s still renews four times within a duration"
        yield subject.finding("renewals-costly", Severity.INFO, message, repair)
