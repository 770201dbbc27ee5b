"""`lease-webhook certs`: make, renew and check the certificates of the webhook."""

import base64
import datetime as dt
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
from msgspec import Struct

from webhook.api.text import escape
from webhook.audit import command_words
from webhook.certificates.inspect import Certificate, Unusable, inspect, read_pair
from webhook.certificates.issue import (
    CA_CERTIFICATE,
    CA_KEY,
    LEAF_CERTIFICATE,
    LEAF_DAYS,
    Authority,
    create_authority,
    issue_leaf,
    load_authority,
    save_authority,
    save_leaf,
    service_names,
)
from webhook.cli.options import Command, days, directories, format_option, life
from webhook.cli.terminal import Failure, json_line, paint_for
from webhook.explanation.words import count

DEFAULT_NAME: Final = "lease-webhook"
"""Of the Service, and of its namespace."""

GOOD: Final = 0
RENEW_SOON: Final = 1
UNUSABLE: Final = 2

_DESCRIPTION: Final = """\
Makes a CA and a serving certificate in DIR: ca.crt, ca.key, tls.crt, tls.key.
Run it again to renew the serving certificate under the same CA: API servers need no new caBundle.
A running server picks up the new files by itself.
"""
_EPILOG: Final = """\
Exit codes of --check:
  0  good
  1  renew soon: two thirds of the validity are over, or it ends --within
  2  unusable

Examples:
  lease-webhook certs
  lease-webhook certs --san webhook.example
  lease-webhook certs --check --within 14d && echo good
  lease-webhook certs --ca-bundle     # the line for clientConfig.caBundle
"""
_DAYS: Final = f"days that the serving certificate is valid (default: {LEAF_DAYS})"
_WITHIN: Final = "with --check: renew if the certificate ends within this time, such as 14d"


