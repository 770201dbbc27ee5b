"""`lease-webhook certs`: make, renew and check the certificates of the webhook."""

import base64
import datetime as dt
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import click

from webhook.analysis.claims.words import format_count
from webhook.certificates import inspect, issue
from webhook.certificates.files import CA_CERTIFICATE, CA_KEY, LEAF_CERTIFICATE, Unusable, read_pair
from webhook.cli.options import Command, complete_directories
from webhook.cli.terminal import Failure, style
from webhook.text.commands import make_certs_command
from webhook.text.quoting import escape

DEFAULT_NAME: Final = "lease-webhook"
"""The name of the Service, and of its namespace."""

_DESCRIPTION: Final = """\
Makes a CA and a serving certificate in DIR (default: certs): ca.crt, ca.key, tls.crt, tls.key.
Run it again to renew the serving certificate under the same CA: API servers need no new caBundle.
A running server picks up the new files by itself.
"""
_EPILOG: Final = """\
Exit codes of --check:
  0  good
  1  renew soon: two thirds of the validity are over
  2  unusable

Examples:
  lease-webhook certs
  lease-webhook certs --san webhook.example
  lease-webhook certs --check && echo good
  lease-webhook certs --ca-bundle     # the line for clientConfig.caBundle
"""
_DAYS: Final = f"days that the serving certificate is valid (default: {issue.LEAF_DAYS})"


@click.command("certs", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("directory", default="certs", metavar="[DIR]", shell_complete=complete_directories)
@click.option("--service", metavar="NAME", help=f"name of the Service (default: {DEFAULT_NAME})")
@click.option("--namespace", metavar="N", help=f"its namespace (default: {DEFAULT_NAME})")
@click.option("--san", "more_names", multiple=True, metavar="NAME", help="one more DNS name or IP address")
@click.option(
    "--days", type=click.FloatRange(0, 36500, min_open=True), metavar="N", default=issue.LEAF_DAYS, help=_DAYS
)
@click.option("--new-ca", is_flag=True, help="replace the CA: API servers need the new caBundle first")
@click.option("--check", is_flag=True, help="say whether the files are good and have the given names; write nothing")
@click.option("--ca-bundle", is_flag=True, help="print ca.crt in base64; write nothing")
def command(
    *,
    directory: str,
    service: str | None,
    namespace: str | None,
    more_names: tuple[str, ...],
    days: float,
    new_ca: bool,
    check: bool,
    ca_bundle: bool,
) -> int:
    given = {"--new-ca": new_ca, "--check": check, "--ca-bundle": ca_bundle}
    acts = [option for option, is_given in given.items() if is_given]
    if len(acts) > 1:
        raise Failure(f"{' and '.join(acts)} exclude each other")
    path = Path(directory)
    own = issue.list_service_names(service or DEFAULT_NAME, namespace or DEFAULT_NAME)
    if check:
        # The one of the names of a Service that API servers check.
        checked = {name for name in own if name.endswith(".svc") and (service or namespace)}
        return _check(path, checked.union(more_names))
    if ca_bundle:
        return _print_bundle(path)
    return _make(path, list(dict.fromkeys([*own, *more_names])), days, new_ca=new_ca)


def _make(directory: Path, names: Sequence[str], days: float, *, new_ca: bool) -> int:
    now = dt.datetime.now(dt.UTC)
    if directory.is_file():
        raise Failure(f"{directory} is a file; certificates are written into a directory")
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        authority, done = _prepare_authority(directory, now, replace=new_ca)
        leaf = issue.issue_leaf(authority, names, days, now)
        issue.save(directory, leaf)
    except OSError as error:
        raise Failure(f"{directory}: {error.strerror}") from error
    except ValueError as error:
        raise Failure(f"no certificate made: {error}") from error
    ends = authority.certificate.not_valid_after_utc
    made = style("made", fg="green")
    print(f"CA           {done}: {directory / CA_CERTIFICATE}, until {ends:%Y-%m-%d}")
    until = leaf.certificate.not_valid_after_utc
    print(f"certificate  {made}: {directory / LEAF_CERTIFICATE}, until {until:%Y-%m-%d}")
    print(f"names        {', '.join(names)}")
    if ends < now + dt.timedelta(days=days):
        print(f"{style('soon', fg='yellow')}: the CA ends before {days:g} days are over; plan --new-ca")
    return 0


def _prepare_authority(directory: Path, now: dt.datetime, *, replace: bool) -> tuple[issue.Issued, str]:
    """Return the CA to sign with, and what was done about it. An existing CA is replaced only on request."""
    files = {CA_CERTIFICATE, CA_KEY}
    there = {name for name in files if (directory / name).exists()}
    if replace or not there:
        authority = issue.create_authority(now)
        issue.save(directory, authority, CA_KEY, CA_CERTIFICATE)
        return authority, "replaced; update caBundle" if there else "made"
    if missing := files - there:
        raise Failure(f"{directory} has {min(there)} but no {min(missing)}; put it back, or use --new-ca")
    authority = issue.load_authority(directory)
    if authority.certificate.not_valid_after_utc <= now:
        raise Failure(f"{directory / CA_CERTIFICATE} expired; use --new-ca and give API servers the new caBundle")
    return authority, "kept"


def _check(directory: Path, names: Collection[str]) -> int:
    now = dt.datetime.now(dt.UTC)
    try:
        certificate = inspect.inspect(read_pair(directory), frozenset(names)).check_dates(now)
        problems = certificate.problems
    except Unusable as problem:
        problems = (str(problem),)
    for text in problems:
        print(f"{style('unusable', fg='red')}: {escape(text)}")
    if problems:
        return 2
    left = round((certificate.not_after - now) / dt.timedelta(days=1))
    life = f"valid until {certificate.not_after:%Y-%m-%d} ({format_count(left, 'day')})"
    if certificate.is_due(now):
        print(f"{style('renew soon', fg='yellow')}: {life}; run `{make_certs_command(directory)}`")
        return 1
    print(f"{style('good', fg='green')}: {life}, for {escape(', '.join(sorted(certificate.names)))}")
    return 0


def _print_bundle(directory: Path) -> int:
    path = directory / CA_CERTIFICATE
    try:
        pem = path.read_bytes()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}; make it with `{make_certs_command(directory)}`") from error
    if b"-----BEGIN CERTIFICATE-----" not in pem:
        raise Failure(f"{path} contains no PEM certificate")
    print(base64.b64encode(pem).decode("ascii"))
    return 0
