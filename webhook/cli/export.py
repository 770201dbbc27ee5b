"""`lease-webhook export fence`: print what an API server needs to hold a fence; nothing is applied."""

import argparse
import json
from typing import Any, Final

from msgspec.structs import asdict

from webhook.api.text import escape, quote
from webhook.cli.failure import Failure
from webhook.fence.manifests import yaml_text
from webhook.policy.document import parse
from webhook.policy.error import PolicyError
from webhook.policy.fence_schema_types import FenceSetting
from webhook.policy.fences import Fence
from webhook.policy.messages import nearest
from webhook.policy.schema_types import API_VERSION
from webhook.policy_file import PolicyFileError, load

_DESCRIPTION: Final = """\
Prints a ValidatingAdmissionPolicy and its binding for each fence of a policy file, or for one fence that is given by
flags. A fence lets only the holder of a lease write the listed resources, among the listed service accounts; the API
server enforces it without a webhook. Nothing is applied: read it, then pipe it to kubectl.
"""
_EPILOG: Final = """\
examples:
  lease-webhook export fence policy.yaml | kubectl apply --server-side -f -
  lease-webhook export fence policy.yaml --name shop-operator --mode warn      a first roll-out: warn, refuse nothing
  lease-webhook export fence --lease shop/operator --writer shop/operator --resource configmaps,deployments.apps
"""
_FLAGS: Final = {
    "lease": "--lease",
    "writers": "--writer",
    "resources": "--resource",
    "holder": "--holder",
    "operations": "--operation",
    "namespaces": "--namespace",
    "mode": "--mode",
    "when_unheld": "--when-unheld",
    "missing_lease": "--missing-lease",
    "name": "--name",
}
"""The flag for each key of a fence."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `export`."""
    parser = subparsers.add_parser("export", help="print objects for the API server", description=_DESCRIPTION)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    fence = commands.add_parser(
        "fence",
        help="let only the holder of a lease write",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    fence.add_argument("policy", nargs="?", metavar="POLICY", help="a policy file with fences")
    fence.add_argument("--name", action="append", metavar="NAME", help="only this fence; with --lease: its name")
    fence.add_argument("--mode", choices=("audit", "warn", "deny"), help="in place of the mode in the file")
    one = fence.add_argument_group("one fence without a file")
    one.add_argument("--lease", metavar="NAMESPACE/NAME", help="the lease whose holder may write")
    one.add_argument("--writer", action="append", metavar="NAMESPACE/NAME", help="a fenced service account")
    one.add_argument("--resource", action="append", metavar="RESOURCE", help="such as deployments.apps/scale")
    one.add_argument("--holder", action="append", metavar="TEMPLATE", help="default: ${pod}_*")
    one.add_argument("--operation", action="append", metavar="OPERATION", help="default: CREATE, UPDATE, DELETE")
    one.add_argument("--namespace", action="append", metavar="NAMESPACE", help="of the written objects; default: all")
    one.add_argument("--when-unheld", choices=("allow", "deny"), help="default: allow")
    one.add_argument("--missing-lease", choices=("allow", "deny"), help="default: deny")
    fence.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the objects; raises Failure."""
    fences = _from_flags(args) if args.policy is None else _from_file(args)
    print(_HEADER, yaml_text(fences), sep="", end="")
    return 0


_HEADER: Final = "# Made by lease-webhook export fence. To apply: kubectl apply --server-side -f FILE\n"


def _from_file(args: argparse.Namespace) -> list[Fence]:
    given = [flag for key, flag in _FLAGS.items() if key not in {"name", "mode"} and _given(args, flag) is not None]
    if given:
        raise Failure(f"{given[0]} describes a fence without a file; change {args.policy} in its place")
    try:
        policy = load(args.policy)
    except PolicyFileError as error:
        raise Failure(str(error)) from error
    settings = [_setting(one) for one in policy.document.fences or ()]
    known = [one["name"] for one in settings]
    if not known:
        raise Failure(f"{args.policy}: has no fences; `lease-webhook export fence --help` shows one")
    wanted = args.name or known
    for name in wanted:
        if name not in known:
            raise Failure(f"{args.policy}: no fence has the name {quote(name)}{nearest(name, known)}")
    mode = {"mode": args.mode} if args.mode else {}
    chosen = [{**one, **mode} for one in settings if one["name"] in wanted]
    return list(parse(_document(chosen)).fences)


def _from_flags(args: argparse.Namespace) -> list[Fence]:
    if args.lease is None:
        raise Failure("give a policy file with fences, or --lease, --writer and --resource")
    if args.name and len(args.name) > 1:
        raise Failure("--lease describes one fence, and it has one --name")
    said: dict[str, Any] = {key: _given(args, flag) for key, flag in _FLAGS.items()}
    said["name"] = args.name[0] if args.name else args.lease.replace("/", "-").replace(".", "-")
    for key in ("writers", "resources", "holder", "operations", "namespaces"):
        if said[key] is not None:
            said[key] = [one for text in said[key] for one in text.split(",")]
    try:
        return list(parse(_document([{key: value for key, value in said.items() if value is not None}])).fences)
    except PolicyError as error:
        key = error.path.removeprefix("fences[0].").partition("[")[0]
        raise Failure(f"{_FLAGS.get(key, escape(error.path))}: {error.problem}") from error


def _given(args: argparse.Namespace, flag: str) -> object:
    return vars(args)[flag.removeprefix("--").replace("-", "_")]


def _setting(one: FenceSetting) -> dict[str, Any]:
    return asdict(one)


def _document(fences: list[dict[str, Any]]) -> str:
    """JSON is YAML."""
    return json.dumps({"apiVersion": API_VERSION, "fences": fences})
