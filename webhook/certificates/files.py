"""The files of a TLS directory, and what `webhook.certificates.inspect` finds in them."""

import datetime as dt
import os
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

CA_CERTIFICATE: Final = "ca.crt"
CA_KEY: Final = "ca.key"
LEAF_CERTIFICATE: Final = "tls.crt"
LEAF_KEY: Final = "tls.key"

MAX_FILE: Final = 256 * 1024
"""Bytes of one PEM file: parsing a crafted one of megabytes costs seconds (CVE-2024-12401)."""


class Unusable(Exception):  # noqa: N818 - a finding about files, shown to an operator
    """The files cannot serve; the text names the file and the reason."""


class Pair(Struct, frozen=True):
    """The files of a TLS directory, read together: PEM bytes. `authorities` is empty without a `ca.crt`."""

    chain: bytes
    key: bytes
    authorities: bytes = b""
    key_mode: int = 0


class Certificate(Struct, frozen=True):
    """An inspected leaf; dates are in UTC. `ca_not_after` is when its chain to a known CA ends, None without one."""

    names: frozenset[str]
    not_before: dt.datetime
    not_after: dt.datetime
    problems: tuple[str, ...] = ()
    ca_not_after: dt.datetime | None = None

    @property
    def service_names(self) -> frozenset[str]:
        """The names that API servers check; a new certificate must have those of the one it replaces."""
        return frozenset(name for name in self.names if name.endswith(".svc"))

    def check_dates(self, now: dt.datetime) -> "Certificate":
        """Return the certificate with what is wrong with its dates then."""
        if now < self.not_before:
            problem = f"{LEAF_CERTIFICATE} is valid only from {self.not_before:%FT%TZ}"
        elif now >= self.not_after:
            problem = f"{LEAF_CERTIFICATE} expired at {self.not_after:%FT%TZ}"
        else:
            return self
        return replace(self, problems=(*self.problems, problem))

    def is_due(self, now: dt.datetime) -> bool:
        """Return whether two thirds of its life are over, so that it should be renewed."""
        return now >= self.not_before + (self.not_after - self.not_before) * 2 / 3


class InspectionRequest(Struct, frozen=True):
    """The arguments of `inspect`, which `python -m webhook.certificates.inspect` reads as JSON."""

    pair: Pair
    names: frozenset[str]


class Inspection(Struct, frozen=True):
    """The result of `inspect`, which that program writes as JSON: a certificate, or the text of Unusable."""

    certificate: Certificate | None = None
    unusable: str = ""


def read_pair(directory: Path, chain_name: str = LEAF_CERTIFICATE, key_name: str = LEAF_KEY) -> Pair:
    """Read the files of a TLS directory in one version: the kubelet swaps the link `..data`. Raises Unusable."""
    swapped = directory / "..data"
    # A missing link is an ordinary directory; a dangling one fails below with its own name.
    source = swapped.resolve() if swapped.is_symlink() else directory
    chain, _ = read_pem(source / chain_name)
    key, key_mode = read_pem(source / key_name)
    authorities, _ = read_pem(source / CA_CERTIFICATE) if (source / CA_CERTIFICATE).exists() else (b"", 0)
    return Pair(chain, key, authorities, key_mode)


def read_pem(path: Path) -> tuple[bytes, int]:
    """Return a file and its mode. Raises Unusable, also for a file that is larger than MAX_FILE."""
    try:
        with path.open("rb") as file:
            content, mode = file.read(MAX_FILE + 1), os.fstat(file.fileno()).st_mode & 0o777
    except OSError as error:
        raise Unusable(f"{path.name}: {error.strerror} ({path})") from error
    if len(content) > MAX_FILE:
        raise Unusable(f"{path.name} is larger than {MAX_FILE} bytes ({path})")
    return content, mode
