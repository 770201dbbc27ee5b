"""Checks of what the webhook serves: the caBundle, names and dates."""

import base64
import binascii
import datetime as dt
from collections.abc import Iterable
from typing import Final

from cryptography import x509
from msgspec import Struct

from webhook.certificates import MAX_FILE, Unusable, inspect_chain
from webhook.doctor.configuration import ClientConfig, Entry, danger
from webhook.findings import Finding

SOON: Final = dt.timedelta(days=14)
"""As the alert in deploy/components/monitoring."""

FILLED_IN_LATER: Final = ("cert-manager.io/inject-ca-from", "service.beta.openshift.io/inject-cabundle")
"""Annotations by which a controller writes the caBundle into the cluster's object."""

_UNTRUSTED: Final = (
    "the API server refuses the TLS connection, so no write is reviewed: all are admitted under Ignore and rejected"
    " under Fail."
)


class ServingCertificate(Struct, frozen=True):
    """The certificate chain that the webhook serves, in PEM, and where it was found."""

    chain: bytes
    origin: str


def check_bundle(entry: Entry, now: dt.datetime) -> Iterable[Finding]:
    """The caBundle is present, readable and not expired."""
    place = entry.place("clientConfig.caBundle")
    bundle = entry.webhook.client_config.ca_bundle
    if bundle is None:
        annotations = entry.configuration.metadata.annotations or {}
        if not any(annotation in annotations for annotation in FILLED_IN_LATER):
            yield danger(
                "ca-bundle-missing",
                place,
                f"then only the system's roots are trusted; with a certificate of your own {_UNTRUSTED}",
                "put `lease-webhook certs --ca-bundle` there, or use an overlay that does.",
            )
        return
    end = bundle_end(entry.webhook.client_config)
    if end is None:
        yield danger(
            "ca-bundle-unreadable",
            place,
            "it does not contain PEM certificates in base64; the API server rejects the configuration.",
            "put `lease-webhook certs --ca-bundle` there.",
        )
    elif end <= now:
        yield danger(
            "ca-bundle-expired",
            f"{place}, until {end:%Y-%m-%d}",
            f"all roots in it have expired: {_UNTRUSTED}",
            "make a new CA (`lease-webhook certs --new-ca`) and change it in four steps: docs/certificates.md.",
        )
    elif end < now + SOON:
        yield _ends_soon(place, end, now)


def bundle_end(config: ClientConfig) -> dt.datetime | None:
    """Return when the last root in the caBundle expires; None if there is no root."""
    return max((root.not_valid_after_utc for root in _authorities(config.ca_bundle)), default=None)


def check_served(entry: Entry, served: ServingCertificate, now: dt.datetime) -> Iterable[Finding]:
    """The served certificate is one that the API server trusts for this entry."""
    config = entry.webhook.client_config
    name = config.server_name
    try:
        certificate = inspect_chain(served.chain, _pem(config.ca_bundle), now, frozenset([name] if name else []))
    except Unusable as unusable:
        yield _untrusted(served.origin, str(unusable))
        return
    for problem in certificate.problems:
        yield _untrusted(served.origin, problem)
    if not certificate.problems and certificate.not_after < now + SOON:
        yield _ends_soon(served.origin, certificate.not_after, now)


def _authorities(bundle: str | None) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(_pem(bundle))
    except ValueError:
        return []


def _pem(bundle: str | None) -> bytes:
    """Return PEM from base64; Go's decoder ignores line breaks. Empty if it is not base64, or too long to parse."""
    try:
        pem = base64.b64decode("".join((bundle or "").splitlines()), validate=True)
    except (binascii.Error, ValueError):
        return b""
    return pem if len(pem) <= MAX_FILE else b""


def _untrusted(origin: str, problem: str) -> Finding:
    return danger(
        "certificate-untrusted",
        f"{origin}: {problem}",
        _UNTRUSTED,
        "issue it again (`lease-webhook certs`, or check cert-manager) under a CA that is in the caBundle, with the"
        " name that the API server checks; no restart is needed.",
    )


def _ends_soon(place: str, end: dt.datetime, now: dt.datetime) -> Finding:
    return danger(
        "certificate-ends-soon",
        f"{place}, until {end:%Y-%m-%d} ({max((end - now).days, 0)} days)",
        f"after that {_UNTRUSTED}",
        "renew it (`lease-webhook certs`, or check cert-manager); a new CA needs four steps: docs/certificates.md.",
    )
