"""Checks of the caBundle: whether it is there, and when its roots expire."""

import base64
import datetime as dt
from collections.abc import Iterable
from typing import Final

from cryptography import x509

from webhook.certificates import MAX_FILE
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


def check_bundle(entry: Entry, now: dt.datetime) -> Iterable[Finding]:
    """The caBundle is present, readable and not expired."""
    place = entry.place("clientConfig.caBundle")
    is_absent, end = entry.webhook.client_config.ca_bundle is None, bundle_end(entry.webhook.client_config)
    annotations = entry.configuration.metadata.annotations or {}
    if is_absent and any(annotation in annotations for annotation in FILLED_IN_LATER):
        return
    if is_absent:
        yield danger(
            "ca-bundle-missing",
            place,
            f"then only the system's roots are trusted; with a certificate of your own {_UNTRUSTED}",
            "put `lease-webhook certs --ca-bundle` there, or use an overlay that does.",
        )
    elif end is None:
        yield danger(
            "ca-bundle-unreadable",
            place,
            "it does not contain PEM certificates in base64; the API server rejects the configuration.",
            "put `lease-webhook certs --ca-bundle` there.",
        )
    elif end < now + SOON:
        is_over = end <= now
        yield danger(
            "ca-bundle-expired" if is_over else "certificate-ends-soon",
            f"{place}, until {end:%Y-%m-%d}",
            f"{'all roots in it have expired:' if is_over else 'after that'} {_UNTRUSTED}",
            "make a new CA (`lease-webhook certs --new-ca`) and change it in four steps: docs/certificates.md.",
        )


def bundle_end(config: ClientConfig) -> dt.datetime | None:
    """Return when the last root in the caBundle expires; None if there is no root."""
    try:
        # Go's decoder ignores line breaks.
        pem = base64.b64decode("".join((config.ca_bundle or "").splitlines()), validate=True)
        roots = x509.load_pem_x509_certificates(pem) if len(pem) <= MAX_FILE else []
    except ValueError:
        return None
    return max((root.not_valid_after_utc for root in roots), default=None)
