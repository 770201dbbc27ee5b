"""Certificates of a webhook: a CA that API servers trust, a leaf that it signs, and whether the files of one may serve.

CA and leaf are separate, so that renewing the leaf changes nothing for the API servers: caBundle stays as it is.
"""

import datetime as dt
import ipaddress
import itertools
import os
import secrets
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct, json
from msgspec.structs import replace

from webhook.certificate_files import (
    CA_CERTIFICATE,
    CA_KEY,
    LEAF_CERTIFICATE,
    LEAF_KEY,
    Certificate,
    Inspection,
    Pair,
    Question,
    Unusable,
)

CA_DAYS: Final = 3650
LEAF_DAYS: Final = 365
CLOCK_SKEW: Final = dt.timedelta(hours=1)
"""Certificates are valid from this long before they are made: clocks of API servers differ."""

_UNREADABLE: Final = (
    ValueError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""What cryptography raises for a part of a certificate: most parts are decoded only when they are asked for."""


class Issued(Struct, frozen=True):
    """A certificate that was made here, of a CA or of a server, and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def service_names(service: str, namespace: str) -> list[str]:
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
        _builder(name, name, key.public_key(), now, now + dt.timedelta(days=CA_DAYS))
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
        _builder(x509.Name([]), authority.certificate.subject, key.public_key(), now, end)
        # RFC 5280 4.2.1.6: with an empty subject, the alternative names are critical.
        .add_extension(x509.SubjectAlternativeName(map(_general_name, dict.fromkeys(names))), critical=True)
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


def inspect(pair: Pair, names: frozenset[str] = frozenset(), trusted: str = CA_CERTIFICATE) -> Certificate:
    """Inspect a pair as a client does, trusting its authorities; `names` are those it must have. Raises Unusable.

    Its dates are read and not compared with any: `Certificate.at` does. `trusted` is what the authorities are called.
    """
    chain, inspected = _inspect_chain(pair, names, trusted)
    try:
        key = serialization.load_pem_private_key(pair.key, password=None)
        belongs = key.public_key() == chain[0].public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise Unusable(f"{LEAF_KEY} is not a private key in PEM without a password: {error}") from error
    if not belongs:
        raise Unusable(f"{LEAF_KEY} does not belong to {LEAF_CERTIFICATE}")
    if not pair.key_mode & 0o022:
        return inspected
    problem = f"{LEAF_KEY} is writable by others (mode {pair.key_mode:04o})"
    return replace(inspected, problems=(*inspected.problems, problem))


def inspect_chain(pair: Pair, names: frozenset[str], trusted: str = CA_CERTIFICATE) -> Certificate:
    """Inspect a pair without its key, which stays with the server."""
    return _inspect_chain(pair, names, trusted)[1]


def _inspect_chain(pair: Pair, names: frozenset[str], trusted: str) -> tuple[list[x509.Certificate], Certificate]:
    chain = _certificates(pair.chain, LEAF_CERTIFICATE)
    authorities = _certificates(pair.authorities, trusted) if pair.authorities else []
    try:
        return chain, _inspected(chain, authorities, names, trusted)
    except _UNREADABLE as error:
        raise Unusable(f"{LEAF_CERTIFICATE} or {trusted} cannot be decoded: {error}") from error


def _inspected(
    chain: Sequence[x509.Certificate], authorities: Sequence[x509.Certificate], names: frozenset[str], trusted: str
) -> Certificate:
    leaf = chain[0]
    own_names = _names(leaf)
    # Certificates behind the first one that an authority signed are not needed.
    signed = next((at for at, one in enumerate(chain) if _signers(one, authorities)), len(chain) - 1)
    needed = chain[: signed + 1]
    # Of several (a CA is being changed) any one that signed is enough; every intermediate is needed.
    signers = _signers(needed[-1], authorities)
    ends = [max(one.not_valid_after_utc for one in signers)] if signers else []
    ends += [one.not_valid_after_utc for one in needed[1:]]
    problems = [f"{LEAF_CERTIFICATE} lacks the name {name}" for name in sorted(names) if not _has(own_names, name)]
    if not own_names:
        problems = [f"{LEAF_CERTIFICATE} has no subject alternative name; clients ignore the common name"]
    if not _may_serve(leaf):
        problems.append(f"{LEAF_CERTIFICATE} is not for serving: extended key usage lacks serverAuth")
    unsigned = [number for number, pair in enumerate(itertools.pairwise(chain), 1) if not _issued_by(*pair)]
    if unsigned:
        problems.append(f"{LEAF_CERTIFICATE}: certificate {unsigned[0]} is not signed by the one after it")
    elif authorities and not signers:
        problems.append(f"{LEAF_CERTIFICATE} is not signed by any certificate in {trusted}")
    return Certificate(
        own_names, leaf.not_valid_before_utc, leaf.not_valid_after_utc, tuple(problems), min(ends, default=None)
    )


def _signers(certificate: x509.Certificate, authorities: Sequence[x509.Certificate]) -> list[x509.Certificate]:
    return [one for one in authorities if certificate == one or _issued_by(certificate, one)]


def _has(own_names: frozenset[str], name: str) -> bool:
    """Return whether a client accepts a certificate with these names under a name; `*` stands for the first label."""
    known = {one.lower() for one in own_names}
    _, dot, rest = name.lower().partition(".")
    return name.lower() in known or bool(dot and f"*.{rest}" in known)


def _may_serve(leaf: x509.Certificate) -> bool:
    try:
        usages = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.SERVER_AUTH in usages or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usages


def _issued_by(subject: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Return whether Go finds that one certificate signed another (crypto/x509 `CheckSignatureFrom`, `isValid`)."""
    if not _may_sign(issuer) or isinstance(subject.signature_hash_algorithm, hashes.SHA1 | hashes.MD5):
        return False
    try:
        subject.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _may_sign(issuer: x509.Certificate) -> bool:
    if issuer.version is x509.Version.v1:
        return True
    try:
        is_authority = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False
    try:
        return is_authority and issuer.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        return is_authority


def _names(leaf: x509.Certificate) -> frozenset[str]:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = (str(address) for address in names.get_values_for_type(x509.IPAddress))
    return frozenset([*names.get_values_for_type(x509.DNSName), *addresses])


def _certificates(pem: bytes, file: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except _UNREADABLE as error:
        raise Unusable(f"{file} contains no certificate in PEM: {error}") from error


def _builder(
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


def _general_name(name: str) -> x509.GeneralName:
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


def _respond() -> None:
    """Inspect the pair that standard input holds: see `Question`."""
    question = json.decode(sys.stdin.buffer.read(), type=Question)
    try:
        inspection = Inspection(inspect(question.pair, question.names))
    except Unusable as problem:
        inspection = Inspection(unusable=str(problem))
    sys.stdout.buffer.write(json.encode(inspection))


if __name__ == "__main__":
    _respond()
