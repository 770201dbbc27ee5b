"""What to do next: one or two sentences, with the command."""

from collections.abc import Sequence

from webhook.api.text import escape
from webhook.audit.finding import Finding
from webhook.audit.holding import pod_of
from webhook.explanation.cause import Blame, Cause
from webhook.explanation.incidents import repair_for
from webhook.explanation.words import name
from webhook.history.lease_history import LeaseHistory
from webhook.history.standing import Standing, State
from webhook.reports.model import Severity


def advice(
    history: LeaseHistory,
    standing: Standing | None,
    state: State,
    findings: Sequence[Finding],
    cause: Cause | None,
    *,
    has_pod: bool | None,
) -> str:
    """What somebody on call should do about a lease."""
    where = f"kubectl -n {history.namespace}"
    if history.is_deleted:
        return f"The lease was deleted; a program that still runs creates it again: {where} get lease {history.name} -w"
    if standing is None:
        return (
            f"Only its writes were seen, not the lease: {where} get lease {history.name} -o yaml --show-managed-fields"
        )
    if state is State.FROZEN and standing.frozen:
        repair = standing.frozen.repair.format(namespace=history.namespace, name=history.name)
        return f"Repair it, or nobody can follow the holder: {repair}"
    worst = findings[0] if findings and findings[0].severity is Severity.ERROR else None
    if worst is not None:
        return f"{_sentence(worst.message)} Next: {worst.repair}"
    if state is State.EXPIRED:
        return _expired(history, standing, cause, has_pod=has_pod)
    if state in {State.RELEASED, State.NEVER_HELD}:
        asks = "" if history.readers else "; if none runs, nobody will take it"
        return f"Nobody leads, and any replica may take the lease at once{asks}: {where} get pods"
    lost = next((one for one in findings if one.check in {"leader-lost", "renewal-late"}), None)
    if lost is not None:
        return f"It is held now. What happened before: {lost.repair}"
    if state is State.UNKNOWN:
        return f"The lease does not say how long it lasts, so its own client decides: {where} logs {_pod(standing)}"
    wrong = next((one for one in findings if one.severity is Severity.WARNING), None)
    if wrong is not None:
        return f"It is held and renewed, but: {wrong.message}. Next: {wrong.repair}"
    return "Nothing: the lease is held and renewed."


def _expired(history: LeaseHistory, standing: Standing, cause: Cause | None, *, has_pod: bool | None) -> str:
    where, holder = f"kubectl -n {history.namespace}", name(standing.holder)
    if has_pod is False:
        return f"The pod of {holder} is gone, and no other replica took the lease: {where} get pods,deployments"
    if cause is not None and cause.blame is Blame.SERVER:
        return f"Look at the API server before the program: {repair_for(cause, history, standing.holder)}"
    return (
        f"Look whether {holder} still runs and why no other replica takes over: {where} get pods; "
        f"{where} logs {_pod(standing)} --previous"
    )


def _pod(standing: Standing) -> str:
    return escape(pod_of(standing.holder))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
