"""What to do next: one or two sentences, with the command."""

from collections.abc import Sequence

from msgspec import Struct

from webhook.api.text import escape
from webhook.audit.finding import Finding
from webhook.audit.holding import pod_of
from webhook.explanation.cause import Blame, Cause
from webhook.explanation.incidents import repair_for
from webhook.explanation.words import name
from webhook.history.lease_history import LeaseHistory
from webhook.history.standing import Standing, State
from webhook.reports.model import Severity


class Advice(Struct, frozen=True):
    """What to do, as one or two sentences, and the command to run; it may be empty."""

    sentence: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.sentence} {self.command}".rstrip()


def advice(
    history: LeaseHistory,
    standing: Standing | None,
    state: State,
    findings: Sequence[Finding],
    cause: Cause | None,
    *,
    has_pod: bool | None,
) -> Advice:
    """What a person on call should do about a lease."""
    where = f"kubectl -n {history.namespace}"
    if history.is_deleted:
        sentence = "The lease was deleted; a program that still runs creates it again:"
        return Advice(sentence, f"{where} get lease {history.name} --watch")
    if standing is None:
        sentence = "Only its writes were seen, not the lease:"
        return Advice(sentence, f"{where} get lease {history.name} -o yaml --show-managed-fields")
    if state is State.FROZEN and standing.frozen:
        repair = standing.frozen.repair.format(namespace=history.namespace, name=history.name)
        return Advice("Repair it, or no other replica can follow the holder:", repair)
    worst = findings[0] if findings and findings[0].severity is Severity.ERROR else None
    if worst is not None:
        return Advice(_sentence(worst.message), worst.repair)
    if state is State.EXPIRED:
        return _expired(history, standing, cause, has_pod=has_pod)
    if state in {State.RELEASED, State.NEVER_HELD}:
        asks = "" if history.readers else "; if none runs, the lease stays free"
        return Advice(f"Any replica may take the lease at once{asks}:", f"{where} get pods")
    lost = next((one for one in findings if one.check in {"leader-lost", "renewal-late"}), None)
    if lost is not None:
        return Advice("The lease is held now. To see what happened before:", lost.repair)
    if state is State.UNKNOWN:
        sentence = "The lease does not say how long it lasts, so its own client decides:"
        return Advice(sentence, f"{where} logs {_pod(standing)}")
    wrong = next((one for one in findings if one.severity is Severity.WARNING), None)
    if wrong is not None:
        return Advice(f"The lease is held and renewed, but: {wrong.message}.", wrong.repair)
    return Advice("Nothing: the lease is held and renewed.")


def _expired(history: LeaseHistory, standing: Standing, cause: Cause | None, *, has_pod: bool | None) -> Advice:
    where, holder = f"kubectl -n {history.namespace}", name(standing.holder)
    if has_pod is False:
        sentence = f"The pod of {holder} is gone, and no other replica took the lease:"
        return Advice(sentence, f"{where} get pods,deployments")
    if cause is not None and cause.blame is Blame.SERVER:
        sentence = "Look at the API server before the program:"
        return Advice(sentence, repair_for(cause, history, standing.holder))
    sentence = f"Find out whether {holder} still runs, and why no other replica takes over:"
    return Advice(sentence, f"{where} get pods; {where} logs {_pod(standing)} --previous")


def _pod(standing: Standing) -> str:
    return escape(pod_of(standing.holder))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
