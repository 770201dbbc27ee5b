"""The webhook's own rules, on stored objects: those that need no second state to compare with."""

from collections.abc import Iterator
from typing import Final

from webhook.api.request import GROUP, AdmissionRequest, Operation, Resource
from webhook.audit.finding import Finding
from webhook.audit.subject import Subject
from webhook.reports.model import Severity
from webhook.rules.change import change_made_by
from webhook.rules.mode import Mode
from webhook.rules.registry import RULES
from webhook.rules.rule import Rule

_ABOUT_ONE_STATE: Final = frozenset(
    {
        "candidate-renew-time-in-future",
        "duration-too-long",
        "holder-identity-shape",
        "renew-time-in-future",
        "time-unreadable",
        "transitions-jump",
    }
)
_ABOUT_REQUESTS: Final = frozenset({"request-options"})

STORED_RULES: Final[dict[str, Rule]] = {
    id_: rule
    for id_, rule in RULES.items()
    if Operation.CREATE in rule.operations and id_ not in _ABOUT_REQUESTS and (rule.parity or id_ in _ABOUT_ONE_STATE)
}
"""Rules that a stored object alone can break."""

OWN_CHECKS: Final = frozenset({"renewal-stamp-tampered", "lease-without-stamps"})
"""Rules about two states, some violations of which are still visible in a stored object."""

NOT_APPLICABLE: Final = tuple(sorted(RULES.keys() - STORED_RULES.keys() - OWN_CHECKS))
"""Rules that compare two states, or are about the writer: no stored object can break them."""

_BY_RESOURCE: Final = {
    resource.value: tuple(rule for rule in STORED_RULES.values() if resource in rule.resources) for resource in Resource
}
_REPAIR_OF_FIELDS: Final = (
    "correct it in the manifest or the client that writes it; a current API server refuses the value"
)
_REPAIRS: Final = {
    "duration-too-long": '{kubectl} patch lease {name} --type=merge -p \'{"spec":{"leaseDurationSeconds":15}}\'',
    "renew-time-in-future": "set the clock of the holder's node; update a client that writes local time as UTC",
    "candidate-renew-time-in-future": "set the clock of the candidate's node",
    "holder-identity-shape": "give the elector a short identity of printable characters, such as the pod's name",
    "time-unreadable": "write the field again with a time up to the year 9999, with `kubectl replace`",
    "transitions-jump": '{kubectl} patch lease {name} --type=merge -p \'{"spec":{"leaseTransitions":0}}\'',
}


def broken_rules(subject: Subject) -> Iterator[Finding]:
    """What the rules find in a stored object, evaluated as if it were being created."""
    resource = f"{subject.kind.lower()}s"
    request = AdmissionRequest(
        uid="stored",
        operation=Operation.CREATE,
        resource=resource,
        kind=subject.kind,
        version=(subject.object.api_version or "").partition("/")[2],
        group=GROUP,
        namespace=subject.namespace,
        name=subject.name,
        new=subject.object,
        body=b"{}",
    )
    change = change_made_by(request, subject.now)
    frozen = subject.standing.frozen if subject.standing else None
    knows_clock = subject.standing is not None and subject.standing.ahead is not None
    for rule in _BY_RESOURCE[resource]:
        if frozen and frozen.rule == rule.id:
            continue
        if rule.id == "renew-time-in-future" and knows_clock:
            continue  # the check holder-clock reports it, measured by the API server's clock
        for found in rule.check(change):
            severity = Severity.ERROR if found.tier is Mode.DENY else Severity.WARNING
            repair = _REPAIRS.get(rule.id, _REPAIR_OF_FIELDS)
            yield subject.finding(rule.id, severity, str(found.error), repair)
