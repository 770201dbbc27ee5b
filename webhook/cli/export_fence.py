"""`lease-webhook export fence`: print what an API server needs to hold a fence; nothing is applied."""

import json
from typing import Any, Final

import click
from msgspec.structs import asdict

from webhook.api.text import escape, quote
from webhook.cli.evaluation import load_policy
from webhook.cli.options import Command, files
from webhook.cli.terminal import Failure
from webhook.fence import yaml_text
from webhook.policy.fences import Fence
from webhook.policy.parse import parse
from webhook.policy.schema import API_VERSION, PolicyError, nearest

_DESCRIPTION: Final = """\
Prints a ValidatingAdmissionPolicy and its binding for each fence of a policy file, or for one fence that is given by
flags. A fence lets only the holder of a lease write the listed resources, among the listed service accounts; the API
server enforces it without a webhook. Nothing is applied: read it, then pipe it to kubectl.
"""
_EPILOG: Final = """\
Examples:
  lease-webhook export fence policy.yaml | kubectl apply --server-side -f -
  lease-webhook export fence policy.yaml --name shop-operator --mode warn     # refuse nothing yet
  lease-webhook export fence --lease shop/operator --writer shop/operator \\
    --resource configmaps,deployments.apps
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
_LISTS: Final = ("writers", "resources", "holder", "operations", "namespaces")
"""Keys whose flags may be repeated, and take several values with commas between them."""

Flags = dict[str, Any]
"""The given flags: a value, or a tuple of values, for each key of a fence."""


@click.command("fence", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("policy", required=False, metavar="[POLICY]", shell_complete=files)
@click.option("--name", multiple=True, metavar="NAME", help="only this fence; with --lease: its name")
@click.option("--mode", type=click.Choice(("audit", "warn", "deny")), help="in place of the mode in the file")
@click.option("--lease", metavar="NAMESPACE/NAME", help="without a file: the lease whose holder may write")
@click.option("--writer", "writers", multiple=True, metavar="NAMESPACE/NAME", help="a fenced service account")
@click.option("--resource", "resources", multiple=True, metavar="RESOURCE", help="such as deployments.apps/scale")
@click.option("--holder", multiple=True, metavar="TEMPLATE", help="default: ${pod}_*")
@click.option("--operation", "operations", multiple=True, metavar="OPERATION", help="default: CREATE, UPDATE, DELETE")
@click.option(
    "--namespace", "namespaces", multiple=True, metavar="NAMESPACE", help="of the written objects; default: all"
)
@click.option("--when-unheld", type=click.Choice(("allow", "deny")), help="default: allow")
@click.option("--missing-lease", type=click.Choice(("allow", "deny")), help="default: deny")
def command(*, policy: str | None, **given: Any) -> int:  # noqa: ANN401 - what `_FLAGS` names
    """Print the objects; raises Failure."""
    flags = {key: given[key] for key in _FLAGS if given[key]}
    fences = _from_flags(flags) if policy is None else _from_file(policy, flags)
    print(_HEADER, yaml_text(fences), sep="", end="")
    return 0


_HEADER: Final = "# Made by lease-webhook export fence. To apply: kubectl apply --server-side -f FILE\n"


def _from_file(path: str, flags: Flags) -> list[Fence]:
    wrong = [_FLAGS[key] for key in flags if key not in {"name", "mode"}]
    if wrong:
        raise Failure(f"{wrong[0]} describes a fence without a file; change {path} in its place")
    settings = [asdict(one) for one in load_policy(path).document.fences or ()]
    known = [one["name"] for one in settings]
    if not known:
        raise Failure(f"{path}: has no fences; `lease-webhook export fence --help` shows one")
    wanted = flags.get("name") or known
    for name in wanted:
        if name not in known:
            raise Failure(f"{path}: no fence has the name {quote(name)}{nearest(name, known)}")
    mode = {"mode": flags["mode"]} if "mode" in flags else {}
    chosen = [{**one, **mode} for one in settings if one["name"] in wanted]
    return list(parse(_document(chosen)).fences)


def _from_flags(flags: Flags) -> list[Fence]:
    if "lease" not in flags:
        raise Failure("give a policy file with fences, or --lease, --writer and --resource")
    names = flags.get("name", (flags["lease"].replace("/", "-").replace(".", "-"),))
    if len(names) > 1:
        raise Failure("--lease describes one fence, and it has one --name")
    lists = {key: [one for text in value for one in text.split(",")] for key, value in flags.items() if key in _LISTS}
    try:
        return list(parse(_document([{**flags, **lists, "name": names[0]}])).fences)
    except PolicyError as error:
        key = error.path.removeprefix("fences[0].").partition("[")[0]
        raise Failure(f"{_FLAGS.get(key, escape(error.path))}: {error.problem}") from error


def _document(fences: list[dict[str, Any]]) -> str:
    """JSON is YAML."""
    return json.dumps({"apiVersion": API_VERSION, "fences": fences})
