"""Checks whether the configuration allows the policy to take effect."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from webhook.api.request import Operation
from webhook.audit.command_words import word
from webhook.doctor.checks import drops_renewals
from webhook.doctor.configuration import Entry, danger, may_select, selects
from webhook.policy.model import LeasePolicy, Policy, with_settings
from webhook.policy.schema import operations_of, settings_of
from webhook.reports.model import Finding
from webhook.rules.rule import Mode

Labels = Mapping[str, Mapping[str, str]]
"""Those of the known namespaces, by name."""

AHEAD: Final = "renew-time-in-future"
BACKWARDS: Final = "renew-time-backwards"
SECONDS_NOT_SENT: Final = 86_400
"""The match condition sends a renewal that moves renewTime ahead by more than this, and no other for its renewTime."""


def check_policy(policy: Policy, entries: Sequence[Entry], labels: Labels) -> Iterator[Finding]:
    """Check that the kill switch is off, and that the configuration has reviewed what the policy is about."""
    if policy.mode == Mode.OFF:
        yield danger(
            "kill-switch-on",
            "policy: mode off",
            "every write is allowed without evaluation.",
            "remove mode from the policy when the incident is over.",
        )
    yield from _bindings(policy, entries, labels)
    yield from _settings(policy, entries, labels)


def _bindings(policy: Policy, entries: Sequence[Entry], labels: Labels) -> Iterable[Finding]:
    """The renewals of every bound lease are reviewed."""
    for namespace, lease in sorted(policy.bindings):
        if not _sees_renewals(entries, [namespace], labels):
            yield danger(
                "binding-without-renewals",
                f"policy: binding {namespace}/{lease}",
                "plain renewals of this lease are not reviewed, so a writer that is not bound can renew it in the"
                " holder's name and shorten it step by step, which the binding is meant to prevent.",
                "add the `bindings` component and label the namespace: kubectl label namespace"
                f" {word(namespace)} lease-webhook/renewals=reviewed",
            )


def _settings(policy: Policy, entries: Sequence[Entry], labels: Labels) -> Iterable[Finding]:
    """What the policy denies of plain renewals is reviewed in some namespace."""
    places: list[tuple[str, LeasePolicy, set[str], Sequence[str]]] = [("rules", policy.default, {AHEAD, BACKWARDS}, ())]
    for position, override in enumerate(policy.document.overrides):
        if Operation.UPDATE in operations_of(override):
            settings = settings_of(override.rules)
            rules = {rule for rule, _ in settings}
            changed = with_settings(policy.default, settings)
            places.append((f"overrides[{position}].rules", changed, rules, override.namespaces))
    for place, lease_policy, rules, namespaces in places:
        if not _sees_renewals(entries, namespaces, labels):
            yield from (_without_effect(place, *one) for one in _of_renewals(lease_policy) if one[0] in rules)


def _of_renewals(policy: LeasePolicy) -> Iterator[tuple[str, str, str]]:
    """Yield (rule, setting, what happens) for each setting that denies plain renewals."""
    longest = policy.limits.renew_time_in_future.deny_above_seconds
    if policy.modes[AHEAD] is Mode.DENY and longest < SECONDS_NOT_SENT:
        yield AHEAD, f"deny_above_seconds: {longest}", "one that moves renewTime ahead by up to 24 hours is stored"
    if policy.modes[BACKWARDS] is Mode.DENY:
        yield BACKWARDS, "mode: deny", "one that moves renewTime back is stored"


def _without_effect(place: str, rule: str, setting: str, stored: str) -> Finding:
    return danger(
        "setting-without-renewals",
        f"policy: {place}.{rule}: {{{setting}}}",
        f"plain renewals are not reviewed: {stored}, and only other writes are denied.",
        "add the `bindings` component and label the namespaces with lease-webhook/renewals=reviewed, or remove the"
        " setting: docs/renewals.md.",
    )


def _sees_renewals(entries: Sequence[Entry], namespaces: Sequence[str], labels: Labels) -> bool:
    """True if plain renewals may be reviewed in one of these namespaces, which may be globs; without a list: in any."""
    return any(
        entry.webhook.reviews("leases", "UPDATE")
        and not drops_renewals(entry.webhook)
        and (not namespaces or any(_may_select(entry, one, labels.get(one)) for one in namespaces))
        for entry in entries
    )


def _may_select(entry: Entry, namespace: str, labels: Mapping[str, str] | None) -> bool:
    selector = entry.webhook.namespace_selector
    if "*" in namespace or "?" in namespace:
        return True
    return may_select(selector, namespace) if labels is None else selects(selector, namespace, labels)
