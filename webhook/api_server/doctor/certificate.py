"""Checks of the certificate: what the API server trusts, and what it will be served, by the examined objects alone.

The API server verifies as Go does: the name of the Service, a chain to the caBundle, dates, the use for serving.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final

from cryptography import x509
from msgspec.structs import replace

from webhook.api_server.doctor.documents import ClientConfig, Documents, WebhookEntry, report_danger
from webhook.certificates.files import MAX_FILE, Certificate, Pair, Unusable
from webhook.certificates.inspect import inspect, inspect_chain
from webhook.findings import ReportFinding

SOON: Final = dt.timedelta(days=14)
"""As the alert in deploy/components/monitoring."""

FILLED_IN_LATER: Final = ("cert-manager.io/inject-ca-from", "service.beta.openshift.io/inject-cabundle")
"""Annotations by which a controller writes the caBundle into the cluster's object."""

_UNTRUSTED: Final = (
    "the API server refuses the TLS connection, so no write is reviewed: all are admitted under Ignore and rejected"
    " under Fail."
)
_BUNDLE: Final = "the caBundle"
_UNKNOWN: Final = (
    "the certificate that {} serves was not examined: {}; `lease-webhook status` has the API server try it"
)


def check_bundle(entry: WebhookEntry, now: dt.datetime) -> Iterable[ReportFinding]:
    """The caBundle is present, readable and not expired."""
    config = entry.webhook.client_config
    end, annotations = find_end_of_bundle(config), entry.configuration.metadata.annotations or {}
    if config.ca_bundle is None:
        if annotations.keys().isdisjoint(FILLED_IN_LATER):
            yield entry.report(
                "ca-bundle-missing",
                "clientConfig.caBundle",
                f"then only the system's roots are trusted; with a certificate of your own {_UNTRUSTED}",
                "put the output of `lease-webhook certs --ca-bundle` there, or use an overlay that does.",
            )
    elif end is None:
        yield entry.report(
            "ca-bundle-unreadable",
            "clientConfig.caBundle",
            "it does not contain PEM certificates in base64; the API server rejects the configuration.",
            "put the output of `lease-webhook certs --ca-bundle` there.",
        )
    elif end < now + SOON:
        is_over = end <= now
        yield entry.report(
            "ca-bundle-expired" if is_over else "certificate-ends-soon",
            f"clientConfig.caBundle, until {end:%Y-%m-%d}",
            f"{'all roots in it have expired:' if is_over else 'after that'} {_UNTRUSTED}",
            "make a new CA (`lease-webhook certs --new-ca`) and change it in four steps: docs/certificates.md.",
        )


def find_end_of_bundle(config: ClientConfig) -> dt.datetime | None:
    """Return when the last root in the caBundle expires; None if there is no root."""
    return max((root.not_valid_after_utc for root in _load_authorities(config)), default=None)


def examine_certificate(
    entry: WebhookEntry, documents: Documents, now: dt.datetime
) -> tuple[str, Sequence[ReportFinding], str]:
    """Return the place of the certificate that an entry is served, what is wrong with it, and what is not known.

    It is that of the Secret in the namespace of the Service.
    """
    config, annotations = entry.webhook.client_config, entry.configuration.metadata.annotations or {}
    address = f"{config.service.namespace}/{config.service.name}" if config.service else config.server_name or "the URL"
    secrets = documents.list_served_secrets(config.service.namespace) if config.service else []
    writers = [one for one in FILLED_IN_LATER if one in annotations and config.ca_bundle is None]
    unknown = ""
    if len(secrets) > 1:
        unknown = f"it may be in any of {len(secrets)} Secrets"
    elif not secrets:
        unknown = "Secrets of a cluster are not read" if documents.is_of_a_cluster else "it is not in the input"
    elif writers:
        unknown = f"by which CA it is signed, as {writers[0]} fills in the caBundle later"
    found: Sequence[ReportFinding] = ()
    if len(secrets) == 1 and secrets[0].pair:
        found = tuple(_check_served(f"Secret {secrets[0].place}", secrets[0].pair, config, now))
    return address, found, unknown and _UNKNOWN.format(address, unknown)


def _check_served(place: str, pair: Pair, config: ClientConfig, now: dt.datetime) -> Iterable[ReportFinding]:
    try:
        certificate = _inspect(pair, config).check_dates(now)
        problems: Sequence[str] = certificate.problems
        end = min(filter(None, (certificate.not_after, certificate.ca_not_after)))
    except Unusable as unusable:
        problems, end = (str(unusable),), now
    if not problems and end <= now:
        problems = (f"the CA that signed it, or one between, expired at {end:%FT%TZ}",)
    yield from (refuse(place, problem, config) for problem in problems)
    if not problems and end < now + SOON:
        yield report_danger(
            "certificate-ends-soon",
            f"{place}, until {end:%Y-%m-%d}",
            f"after that {_UNTRUSTED}",
            "renew it (`lease-webhook certs`, or check cert-manager); a new CA needs four steps: docs/certificates.md.",
        )


def refuse(place: str, problem: str, config: ClientConfig) -> ReportFinding:
    """Return the finding that a certificate has a problem for which an API server refuses the connection."""
    return report_danger(
        "certificate-untrusted",
        f"{place}: {problem}",
        _UNTRUSTED,
        f"issue it for {config.server_name} under a CA that is in the caBundle (`lease-webhook certs`, or check"
        " cert-manager); pods read it again without a restart.",
    )


def _inspect(pair: Pair, config: ClientConfig) -> Certificate:
    """Return the certificate as the API server sees it; raises Unusable for one that cannot be served."""
    names = frozenset([config.server_name])
    # A bundle that cannot be read is a finding of its own, and one that a controller writes later is not known.
    trusting = replace(pair, authorities=config.roots if _load_authorities(config) else b"")
    if max(len(pair.chain), len(pair.key)) > MAX_FILE:
        raise Unusable(f"larger than {MAX_FILE} bytes")
    return inspect(trusting, names, _BUNDLE) if pair.key else inspect_chain(trusting, names, _BUNDLE)


def _load_authorities(config: ClientConfig) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(config.roots)
    except ValueError:
        return []
