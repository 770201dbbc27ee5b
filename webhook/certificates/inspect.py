"""Says whether a certificate may serve: names, usage, key, chain and dates, from the very bytes that would serve."""

import datetime as dt
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID
from msgspec import Struct
from msgspec.structs import replace

from webhook.certificates.issue import CA_CERTIFICATE, LEAF_CERTIFICATE, LEAF_KEY

MAX_FILE: Final = 256 * 1024
"""Bytes of one PEM file: parsing a crafted one of megabytes costs seconds (CVE-2024-12401)."""

RENEW_AFTER: Final = 2 / 3
"""Share of its life after which a leaf is due."""

_WRITABLE_BY_OTHERS: Final = 0o022

_UNREADABLE: Final = (
    ValueError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""What cryptography raises for a part of a certificate: most parts are decoded only when they are asked for."""


class Unusable(Exception):  # noqa: N818 - a finding about files, shown to an operator
    """The files cannot serve; the text names the file and the reason."""


class Pair(Struct, frozen=True):
    """The files of a TLS directory, read together: PEM bytes. `authorities` is empty without a `ca.crt`."""

    chain: bytes
    key: bytes
    authorities: bytes = b""
    key_mode: int = 0


class Certificate(Struct, frozen=True):
    """An inspected leaf: its names, its dates (UTC), and its problems.

    `ca_not_after` is when its chain to a known CA ends; None if there is no known CA.
    """

    names: frozenset[str]
    not_before: dt.datetime
    not_after: dt.datetime
    problems: tuple[str, ...] = ()
    ca_not_after: dt.datetime | None = None

    @property
    def service_names(self) -> frozenset[str]:
        """The names that API servers check; a new certificate must have those of the one it replaces."""
        return frozenset(name for name in self.names if name.endswith(".svc"))

    def due(self, now: dt.datetime) -> bool:
        """Whether RENEW_AFTER of its life is over."""
        return now >= self.not_before + (self.not_after - self.not_before) * RENEW_AFTER


def read_pair(directory: Path) -> Pair:
    """Read the files of one TLS directory; raises Unusable.

    A mounted Secret is swapped by its `..data` link, which is resolved once so that all files are of one version.
    """
    swapped = directory / "..data"
    # A missing link is an ordinary directory; a dangling one fails below with its own name.
    source = swapped.resolve() if swapped.is_symlink() else directory
    chain, _ = _read(source / LEAF_CERTIFICATE)
    key, key_mode = _read(source / LEAF_KEY)
    authorities, _ = _read(source / CA_CERTIFICATE) if (source / CA_CERTIFICATE).exists() else (b"", 0)
    return Pair(chain, key, authorities, key_mode)


def inspect(pair: Pair, now: dt.datetime, names: frozenset[str] = frozenset()) -> Certificate:
    """Inspect a pair; `names` are those that it must have. Raises Unusable."""
    inspected = inspect_chain(pair.chain, pair.authorities, now, names)
    leaf = _certificates(pair.chain, LEAF_CERTIFICATE)[0]
    return replace(inspected, problems=(*inspected.problems, *_key_problems(leaf, pair)))


def inspect_chain(
    pem: bytes, authorities_pem: bytes, now: dt.datetime, names: frozenset[str] = frozenset()
) -> Certificate:
    """Inspect a chain as a client does, without its key, trusting these authorities (b"": any). Raises Unusable."""
    chain = _certificates(pem, LEAF_CERTIFICATE)
    authorities = _certificates(authorities_pem, CA_CERTIFICATE) if authorities_pem else []
    try:
        return _inspected(chain, authorities, now, names)
    except _UNREADABLE as error:
        raise Unusable(f"{LEAF_CERTIFICATE} or {CA_CERTIFICATE} cannot be decoded: {error}") from error


def _inspected(
    chain: Sequence[x509.Certificate],
    authorities: Sequence[x509.Certificate],
    now: dt.datetime,
    names: frozenset[str],
) -> Certificate:
    leaf = chain[0]
    own_names = _names(leaf)
    problems = [
        *_name_problems(own_names, names),
        *_usage_problems(leaf),
        *_chain_problems(chain, authorities),
        *_date_problems(leaf, now),
    ]
    # Of several (a CA is being changed) any one that signed is enough; every intermediate is needed.
    signers = [one for one in authorities if chain[-1] == one or _issued_by(chain[-1], one)]
    ends = [max(one.not_valid_after_utc for one in signers)] if signers else []
    ends += [one.not_valid_after_utc for one in chain[1:]]
    return Certificate(
        own_names, leaf.not_valid_before_utc, leaf.not_valid_after_utc, tuple(problems), min(ends, default=None)
    )


def _name_problems(own: frozenset[str], wanted: frozenset[str]) -> list[str]:
    if not own:
        return [f"{LEAF_CERTIFICATE} has no subject alternative name; clients ignore the common name"]
    missing = sorted(wanted - own)
    return [f"{LEAF_CERTIFICATE} lacks the name {name}" for name in missing]


def _usage_problems(leaf: x509.Certificate) -> list[str]:
    try:
        usages = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return []
    if ExtendedKeyUsageOID.SERVER_AUTH in usages or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usages:
        return []
    return [f"{LEAF_CERTIFICATE} is not for serving: extended key usage lacks serverAuth"]


def _key_problems(leaf: x509.Certificate, pair: Pair) -> list[str]:
    try:
        key = serialization.load_pem_private_key(pair.key, password=None)
        belongs = key.public_key() == leaf.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise Unusable(f"{LEAF_KEY} is not a private key in PEM without a password: {error}") from error
    if not belongs:
        raise Unusable(f"{LEAF_KEY} does not belong to {LEAF_CERTIFICATE}")
    if pair.key_mode & _WRITABLE_BY_OTHERS:
        return [f"{LEAF_KEY} is writable by others (mode {pair.key_mode:04o})"]
    return []


def _chain_problems(chain: Sequence[x509.Certificate], authorities: Sequence[x509.Certificate]) -> list[str]:
    for position, (subject, issuer) in enumerate(itertools.pairwise(chain)):
        if not _issued_by(subject, issuer):
            return [f"{LEAF_CERTIFICATE}: certificate {position + 1} is not signed by the one after it"]
    if authorities and not any(chain[-1] == one or _issued_by(chain[-1], one) for one in authorities):
        return [f"{LEAF_CERTIFICATE} is not signed by any certificate in {CA_CERTIFICATE}"]
    return []


def _date_problems(leaf: x509.Certificate, now: dt.datetime) -> list[str]:
    if now < leaf.not_valid_before_utc:
        return [f"{LEAF_CERTIFICATE} is valid only from {_date(leaf.not_valid_before_utc)}"]
    if now >= leaf.not_valid_after_utc:
        return [f"{LEAF_CERTIFICATE} expired at {_date(leaf.not_valid_after_utc)}"]
    return []


def _issued_by(subject: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        subject.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


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


def _read(path: Path) -> tuple[bytes, int]:
    """The content of a file and its mode."""
    try:
        with path.open("rb") as file:
            content, mode = file.read(MAX_FILE + 1), os.fstat(file.fileno()).st_mode & 0o777
    except OSError as error:
        raise Unusable(f"{path.name}: {error.strerror} ({path})") from error
    if len(content) > MAX_FILE:
        raise Unusable(f"{path.name} is larger than {MAX_FILE} bytes ({path})")
    return content, mode


def _date(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
