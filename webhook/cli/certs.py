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
from webhook.cli import json_text
from webhook.cli.arguments import days, directories, format_option, life
from webhook.cli.failure import Failure
from webhook.cli.lazy_group import Command
from webhook.cli.terminal import paint_for

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


@click.command("certs", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("directory", default="certs", metavar="[DIR]", shell_complete=directories)
@click.option("--service", metavar="NAME", help=f"name of the Service (default: {DEFAULT_NAME})")
@click.option("--namespace", metavar="N", help=f"its namespace (default: {DEFAULT_NAME})")
@click.option("--san", "more_names", multiple=True, metavar="NAME", help="one more DNS name or IP address")
@click.option(
    "--days",
    type=days,
    metavar="N",
    default=LEAF_DAYS,
    help=f"days that the serving certificate is valid (default: {LEAF_DAYS})",
)
@click.option("--new-ca", is_flag=True, help="replace the CA: API servers need the new caBundle first")
@click.option("--check", is_flag=True, help="say whether the files are good and have the given names; write nothing")
@click.option("--ca-bundle", is_flag=True, help="print ca.crt in base64; write nothing")
@click.option(
    "--within",
    type=life,
    metavar="TIME",
    help="with --check: renew if the certificate ends within this time, such as 14d",
)
@format_option("with --check: json prints one line")
def command(*, directory: str, check: bool, ca_bundle: bool, within: float | None, output: str, **given: Any) -> int:  # noqa: ANN401 - what `Wanted` names and types
    """Do what the flags say; raises Failure."""
    if check and ca_bundle:
        raise Failure("--check and --ca-bundle exclude each other")
    if not check and (within is not None or output == "json"):
        raise Failure("--within and --format belong to --check")
    wanted = Wanted(Path(directory), **given)
    if check:
        return _check(wanted, within, output)
    if ca_bundle:
        return _print_bundle(wanted.directory)
    return _make(wanted)


class Wanted(Struct, frozen=True):
    """What certificates to make, or to find."""

    directory: Path
    service: str | None
    namespace: str | None
    more_names: tuple[str, ...]
    days: float
    new_ca: bool

    @property
    def names(self) -> list[str]:
        """Every name to sign."""
        return [
            *service_names(self.service or DEFAULT_NAME, self.namespace or DEFAULT_NAME),
            *self.more_names,
        ]

    @property
    def names_given(self) -> frozenset[str]:
        """The names to look for: of the Service, the one that API servers check."""
        given = set(self.more_names)
        if self.service or self.namespace:
            given.add(f"{self.service or DEFAULT_NAME}.{self.namespace or DEFAULT_NAME}.svc")
        return frozenset(given)


def _make(wanted: Wanted) -> int:
    directory, names = wanted.directory, wanted.names
    now = dt.datetime.now(dt.UTC)
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        authority, done = _authority(directory, now, replace=wanted.new_ca)
        leaf = issue_leaf(authority, names, wanted.days, now)
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
    if authority.certificate.not_valid_after_utc < now + dt.timedelta(days=wanted.days):
        print(f"{paint.yellow('soon')}: the CA ends before {wanted.days:g} days are over; plan --new-ca")
    return GOOD


def _authority(directory: Path, now: dt.datetime, *, replace: bool) -> tuple[Authority, str]:
    """The CA to sign with, and what was done about it. An existing CA is replaced only on request."""
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


def _check(wanted: Wanted, within: float | None, output: str) -> int:
    directory = wanted.directory
    now = dt.datetime.now(dt.UTC)
    try:
        certificate = inspect(read_pair(directory), now, wanted.names_given)
        problems = certificate.problems
    except Unusable as problem:
        certificate, problems = None, (str(problem),)
    state = _state(certificate, problems, now, within)
    if output == "json":
        print(json_text.line(_as_json(directory, state, certificate, problems)))
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
        "notBefore": certificate and _second(certificate.not_before),
        "notAfter": certificate and _second(certificate.not_after),
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
    days = (certificate.not_after - now) / dt.timedelta(days=1)
    return f"valid until {_day(certificate.not_after)} ({days:.0f} {'day' if round(days) == 1 else 'days'})"


def _day(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%d}"


def _second(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
