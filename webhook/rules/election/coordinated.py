"""strategy and preferredHolder of a Lease: the coordinated election's own fields."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from webhook.api.field import forbidden
from webhook.rules.change import LeaseChange
from webhook.rules.rule import LEASES, NO_FINDINGS, NOT_A_RENEWAL, WRITES, Attack, Finding, Rule, Statement


def only_the_api_server_sets_preferred_holder(change: LeaseChange) -> Iterable[Finding]:
    """spec.preferredHolder may be set or changed by the API server only.

    A holder that sees one stops renewing. Clearing it is allowed: every release by client-go does.
    """
    new = change.new_spec.preferred_holder
    if not new or new == change.old_spec.preferred_holder:
        return NO_FINDINGS
    happened = Statement("a client set preferredHolder: a holder that sees it stops renewing")
    return (Finding(forbidden("spec.preferredHolder", _detail("preferredHolder")), happened=happened),)


def only_the_api_server_sets_strategy(change: LeaseChange) -> Iterable[Finding]:
    """spec.strategy may be set or changed by the API server only.

    It hands the lease to the coordinated election. Clearing it is allowed: every renewal by client-go does.
    """
    new = change.new_spec.strategy
    if not new or new == change.old_spec.strategy:
        return NO_FINDINGS
    happened = Statement("a client set strategy: coordinated leader election controls the lease now")
    return (Finding(forbidden("spec.strategy", _detail("strategy")), happened=happened),)


def _detail(name: str) -> str:
    return (
        f"{name} may be set by the API server's coordinated leader election only; "
        "leave it out, or have the policy exempt this writer"
    )


_BACKUPS: Final = "Backup tools that restore objects as an ordinary user (Velero), and scripts that copy a Lease."
_rule = partial(
    Rule,
    resources=LEASES,
    operations=WRITES,
    events=NOT_A_RENEWAL,
    about_writer=True,
    source="ours: kube-apiserver's leader election controller is the only shipped writer",
)
RULES = (
    _rule(
        "preferred-holder-writer",
        only_the_api_server_sets_preferred_holder,
        why="A client-go holder that sees `preferredHolder` stops renewing, so that the lease expires.",
        who=_BACKUPS,
        fix="Leave `preferredHolder` out of what you restore, or exempt the tool for this rule on CREATE.",
        attack=Attack("named the next leader", at_any_mode=False, on_create=False),
    ),
    _rule(
        "strategy-writer",
        only_the_api_server_sets_strategy,
        why="`strategy` hands the lease to the API server's coordinated election, which then chooses the holder.",
        who=_BACKUPS,
        fix="Leave `strategy` out of what you restore, or exempt the tool for this rule on CREATE.",
        attack=Attack("moved a lease to the coordinated election", at_any_mode=False, on_create=False),
    ),
)
