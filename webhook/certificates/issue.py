"""Issue certificates of a webhook: a CA that API servers trust, and a leaf that it signs.

CA and leaf are separate, so that renewing the leaf changes nothing for the API servers: caBundle stays as it is.
"""

import datetime as dt
import ipaddress
import os
import secrets
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from webhook.certificates.files import CA_CERTIFICATE, CA_KEY, LEAF_CERTIFICATE, LEAF_KEY

CA_DAYS: Final = 3650
LEAF_DAYS: Final = 365
CLOCK_SKEW: Final = dt.timedelta(hours=1)
"""Certificates are valid from this long before they are made: clocks of API servers differ."""


class Issued(Struct, frozen=True):
    """A certificate that was made here, of a CA or of a server, and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def list_service_names(service: str, namespace: str) -> list[str]:
    """Return the names that clients in the cluster use, and local ones; API servers check `SERVICE.NAMESPACE.svc`."""
    base = f"{service}.{namespace}"
    return [service, base, f"{base}.svc", f"{base}.svc.cluster.local", "localhost", "127.0.0.1", "::1"]


def create_authority(now: dt.datetime) -> Issued:
    """Return a new self-signed CA, ECDSA P-256, valid for ten years; it may sign leaves only."""
    key = ec.generate_private_key(ec.SECP256R1())
    # The digits distinguish two CAs while a caBundle contains both.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"lease-webhook CA {secrets.token_hex(4)}")])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _make_builder(name, name, key.public_key(), now, now + dt.timedelta(days=CA_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return Issued(certificate, key)


def issue_leaf(authority: Issued, names: Sequence[str], days: float, now: dt.datetime) -> Issued:
    """Return a new key and a certificate for DNS names or IP addresses, valid for `days`, never longer than its CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    end = min(now + dt.timedelta(days=days), authority.certificate.not_valid_after_utc)
    certificate = (
        # No common name: clients ignore it, and it holds 64 characters at most.
        _make_builder(x509.Name([]), authority.certificate.subject, key.public_key(), now, end)
        # RFC 5280 4.2.1.6: with an empty subject, the alternative names are critical.
        .add_extension(x509.SubjectAlternativeName(map(_make_general_name, dict.fromkeys(names))), critical=True)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return Issued(certificate, key)


def load_authority(directory: Path) -> Issued:
    """Return the CA in `directory`. Raises OSError if a file is missing, ValueError if one has the wrong content."""
    certificate = x509.load_pem_x509_certificates((directory / CA_CERTIFICATE).read_bytes())[0]
    key = serialization.load_pem_private_key((directory / CA_KEY).read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{CA_KEY} is not an ECDSA key")  # noqa: TRY004 - the file is wrong, not the caller
    if key.public_key() != certificate.public_key():
        raise ValueError(f"{CA_KEY} does not belong to {CA_CERTIFICATE}")
    return Issued(certificate, key)


def save(directory: Path, issued: Issued, key_file: str = LEAF_KEY, certificate_file: str = LEAF_CERTIFICATE) -> None:
    """Write a key, then its certificate, which marks the pair as complete, each atomically.

    A server that reads in between keeps the pair it has.
    """
    pem = serialization.Encoding.PEM
    key = issued.key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    _write(directory / key_file, key, 0o600)
    _write(directory / certificate_file, issued.certificate.public_bytes(pem), 0o644)


def _make_builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: dt.datetime, end: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _make_general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Replace `path` atomically; the file has `mode` before it has content."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.write(content)
            file.flush()
            os.fsync(handle)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
