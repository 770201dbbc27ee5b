"""Whether the API server sends every write, in a form that is decoded, and accepts the response."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from webhook.api.request import Resource
from webhook.doctor.configuration import API_VERSION, Entry
from webhook.doctor.diagnosis import Diagnosis
from webhook.policy.model import OPERATIONS
from webhook.review_paths import REVIEW_PATH

LISTED_VERSIONS: Final = {
    Resource.LEASES: ("v1",),
    Resource.LEASECANDIDATES: ("v1beta1", "v1alpha2", "v1alpha1"),
}
"""The versions that a configuration should list: what API servers from 1.31 on serve. One that a server does not serve
does no harm."""


def check_resources(entry: Entry) -> Iterable[Diagnosis]:
    """Both kinds, every served version, every operation."""
    webhook = entry.webhook
    for resource in Resource:
        listed = webhook.versions(resource)
        if not listed:
            continue
        missing = [version for version in LISTED_VERSIONS[resource] if version not in listed]
        if "*" in listed:
            yield Diagnosis(
                "version-wildcard",
                entry.place("rules", f"{resource} in any version"),
                "a version that is added later is sent in a form that the webhook does not decode and is admitted "
                "with a"
                " warning; with the versions listed, the API server converts it to one that is known.",
                f"list the versions: {', '.join(LISTED_VERSIONS[resource])}.",
            )
        elif missing:
            yield Diagnosis(
                "version-missing",
                entry.place("rules", f"{resource} without {', '.join(missing)}"),
                "an API server that serves none of the listed versions never sends this resource for review.",
                f"list the versions: {', '.join(LISTED_VERSIONS[resource])}. One that is not served does no harm.",
            )


def check_coverage(entries: Iterable[Entry]) -> Iterable[Diagnosis]:
    """All entries of a configuration together match both kinds and every operation."""
    together = list(entries)
    for resource in Resource:
        missing = [one for one in OPERATIONS if not any(entry.webhook.reviews(resource, one) for entry in together)]
        if missing:
            yield Diagnosis(
                "operation-missing",
                f"webhooks: {resource} without {', '.join(missing)}",
                f"the rules for {' and '.join(missing)} of {resource} are never in force.",
                f"operations: [{', '.join(OPERATIONS)}] for both resources.",
            )


def check_conversion(entry: Entry) -> Iterable[Diagnosis]:
    """A version that is not listed is converted to one that is."""
    if entry.webhook.match_policy == "Exact":
        yield Diagnosis(
            "match-policy-exact",
            entry.place("matchPolicy", "Exact"),
            "a write in a version that is served but not listed is not reviewed: using another version evades every"
            " rule.",
            "set matchPolicy: Equivalent.",
        )


def check_side_effects(entry: Entry) -> Iterable[Diagnosis]:
    """A dry run is reviewed like any write."""
    if entry.webhook.side_effects != "None":
        yield Diagnosis(
            "side-effects",
            entry.place("sideEffects", entry.webhook.side_effects or "absent"),
            "reviews have no side effects; with Some or Unknown the API server rejects every dry run of a lease, and"
            " without the field it rejects the configuration.",
            "set sideEffects: None (in quotes if a tool reads it as null).",
        )


def check_review_versions(entry: Entry) -> Iterable[Diagnosis]:
    """The version of AdmissionReview with the strictest checks."""
    versions = entry.webhook.admission_review_versions or ()
    if versions != ("v1",):
        yield Diagnosis(
            "review-versions",
            entry.place("admissionReviewVersions", f"[{', '.join(versions)}]"),
            "the API server uses the first version it knows; in v1beta1 it does not check whether a response belongs to"
            " its request.",
            "set admissionReviewVersions: [v1].",
        )


def check_target(entry: Entry) -> Iterable[Diagnosis]:
    """The call goes to a path at which reviews are answered."""
    config = entry.webhook.client_config
    if (config.service is None) == (config.url is None):
        yield Diagnosis(
            "no-target",
            entry.place("clientConfig"),
            "the API server rejects a configuration with both or neither of service and url.",
            "name the Service, or a url for a webhook outside the cluster.",
        )
        return
    field, path = ("service.path", config.service.path or "/") if config.service else ("url", _path(config.url or ""))
    if REVIEW_PATH.fullmatch(path) is None:
        yield Diagnosis(
            "path-unknown",
            entry.place(f"clientConfig.{field}", path),
            "lease-webhook responds with 404 there, which counts as a failed call: every write is admitted without"
            " review under Ignore and rejected under Fail.",
            "use the path /validate.",
        )
    if config.url is not None and not config.url.startswith("https://"):
        yield Diagnosis(
            "url-without-tls",
            entry.place("clientConfig.url", config.url),
            "the API server calls webhooks only over TLS and rejects this configuration.",
            "use an https:// address.",
        )


def check_api_version(entry: Entry) -> Iterable[Diagnosis]:
    """The configuration is of an API version that is still served."""
    if entry.configuration.api_version != API_VERSION:
        yield Diagnosis(
            "api-version",
            f"apiVersion: {entry.configuration.api_version}",
            "no API server that serves LeaseCandidates accepts this version; in older ones its defaults were more"
            " dangerous (timeout 30 s).",
            f"use {API_VERSION}.",
        )


def _path(url: str) -> str:
    try:
        return urlsplit(url).path or "/"
    except ValueError:
        return url
