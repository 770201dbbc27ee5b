"""`lease-webhook serve`: answer the API server until told to stop."""

import argparse
from typing import Final

from webhook.cli.arguments import count, endpoint
from webhook.cli.failure import Failure
from webhook.policy_file import PolicyFileError
from webhook.server.gunicorn_app import CannotServeError, serve
from webhook.server.settings import DEFAULT_WORKERS, Options

_DESCRIPTION: Final = """\
Serves admission reviews over TLS in the foreground, and probes and metrics on a plain port.
Certificates and a policy file may change while it runs. SIGTERM drains and ends it.
"""
_EPILOG: Final = """\
example:
  lease-webhook certs && lease-webhook serve
  curl --cacert certs/ca.crt -H 'Content-Type: application/json' -d @review.json https://localhost:8443/validate
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `serve`."""
    parser = subparsers.add_parser(
        "serve",
        help="answer the API server over TLS",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    flag = parser.add_argument
    flag(
        "--bind",
        type=_address,
        default=Options().bind,
        metavar="ADDRESS",
        help="for reviews, TLS (default: %(default)s)",
    )
    flag("--tls-dir", default=Options().tls_dir, metavar="DIR", help="tls.crt, tls.key, ca.crt (default: %(default)s)")
    flag("--policy", default="", metavar="NAME|FILE", help="a preset or a policy file (default: standard)")
    flag("--workers", type=count, default=DEFAULT_WORKERS, metavar="N", help="processes (default: %(default)s)")
    flag(
        "--health-bind",
        type=_address,
        default=Options().health_bind,
        metavar="ADDRESS",
        help="for /livez, /readyz and /metrics, plain (default: %(default)s)",
    )
    flag("--capture", default="", metavar="DIR", help="keep the latest reviews there, to replay them (default: off)")
    flag("--client-ca", default="", metavar="FILE", help="ask clients for a certificate of this CA (default: off)")
    flag(
        "--client-name",
        action="extend",
        nargs="+",
        default=[],
        metavar="NAME",
        help="common or DNS names in client certificates that may ask; others get 403",
    )
    flag(
        "--no-audit-lines",
        dest="audit_lines",
        action="store_false",
        help="do not log findings of mode audit (default: one line a minute for each rule, lease and user)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve; raises Failure where it cannot start."""
    if bool(args.client_ca) != bool(args.client_name):
        raise Failure("--client-ca and --client-name need each other: a CA alone would let in all that it signed")
    options = Options(
        bind=args.bind,
        tls_dir=args.tls_dir,
        policy=args.policy,
        workers=args.workers,
        health_bind=args.health_bind,
        capture=args.capture,
        client_ca=args.client_ca,
        client_names=tuple(args.client_name),
        audit_lines=args.audit_lines,
    )
    try:
        serve(options)
    except (CannotServeError, PolicyFileError) as error:
        raise Failure(str(error)) from error
    return 0


def _address(text: str) -> str:
    endpoint(text)
    return text
