"""The whole examination: every check, in the order in which a person should mend what it finds."""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.doctor import availability, certificate, contract, policy_fit, renewal_condition, scope
from webhook.doctor.certificate import Served
from webhook.doctor.configuration import Configuration, Entry, Webhook
from webhook.doctor.diagnosis import Diagnosis
from webhook.doctor.foreign import advised
from webhook.policy.model import Policy

Check = Callable[[Entry], Iterable[Diagnosis]]

DANGERS: Final[tuple[Check, ...]] = (
    scope.check_wildcards,
    scope.check_namespaces,
    scope.check_mutation,
    availability.check_timeout,
    availability.check_failure_policy,
    availability.check_renewals,
)
"""For every entry that leases can reach, whoever it belongs to."""

DEDICATED: Final[tuple[Check, ...]] = (
    renewal_condition.check_condition,
    scope.check_labels,
    contract.check_api_version,
    contract.check_resources,
    contract.check_conversion,
    contract.check_side_effects,
    contract.check_review_versions,
    contract.check_target,
)
"""For entries that are about leases."""

ServedAt = Callable[[Webhook], Served | None]
"""What is served to an entry, where that is known."""


class Report(Struct, frozen=True):
    """What was found about one entry; where `webhook` is empty, about `subject` as a whole, which may be a fence."""

    subject: str
    webhook: str
    diagnoses: tuple[Diagnosis, ...]
    is_fence: bool = False


def examine(
    configurations: Sequence[Configuration],
    served_at: ServedAt,
    rules: Policy | None,
    now: dt.datetime,
    labels: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[Report]:
    """A report for each entry that leases can reach, then what concerns them together.

    Args:
        configurations: all webhook configurations.
        served_at: what is served to an entry.
        rules: the policy that is to be in force, if it is known.
        now: decides which certificates have expired.
        labels: those of the namespaces that are known, by name.

    """
    dedicated: list[Entry] = []
    for configuration in configurations:
        ours: list[Entry] = []
        for position, webhook in enumerate(configuration.webhooks or ()):
            entry = Entry(configuration, position, webhook)
            if not webhook.is_about_leases:
                continue
            diagnoses = [found for check in DANGERS for found in check(entry)]
            if webhook.is_dedicated:
                ours.append(entry)
                diagnoses += _dedicated(entry, served_at, now)
            else:
                diagnoses = [advised(entry, found) for found in diagnoses]
            yield Report(configuration.metadata.name, webhook.name, tuple(diagnoses))
        if ours:
            yield Report(configuration.metadata.name, "", tuple(contract.check_coverage(ours)))
        dedicated += ours
    if not dedicated:
        yield Report("all configurations", "", (_NOT_REGISTERED,))
    elif rules:
        yield Report(
            "policy",
            "",
            (*policy_fit.check_kill_switch(rules), *policy_fit.check_bindings(rules, dedicated, labels or {})),
        )


def _dedicated(entry: Entry, served_at: ServedAt, now: dt.datetime) -> Iterator[Diagnosis]:
    for check in DEDICATED:
        yield from check(entry)
    yield from certificate.check_bundle(entry, now)
    served = served_at(entry.webhook)
    if served:
        yield from certificate.check_served(entry, served, now)


_NOT_REGISTERED: Final = Diagnosis(
    "not-registered",
    "no webhook has a rule for leases in coordination.k8s.io",
    "no lease is reviewed; nothing of what the rules promise is in force.",
    "apply one of deploy/overlays.",
)
