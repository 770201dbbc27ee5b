"""The whole examination: every check, in the order in which its findings should be fixed."""

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
"""For every webhook that may be called for leases, also those of others."""

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
"""What is served to an entry, None if that is not known."""


class Report(Struct, frozen=True):
    """The findings about one entry; if `webhook` is empty, about `subject` as a whole, which may be a fence."""

    subject: str
    webhook: str
    diagnoses: tuple[Diagnosis, ...]
    is_fence: bool = False


def examine(
    configurations: Sequence[Configuration],
    served_at: ServedAt,
    policy: Policy | None,
    now: dt.datetime,
    labels: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[Report]:
    """A report for each entry that leases can reach, then one about all of them.

    Args:
        configurations: all webhook configurations.
        served_at: what is served to an entry.
        policy: the policy that should be in force, None if it is not known.
        now: decides which certificates have expired.
        labels: those of the known namespaces, by name.

    """
    dedicated: list[Entry] = []
    others: list[str] = []
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
                others.append(webhook.name)
                diagnoses = [advised(entry, found) for found in diagnoses]
            yield Report(configuration.metadata.name, webhook.name, tuple(diagnoses))
        if ours:
            yield Report(configuration.metadata.name, "", tuple(contract.check_coverage(ours)))
        dedicated += ours
    if not dedicated:
        yield Report("all configurations", "", (_not_registered(others),))
    elif policy:
        yield Report(
            "policy",
            "",
            (
                *policy_fit.check_kill_switch(policy),
                *policy_fit.check_bindings(policy, dedicated, labels or {}),
                *policy_fit.check_settings(policy, dedicated, labels or {}),
            ),
        )


def _dedicated(entry: Entry, served_at: ServedAt, now: dt.datetime) -> Iterator[Diagnosis]:
    for check in DEDICATED:
        yield from check(entry)
    yield from certificate.check_bundle(entry, now)
    served = served_at(entry.webhook)
    if served:
        yield from certificate.check_served(entry, served, now)


def _not_registered(others: Sequence[str]) -> Diagnosis:
    """`others` are the webhooks that leases reach by a wildcard."""
    caught = f"; leases reach {', '.join(others)} by a wildcard" if others else ""
    return Diagnosis(
        "not-registered",
        f"no webhook has the group coordination.k8s.io in its rules{caught}",
        "lease-webhook is not called for any write of a lease, so none of its rules is in force.",
        "apply one of deploy/overlays.",
    )
