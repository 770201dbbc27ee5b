"""What is legal in a policy file and yet may not be what its writer meant."""

from collections.abc import Iterator
from typing import Final

from webhook.api.verdict import Mode
from webhook.policy.compilation import ANYWHERE, settings_of, until_of, users_of
from webhook.policy.model import MODE, Policy, Setting, Value
from webhook.policy.rule_ids import OFFLINE
from webhook.policy.settings import Rules
from webhook.rules.binding import POD

SOON: Final = 14 * 86_400 * 1_000_000
"""Microseconds before its end at which an exemption is told about: two weeks."""

LOW_NUMBERS: Final[dict[Setting, tuple[int, str]]] = {
    ("duration-too-long", "deny_above_seconds"): (3600, "kube-apiserver's own leases last 3600 s"),
    ("renew-time-in-future", "deny_above_seconds"): (
        3600,
        "a renewal by a client whose clock runs fast is then denied",
    ),
    ("candidate-renew-time-in-future", "deny_above_seconds"): (60, "clocks of control planes differ by seconds"),
    ("holder-identity-shape", "deny_above_bytes"): (330, "a pod's name, an underscore and a UUID take up to 290 bytes"),
}


def notes(policy: Policy, now: int) -> list[str]:
    """Sentences with the path that each is about; `now` is in microseconds since 1970."""
    return [*_about_the_cap(policy), *_about_rules(policy), *_about_exemptions(policy, now), *_about_bindings(policy)]


def _about_the_cap(policy: Policy) -> Iterator[str]:
    document = policy.document
    if policy.mode is Mode.OFF:
        yield "mode: off is the kill switch: every write is allowed and nothing is judged"
    elif document.preset == "observe":
        yield "preset: observe denies nothing; would-deny in the audit log lists what standard or strict would deny"
    elif policy.mode < Mode.DENY:
        yield f"mode: {document.mode} denies nothing; would-deny in the audit log lists what this file would deny"
    if document.without_stamps == "enforce":
        yield "without_stamps: enforce lets a dead holder whose clock ran ahead block takeovers for just as long"


def _about_rules(policy: Policy) -> Iterator[str]:
    layers: list[tuple[str, Rules]] = [("rules", policy.document.rules)]
    layers += [(f"overrides[{i}].rules", override.rules) for i, override in enumerate(policy.document.overrides)]
    for path, rules in layers:
        settings = settings_of(rules)
        if not settings and path != "rules":
            yield f"{path} sets nothing"
        for setting, value in settings.items():
            yield from (f"{path}.{setting[0]}: {text}" for text in _about_setting(setting, value, policy))


def _about_setting(setting: Setting, value: Value, policy: Policy) -> Iterator[str]:
    rule, name = setting
    if name == MODE:
        if rule in OFFLINE and value > Mode.AUDIT:
            yield "no single write is judged by this rule, so it is only ever reported"
        elif value > policy.mode > Mode.OFF:
            yield f"{Mode(value).word} comes down to {policy.mode.word}, the cap of this policy"
    elif setting in LOW_NUMBERS and value < LOW_NUMBERS[setting][0]:
        yield f"{name} {value} is low: {LOW_NUMBERS[setting][1]}"


def _about_exemptions(policy: Policy, now: int) -> Iterator[str]:
    for position, exemption in enumerate(policy.document.exempt):
        path = f"exempt[{position}] ({exemption.owner})"
        until = until_of(exemption)
        if until <= now:
            yield f"{path} ended with {exemption.until}: it exempts nobody; remove it, or renew it with a new reason"
        elif until - now <= SOON:
            yield f"{path} ends with {exemption.until}, within two weeks"
        who = (*users_of(exemption), *exemption.groups)
        if not who and {*exemption.namespaces, *exemption.leases} <= {ANYWHERE}:
            yield f"{path} exempts everybody everywhere; `mode: warn` says so more plainly"


def _about_bindings(policy: Policy) -> Iterator[str]:
    for position, binding in enumerate(policy.document.bindings):
        path = f"bindings[{position}]"
        mode = policy.for_lease(binding.namespace, binding.lease).modes["identity-binding"]
        if mode < Mode.DENY:
            yield f"{path} refuses nobody: rule identity-binding is {mode.word} on this lease"
        if ANYWHERE in binding.holder:
            yield f"{path}.holder: `*` fits every holder, so only the writer is checked"
        elif binding.require_pod and not any(POD in template for template in binding.holder):
            yield f"{path}.require_pod: no holder has ${{pod}}, so it changes nothing"
