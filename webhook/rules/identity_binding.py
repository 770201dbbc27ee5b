"""Identity bindings: the one thing that tells a holder from an impostor, because a person wrote it down."""

from collections.abc import Iterable
from typing import Final

from webhook.api.field import forbidden
from webhook.api.request import Operation
from webhook.api.text import quote
from webhook.api.verdict import Mode
from webhook.rules.binding import POD, Binding
from webhook.rules.change import LeaseChange
from webhook.rules.deletion import CLEANERS
from webhook.rules.glob import holder_matches
from webhook.rules.rule import ANY_OPERATION, LEASES, NOTHING, TOUCHED, Finding, Rule

_FIELD: Final = "spec.holderIdentity"


def bound_lease_is_written_by_its_writers(change: LeaseChange) -> Iterable[Finding]:
    """A lease that the policy binds may be written only by a bound writer, under a holder identity that fits.

    An empty new holder fits, so that a bound writer may release. On DELETE only the writer counts, and the garbage
    collector and the namespace controller are free. Writes that leave spec alone are free.
    """
    binding = change.binding
    if binding is None:
        return NOTHING
    user = change.user
    deleted = change.request.operation is Operation.DELETE
    if deleted and user.username in CLEANERS:
        return NOTHING
    if not binding.lists(user):
        detail = (
            f"the policy binds this lease to other writers than {quote(user.username)}; "
            "add it to the binding if it belongs there"
        )
        return (Finding(forbidden(_FIELD, detail)),)
    if deleted or not change.new_holder:
        return NOTHING
    return _holder_findings(change.new_holder, user.pod_name, binding)


def _holder_findings(holder: str, pod: str, binding: Binding) -> Iterable[Finding]:
    if any(holder_matches(template, holder, pod) for template in binding.holders):
        return NOTHING
    templates = ", ".join(quote(template) for template in binding.holders)
    if pod or not any(POD in template for template in binding.holders):
        return (
            Finding(
                forbidden(
                    _FIELD, f"the policy binds holders of this lease to {templates}, and {quote(holder)} does not fit"
                )
            ),
        )
    detail = f"the policy binds holders of this lease to {templates}, and the writer's token names no pod"
    return (Finding(forbidden(_FIELD, detail), tier=Mode.DENY if binding.require_pod else Mode.WARN),)


RULES = (
    Rule(
        id="identity-binding",
        check=bound_lease_is_written_by_its_writers,
        resources=LEASES,
        operations=ANY_OPERATION,
        events=TOUCHED,
        about_writer=True,
        source="ours: a holder identity is free text; only an explicit binding may deny a renewal",
    ),
)
