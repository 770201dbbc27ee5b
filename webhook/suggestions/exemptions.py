"""The narrowest exemptions for writes that were denied, and none for what looks like an attack."""

from datetime import date
from operator import attrgetter
from typing import Final

from webhook.api.formats import dns_label, path_segment
from webhook.api.request import Operation
from webhook.policy.schema import EXEMPTIBLE
from webhook.suggestions.evidence import TOOK, Write, Writes, account_of, attack_of, is_name, left_out, total
from webhook.yaml_writer import comment, flow, scalar

OWNER: Final = "name the owner here"

_RULES: Final = attrgetter("rules")
_BY_USER: Final = attrgetter("writer.user", "namespace", "name", "operation")


def exemption_policy(seen: Writes, until: date, owner: str = OWNER) -> str:
    """Return a policy file with the exemptions, and comments; "" if the input has no verdict of the webhook.

    Exempt is, up to the last day `until`, what was denied, or would be without the cap of the policy.
    """
    if not seen.has_verdicts:
        return ""
    attackers = {(one.writer.user, one.namespace) for one in seen.writes if one.attacks}
    denied: dict[tuple[str, str, str, Operation], list[Write]] = {}
    remarks: list[str] = []
    for write in sorted(filter(_RULES, seen.writes), key=_BY_USER):
        if why := _why_not(write, attackers):
            what = f"{write.operation} of {write.namespace}/{write.name} ({', '.join(write.rules)})"
            remarks.append(left_out(write.writer.user, what, f"{why} ({seen.writes[write].text('time')})"))
        else:
            denied.setdefault((write.writer.user, write.namespace, write.name, write.operation), []).append(write)
    exempt: dict[tuple[str, str, Operation, tuple[str, ...]], list[Write]] = {}
    for (user, namespace, _, operation), writes in denied.items():
        rules = tuple(sorted({rule for one in writes for rule in one.rules}))
        exempt.setdefault((user, namespace, operation, rules), []).extend(writes)
    lines: list[str] = []
    for (user, namespace, operation, rules), writes in exempt.items():
        account = account_of(user)
        evidence = total(seen.writes[one] for one in writes).text("denied write")
        lines += [
            f"- service_accounts: {flow(['/'.join(account)])}" if account else f"- users: {flow([user])}",
            f"  namespaces: {flow([namespace])}",
            f"  leases: {flow(dict.fromkeys(one.name for one in writes))}",
            f"  rules: {flow(rules)}",
            f"  operations: {flow([operation])}",
            f"  owner: {scalar(owner)}",
            f"  reason: {scalar(f'suggested from {evidence}')}",
            f"  until: {until.isoformat()}",
        ]
    begin = ["apiVersion: lease-webhook/v1", "exempt:" if lines else "exempt: []"]
    remarks = [*sorted(remarks), *(f"not seen: {text}" for text in seen.unseen())]
    return "".join(f"{line}\n" for line in (*begin, *lines, *map(comment, remarks)))


def _why_not(write: Write, attackers: set[tuple[str, str]]) -> str:
    """Return why no exemption is suggested for a denied write, "" if one is."""
    attacks = [TOOK] if write.event == "steal" else []
    attacks += [what for rule in write.rules if (what := attack_of(rule, write.event))]
    if attacks:
        return f"looks like an attack: {'; '.join(dict.fromkeys(attacks))}"
    if fixed := [rule for rule in write.rules if rule not in EXEMPTIBLE]:
        return f"no exemption applies to {', '.join(fixed)}: correct the client"
    user = write.writer.user
    if (user, write.namespace) in attackers:
        return "what else it did in this namespace looks like an attack"
    if not is_name(user):
        return "this user name cannot be expressed in a policy"
    if dns_label(write.namespace) or path_segment(write.name) or not is_name(write.name):
        return "no object can have this name"
    return ""
