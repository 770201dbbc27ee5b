"""Says whether a certificate may serve: names, usage, key, chain and dates, from the very bytes that would serve."""

import datetime as dt
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID
from msgspec import Struct
from msgspec.structs import replace

from webhook.certificates.issue import CA_CERTIFICATE, LEAF_CERTIFICATE, LEAF_KEY

LARGEST_FILE: Final = 256 * 1024
"""Bytes of one PEM file: parsing a crafted one of megabytes costs seconds (CVE-2024-12401)."""

RENEW_AFTER: Final = 2 / 3
"""Share of its life after which a leaf is due."""

_WRITABLE_BY_OTHERS: Final = 0o022


class Unusable(Exception):  # noqa: N818 - it is a finding about files, told to an operator
    """The files cannot serve; the text says which one and why."""


class Pair(Struct, frozen=True):
    """What stands in a TLS directory: PEM bytes, read together. `authorities` is empty without a `ca.crt`."""

    chain: bytes
    key: bytes
    authorities: bytes = b""
    key_mode: int = 0


class Certificate(Struct, frozen=True):
    """A leaf that was looked at: its names, its dates (UTC), and all that is wrong with it.

    `ca_not_after` is when no CA beside it signs for it any more; None where there is none.
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
        """Whether two thirds of its life are over."""
        return now >= self.not_before + (self.not_after - self.not_before) * RENEW_AFTER


def read_pair(directory: Path) -> Pair:
    """Read the files of one TLS directory; raises Unusable.

    A mounted Secret is swapped by its `..data` link, which is resolved once so that all files are of one version.
    """
    swapped = directory / "..data"
    # A missing link is an ordinary directory; a dangling one fails below with its own name.
    source = swapped.resolve() if swapped.is_symlink() else directory
    authority = source / CA_CERTIFICATE
    return Pair(
        chain=_read(source / LEAF_CERTIFICATE),
        key=_read(source / LEAF_KEY),
        authorities=_read(authority) if authority.exists() else b"",
        key_mode=_mode(source / LEAF_KEY),
    )


def inspect(pair: Pair, now: dt.datetime, names: frozenset[str] = frozenset()) -> Certificate:
    """Look at a pair; `names` are those that it must have. Raises Unusable where nothing can be said about it."""
    looked = inspect_chain(pair.chain, pair.authorities, now, names)
    leaf = _certificates(pair.chain, LEAF_CERTIFICATE)[0]
    return replace(looked, problems=(*looked.problems, *_key_problems(leaf, pair)))


def inspect_chain(
    pem: bytes, authorities_pem: bytes, now: dt.datetime, names: frozenset[str] = frozenset()
) -> Certificate:
    """Look at a chain as a client does, which has no key and trusts these authorities (b"": any). Raises Unusable."""
    chain = _certificates(pem, LEAF_CERTIFICATE)
    authorities = _certificates(authorities_pem, CA_CERTIFICATE) if authorities_pem else []
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
    except (ValueError, TypeError) as error:
        raise Unusable(f"{LEAF_KEY} is not a private key in PEM without a password: {error}") from error
    if key.public_key() != leaf.public_key():
        raise Unusable(f"{LEAF_KEY} does not belong to {LEAF_CERTIFICATE}")
    if pair.key_mode & _WRITABLE_BY_OTHERS:
        return [f"{LEAF_KEY} may be written by others than its owner (mode {pair.key_mode:04o})"]
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
    except (ValueError, TypeError, InvalidSignature):
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
    except ValueError as error:
        raise Unusable(f"{file} holds no certificate in PEM: {error}") from error


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise Unusable(f"{path.name}: {error.strerror} ({path})") from error
    if len(content) > LARGEST_FILE:
        raise Unusable(f"{path.name} is larger than {LARGEST_FILE} bytes ({path})")
    return content


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode & 0o777
    except OSError as error:
        raise Unusable(f"{path.name}: {error.strerror} ({path})") from error


def _date(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
