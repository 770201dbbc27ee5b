"""Identity bindings: only what a person wrote down distinguishes a holder from an impostor."""

from collections.abc import Iterable
from typing import Final

from webhook.api.field import forbidden
from webhook.api.text import quote
from webhook.api.user import UserInfo
from webhook.rules.binding import POD, Binding
from webhook.rules.change import LeaseChange
from webhook.rules.events import Event
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.glob import holder_matches
from webhook.rules.mode import Mode
from webhook.rules.rule import ANY_OPERATION, LEASES, TOUCHED, Rule
from webhook.rules.statement import Statement
from webhook.rules.well_known import CLEANUP_CONTROLLERS

_FIELD: Final = "spec.holderIdentity"
_ASK: Final = "ask the operators of lease-webhook"


def bound_lease_is_written_by_its_writers(change: LeaseChange) -> Iterable[Finding]:
    """A lease that the policy binds may be written only by a bound writer, under a holder identity that matches.

    An empty new holder matches, so that a bound writer may release. On DELETE, and on an UPDATE that removes the last
    finalizer of a deleted lease, only the writer counts, and the garbage collector and the namespace controller are
    exempt. Writes that do not change spec are not evaluated.
    """
    binding = change.binding
    if binding is None:
        return NOTHING
    user = change.user
    deleted = change.event is Event.DELETE
    if deleted and user.username in CLEANUP_CONTROLLERS:
        return NOTHING
    if not binding.lists(user):
        detail = (
            "only the writers bound in the webhook's policy may write this lease, and "
            f"{quote(user.username)} is not one of them; {_ASK}"
        )
        what = "deleted" if deleted else "wrote"
        lease = f"{change.request.namespace}/{change.request.name}"
        happened = Statement(
            f"{{0}} {what} lease {{1}}, which the policy binds to other writers", (user.username, lease)
        )
        return (Finding(forbidden(_FIELD, detail), happened=happened),)
    if deleted or not change.new_holder:
        return NOTHING
    return _holder_findings(change.new_holder, user, binding)


def _holder_findings(holder: str, user: UserInfo, binding: Binding) -> Iterable[Finding]:
    pod = user.pod_name
    if any(holder_matches(template, holder, pod) for template in binding.holders):
        return NOTHING
    templates = ", ".join(quote(template) for template in binding.holders)
    if pod or not any(POD in template for template in binding.holders):
        detail = f"the holder of this lease must match the binding {templates}, and {quote(holder)} does not; {_ASK}"
        happened = Statement("holder {0} does not match the binding {1} of this lease", (holder, binding.holders[0]))
        return (Finding(forbidden(_FIELD, detail), happened=happened),)
    detail = (
        f"{quote(user.username)} does not write from a pod, so its holder name cannot be checked "
        f"(binding {templates}); write from a pod, or {_ASK}"
    )
    happened = Statement(
        "{0} does not write from a pod, so its holder name cannot be checked (binding {1})",
        (user.username, next(template for template in binding.holders if POD in template)),
    )
    tier = Mode.DENY if binding.require_pod else Mode.WARN
    return (Finding(forbidden(_FIELD, detail), tier=tier, happened=happened),)


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
