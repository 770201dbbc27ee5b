"""What to look at first, by the cause: a sentence, and the command."""

from msgspec import Struct

from webhook.explanation import commands
from webhook.explanation.cause import Blame, Cause
from webhook.explanation.words import name
from webhook.history.lease_history import LeaseHistory
from webhook.history.refusal import By, Refusal
from webhook.history.tenure import Tenure


class Advice(Struct, frozen=True):
    """What to do, as one or two sentences, and the command to run; it may be empty."""

    sentence: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.sentence} {self.command}".rstrip()


def next_step(cause: Cause, history: LeaseHistory, tenure: Tenure) -> Advice:
    """Where to look after a holder did not renew."""
    if cause.blame is Blame.SERVER:
        sentence = (
            "Look at the API server and its etcd; a slow webhook looks the same (lease-webhook doctor). To see the API "
            "server's own checks:"
        )
        return Advice(sentence, commands.API_SERVER)
    if cause.blame is Blame.NETWORK:
        sentence = (
            "Look at what lies between the clients and the API server, such as its load balancer. To see the address "
            "of the API server, and the nodes:"
        )
        return Advice(sentence, "kubectl cluster-info; kubectl get nodes")
    if cause.blame is Blame.REFUSED and cause.refusal is not None:
        return after_refusal(history, cause.refusal)
    if cause.blame is Blame.CLIENT:
        sentence = f"To see why {name(tenure.holder)} did not renew:"
        return Advice(sentence, commands.pod_of_holder(history.namespace, tenure.holder))
    return Advice("To know the cause, watch all leases the next time:", commands.WATCH)


def after_refusal(history: LeaseHistory, refusal: Refusal) -> Advice:
    """What to do about writes that are refused."""
    who = name(refusal.writer.name) or "the writer"
    if refusal.by is By.WEBHOOK:
        return Advice(f"See why the webhook refuses the writes of {who}:", commands.WEBHOOKS)
    if refusal.by is By.POLICY:
        return Advice(f"See why the policy refuses the writes of {who}:", commands.POLICIES)
    sentence = (
        f"{who} needs a Role and RoleBinding that allow update on the lease. To see whether it may update it now:"
    )
    return Advice(sentence, commands.rights("update", history.namespace, history.name, refusal.writer))
