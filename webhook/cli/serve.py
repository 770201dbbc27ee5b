"""`lease-webhook serve`: answer the API server until stopped."""

import json
from typing import Any, Final

import click

from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import API_VERSION, PolicyError
from webhook.cli.options import Command, complete_directories, complete_files, complete_policies, parse_address
from webhook.cli.terminal import Failure, needing_the_server
from webhook.server.settings import Options

_DESCRIPTION: Final = """\
Serves admission reviews over TLS in the foreground, and probes and metrics on a plain port.
Certificates and a policy file may change while it runs. SIGTERM drains and stops it.
"""
_EPILOG: Final = """\
Example:
  lease-webhook certs && lease-webhook serve
  curl --cacert certs/ca.crt -H 'Content-Type: application/json' \\
    -d @review.json https://localhost:8443/validate
"""
DEFAULTS: Final = Options()
_BIND: Final = f"for reviews, TLS (default: {DEFAULTS.bind})"
_TLS_DIR: Final = f"tls.crt, tls.key, ca.crt (default: {DEFAULTS.tls_dir})"
_POLICY: Final = "a preset or a policy file (default: standard)"
_DOCS_URL: Final = (
    "https address of pages about the rules, for denials and warnings, if the policy file has none; "
    "{rule} in it stands for the rule's id"
)
_WORKERS: Final = f"processes (default: {DEFAULTS.workers})"
_HEALTH: Final = f"for /livez, /readyz and /metrics, plain (default: {DEFAULTS.health_bind})"
_CAPTURE: Final = "keep the latest reviews in this directory, for check (default: off)"
_CLIENT_CA: Final = "require clients to present a certificate of this CA (default: off)"
_NAMES: Final = "common or DNS name in client certificates that may send reviews, may be repeated; others get 403"
_NO_AUDIT: Final = "do not log findings of mode audit; default: one line a minute for each rule, lease and user"


def _parse_docs_url(text: str) -> str:
    """Return an address that a policy file could also have; "" is none."""
    try:
        return parse(json.dumps({"apiVersion": API_VERSION, "docs_url": text})).docs_url if text else ""
    except PolicyError as error:
        raise click.BadParameter(error.problem) from None


@click.command("serve", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.option("--bind", type=parse_address, default=DEFAULTS.bind, metavar="ADDRESS", help=_BIND)
@click.option("--tls-dir", default=DEFAULTS.tls_dir, metavar="DIR", help=_TLS_DIR, shell_complete=complete_directories)
@click.option("--policy", default="", metavar="NAME|FILE", help=_POLICY, shell_complete=complete_policies)
@click.option("--docs-url", type=_parse_docs_url, default="", metavar="URL", help=_DOCS_URL)
@click.option("--workers", type=click.IntRange(1), default=DEFAULTS.workers, metavar="N", help=_WORKERS)
@click.option("--health-bind", type=parse_address, default=DEFAULTS.health_bind, metavar="ADDRESS", help=_HEALTH)
@click.option("--capture", default="", metavar="DIR", help=_CAPTURE, shell_complete=complete_directories)
@click.option("--client-ca", default="", metavar="FILE", help=_CLIENT_CA, shell_complete=complete_files)
@click.option("--client-name", "client_names", multiple=True, metavar="NAME", help=_NAMES)
@click.option("--no-audit-lines", "no_audit_lines", is_flag=True, help=_NO_AUDIT)
def command(*, client_names: tuple[str, ...], no_audit_lines: bool, **given: Any) -> int:  # noqa: ANN401 - options that `Options` names and types
    options = Options(client_names=client_names, audit_lines=not no_audit_lines, **given)
    if bool(options.client_ca) != bool(client_names):
        raise Failure("--client-ca and --client-name need each other: a CA alone would let in all that it signed")
    with needing_the_server("serve"):
        from webhook.server.serve import CannotServeError, serve  # noqa: PLC0415
    try:
        serve(options)
    except CannotServeError as error:
        raise Failure(str(error)) from error
    return 0
