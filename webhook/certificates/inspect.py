"""Inspect certificates of a webhook as its clients do: whether the files of a pair may serve.

As a program, `python -m webhook.certificates.inspect`, it reads an `InspectionRequest` and writes an `Inspection`, both
as JSON.
"""

import itertools
import sys
from collections.abc import Sequence
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID
from msgspec import json
from msgspec.structs import replace

from webhook.certificates.files import (
    CA_CERTIFICATE,
    LEAF_CERTIFICATE,
    LEAF_KEY,
    Certificate,
    Inspection,
    InspectionRequest,
    Pair,
    Unusable,
)

_UNREADABLE: Final = (
    ValueError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""Errors that cryptography raises for a part of a certificate: most parts are decoded only when they are asked for."""


def inspect(pair: Pair, names: frozenset[str] = frozenset(), trusted: str = CA_CERTIFICATE) -> Certificate:
    """Inspect a pair as a client does, trusting its authorities; `names` are those it must have. Raises Unusable.

    Its dates are read; `Certificate.check_dates` compares them. `trusted` is what the authorities are called.
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


def make_inspection(request: InspectionRequest) -> Inspection:
    """Inspect a pair; the result is a value also if it is unusable."""
    try:
        return Inspection(inspect(request.pair, request.names))
    except Unusable as problem:
        return Inspection(unusable=str(problem))


def inspect_chain(pair: Pair, names: frozenset[str], trusted: str) -> Certificate:
    """Inspect a pair without its key, which stays with the server."""
    return _inspect_chain(pair, names, trusted)[1]


def _inspect_chain(pair: Pair, names: frozenset[str], trusted: str) -> tuple[list[x509.Certificate], Certificate]:
    chain = _load_certificates(pair.chain, LEAF_CERTIFICATE)
    authorities = _load_certificates(pair.authorities, trusted) if pair.authorities else []
    try:
        return chain, _inspect_leaf(chain, authorities, names, trusted)
    except _UNREADABLE as error:
        raise Unusable(f"{LEAF_CERTIFICATE} or {trusted} cannot be decoded: {error}") from error


def _inspect_leaf(
    chain: Sequence[x509.Certificate], authorities: Sequence[x509.Certificate], names: frozenset[str], trusted: str
) -> Certificate:
    leaf = chain[0]
    own_names = _list_names(leaf)
    # Certificates behind the first one that an authority signed are not needed.
    signed = next((at for at, one in enumerate(chain) if _find_signers(one, authorities)), len(chain) - 1)
    needed = chain[: signed + 1]
    # While a CA is being replaced, a signature by any of them is enough; every intermediate is needed.
    signers = _find_signers(needed[-1], authorities)
    ends = [max(one.not_valid_after_utc for one in signers)] if signers else []
    ends += [one.not_valid_after_utc for one in needed[1:]]
    problems = [f"{LEAF_CERTIFICATE} lacks the name {name}" for name in sorted(names) if not _has_name(own_names, name)]
    if not own_names:
        problems = [f"{LEAF_CERTIFICATE} has no subject alternative name; clients ignore the common name"]
    if not _may_serve(leaf):
        problems.append(f"{LEAF_CERTIFICATE} is not for serving: extended key usage lacks serverAuth")
    unsigned = [number for number, pair in enumerate(itertools.pairwise(chain), 1) if not _is_issued_by(*pair)]
    if unsigned:
        problems.append(f"{LEAF_CERTIFICATE}: certificate {unsigned[0]} is not signed by the one after it")
    elif authorities and not signers:
        problems.append(f"{LEAF_CERTIFICATE} is not signed by any certificate in {trusted}")
    return Certificate(
        own_names, leaf.not_valid_before_utc, leaf.not_valid_after_utc, tuple(problems), min(ends, default=None)
    )


def _find_signers(certificate: x509.Certificate, authorities: Sequence[x509.Certificate]) -> list[x509.Certificate]:
    return [one for one in authorities if certificate == one or _is_issued_by(certificate, one)]


def _has_name(own_names: frozenset[str], name: str) -> bool:
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


def _is_issued_by(subject: x509.Certificate, issuer: x509.Certificate) -> bool:
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


def _list_names(leaf: x509.Certificate) -> frozenset[str]:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = (str(address) for address in names.get_values_for_type(x509.IPAddress))
    return frozenset([*names.get_values_for_type(x509.DNSName), *addresses])


def _load_certificates(pem: bytes, file: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except _UNREADABLE as error:
        raise Unusable(f"{file} contains no certificate in PEM: {error}") from error


def _respond() -> None:
    """Inspect the pair that standard input holds: see `InspectionRequest`."""
    request = json.decode(sys.stdin.buffer.read(), type=InspectionRequest)
    sys.stdout.buffer.write(json.encode(make_inspection(request)))


if __name__ == "__main__":
    _respond()