@click.command("certs", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("directory", default="certs", metavar="[DIR]", shell_complete=directories)
@click.option("--service", metavar="NAME", help=f"name of the Service (default: {DEFAULT_NAME})")
@click.option("--namespace", metavar="N", help=f"its namespace (default: {DEFAULT_NAME})")
@click.option("--san", "more_names", multiple=True, metavar="NAME", help="one more DNS name or IP address")
@click.option("--days", type=days, metavar="N", default=LEAF_DAYS, help=_DAYS)
@click.option("--new-ca", is_flag=True, help="replace the CA: API servers need the new caBundle first")
@click.option("--check", is_flag=True, help="say whether the files are good and have the given names; write nothing")
@click.option("--ca-bundle", is_flag=True, help="print ca.crt in base64; write nothing")
@click.option("--within", type=life, metavar="TIME", help=_WITHIN)
@format_option("with --check: json prints one line")
def command(*, directory: str, check: bool, ca_bundle: bool, within: float | None, output: str, **given: Any) -> int:  # noqa: ANN401 - what `CertificateSpec` names and types
    """Do what the flags say; raises Failure."""
    if check and ca_bundle:
        raise Failure("--check and --ca-bundle exclude each other")
    if not check and (within is not None or output == "json"):
        raise Failure("--within and --format belong to --check")
    spec = CertificateSpec(Path(directory), **given)
    if check:
        return _check(spec, within, output)
    if ca_bundle:
        return _print_bundle(spec.directory)
    return _make(spec)


class CertificateSpec(Struct, frozen=True):
    """The certificates to make, or to check."""

    directory: Path
    service: str | None
    namespace: str | None
    more_names: tuple[str, ...]
    days: float
    new_ca: bool

    @property
    def names(self) -> list[str]:
        """Every name to sign."""
        return [*service_names(self.service or DEFAULT_NAME, self.namespace or DEFAULT_NAME), *self.more_names]

    @property
    def names_given(self) -> frozenset[str]:
        """The names that must be there: of the Service, the one that API servers check."""
        given = set(self.more_names)
        if self.service or self.namespace:
            given.add(f"{self.service or DEFAULT_NAME}.{self.namespace or DEFAULT_NAME}.svc")
        return frozenset(given)


def _make(spec: CertificateSpec) -> int:
    directory, names = spec.directory, spec.names
    now = dt.datetime.now(dt.UTC)
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        authority, done = _authority(directory, now, replace=spec.new_ca)
        leaf = issue_leaf(authority, names, spec.days, now)
        save_leaf(directory, leaf)
    except OSError as error:
        raise Failure(f"{directory}: {error.strerror}") from error
    except ValueError as error:
        raise Failure(f"no certificate made: {error}") from error
    paint = paint_for(sys.stdout)
    print(f"CA           {done}: {directory / CA_CERTIFICATE}, until {_day(authority.certificate.not_valid_after_utc)}")
    until = _day(leaf.certificate.not_valid_after_utc)
    print(f"certificate  {paint.green('made')}: {directory / LEAF_CERTIFICATE}, until {until}")
    print(f"names        {', '.join(dict.fromkeys(names))}")
    if authority.certificate.not_valid_after_utc < now + dt.timedelta(days=spec.days):
        print(f"{paint.yellow('soon')}: the CA ends before {spec.days:g} days are over; plan --new-ca")
    return GOOD


def _authority(directory: Path, now: dt.datetime, *, replace: bool) -> tuple[Authority, str]:
    """Return the CA to sign with, and what was done about it. An existing CA is replaced only on request."""
    there = [name for name in (CA_CERTIFICATE, CA_KEY) if (directory / name).exists()]
    if there and not replace:
        if len(there) == 1:
            missing = CA_KEY if CA_CERTIFICATE in there else CA_CERTIFICATE
            raise Failure(f"{directory} has {there[0]} but no {missing}; put it back, or use --new-ca")
        authority = load_authority(directory)
        if authority.certificate.not_valid_after_utc <= now:
            raise Failure(f"{directory / CA_CERTIFICATE} expired; use --new-ca and give API servers the new caBundle")
        return authority, "kept"
    authority = create_authority(now)
    save_authority(directory, authority)
    return authority, "replaced; update caBundle" if there else "made"


def _check(spec: CertificateSpec, within: float | None, output: str) -> int:
    directory = spec.directory
    now = dt.datetime.now(dt.UTC)
    try:
        certificate = inspect(read_pair(directory), now, spec.names_given)
        problems = certificate.problems
    except Unusable as problem:
        certificate, problems = None, (str(problem),)
    state = _state(certificate, problems, now, within)
    if output == "json":
        print(json_line(_as_json(directory, state, certificate, problems)))
    else:
        _print_state(directory, state, certificate, problems, now)
    return state


def _state(certificate: Certificate | None, problems: Sequence[str], now: dt.datetime, within: float | None) -> int:
    if certificate is None or problems:
        return UNUSABLE
    ends_soon = within is not None and certificate.not_after - now < dt.timedelta(days=within)
    return RENEW_SOON if ends_soon or certificate.due(now) else GOOD


def _print_state(
    directory: Path, state: int, certificate: Certificate | None, problems: Sequence[str], now: dt.datetime
) -> None:
    paint = paint_for(sys.stdout)
    for text in problems:
        print(f"{paint.red('unusable')}: {escape(text)}")
    if certificate and state == RENEW_SOON:
        print(f"{paint.yellow('renew soon')}: {_life(certificate, now)}; run `{command_words.certs(directory)}`")
    elif certificate and state == GOOD:
        print(f"{paint.green('good')}: {_life(certificate, now)}, for {escape(', '.join(sorted(certificate.names)))}")


def _as_json(
    directory: Path, state: int, certificate: Certificate | None, problems: Sequence[str]
) -> dict[str, object]:
    return {
        "directory": str(directory),
        "state": {GOOD: "good", RENEW_SOON: "renew soon", UNUSABLE: "unusable"}[state],
        "problems": problems,
        "names": sorted(certificate.names) if certificate else [],
        "notBefore": certificate and f"{certificate.not_before:%Y-%m-%dT%H:%M:%SZ}",
        "notAfter": certificate and f"{certificate.not_after:%Y-%m-%dT%H:%M:%SZ}",
    }


def _print_bundle(directory: Path) -> int:
    path = directory / CA_CERTIFICATE
    try:
        pem = path.read_bytes()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}; make it with `{command_words.certs(directory)}`") from error
    if b"-----BEGIN CERTIFICATE-----" not in pem:
        raise Failure(f"{path} contains no PEM certificate")
    print(base64.b64encode(pem).decode("ascii"))
    return GOOD


def _life(certificate: Certificate, now: dt.datetime) -> str:
    left = round((certificate.not_after - now) / dt.timedelta(days=1))
    return f"valid until {_day(certificate.not_after)} ({count(left, 'day')})"


def _day(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%d}"
