"""`lease-webhook install` and `export fence`: print objects for the API server; nothing is applied."""

import datetime as dt
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click
from msgspec.structs import replace

from webhook.admission.policy.file import PolicyFile, load
from webhook.admission.policy.schema import PRESETS, PolicyError, suggest_nearest
from webhook.api_server.fence.objects import make_fence_manifests
from webhook.api_server.install.objects import CERTIFICATES, COMPONENTS, compose, fill, make_pieces
from webhook.api_server.rule_policies import list_unexported, make_shipped_manifests, make_stamp_policies
from webhook.certificates.files import Unusable, read_pair
from webhook.cli.options import Command, complete_directories, complete_files, policy_option
from webhook.cli.terminal import Failure, print_message
from webhook.text.commands import make_certs_command, quote_path
from webhook.text.quoting import quote, truncate
from webhook.text.yaml_writer import write_comment, write_stream

_FIRST_MINOR, _FIRST_MINOR_OF_STAMPS = 30, 36  # of Kubernetes 1: ValidatingAdmissionPolicy, MutatingAdmissionPolicy
_VERSION: Final = re.compile(r"v?1\.(\d{1,3})(\..*)?")
_NAMESPACES_OF: Final = {"node-leases": "kube-node-lease", "control-plane": "kube-system"}
_SERVED: Final = "lease-webhook.lease-webhook.svc"
"""The name that API servers check."""
_MAX_WORD: Final = 80
_PAIR: Final = ("ca.crt", "tls.crt", "tls.key")
_KUBERNETES: Final = "1.30"
_CERTS: Final = "certs"
_HEADER: Final = "# Made by lease-webhook {}. To apply: kubectl apply --server-side --force-conflicts -f FILE"
_INSTALL: Final = """\
Prints the objects of an installation: those that kustomize builds from deploy/ in the repository. Nothing is applied:
read them, then pipe them to kubectl.
"""
_INSTALL_EPILOG: Final = """\
Certificates:
  self-signed   from --certs, which `lease-webhook certs DIR` makes; the key is
                printed too
  cert-manager  issued and renewed by cert-manager
  openshift     issued and renewed by OpenShift's service CA

Components:
  observe            deny nothing and warn; for the first week
  all-renewals       review plain renewals too: every leader then depends on
                     the webhook
  strict             fail closed in namespaces with the label
                     lease-webhook/fail=closed
  bindings           review renewals in namespaces with the label
                     lease-webhook/renewals=reviewed
  node-leases        review kube-node-lease too
  control-plane      review kube-system too
  high-availability  three replicas on three hosts
  monitoring         for the Prometheus operator: ServiceMonitor, alerts,
                     dashboard
  stamp              record writers in namespaces with the label
                     lease-webhook/stamp=required; needs Kubernetes 1.36 and
                     --policy FILE with `stamps`

Examples:
  lease-webhook install --certificate cert-manager --component observe \\
    --image registry.example/lease-webhook:0.3.0 |
    kubectl apply --server-side --force-conflicts -f -
  lease-webhook install --policies-only --policy policy.yaml --kubernetes 1.36 |
    kubectl apply --server-side --force-conflicts -f -
  lease-webhook certs certs && lease-webhook install --certificate self-signed \\
    --image registry.example/lease-webhook:0.3.0 |
    lease-webhook doctor --input -
"""


_FENCE: Final = """\
Prints a ValidatingAdmissionPolicy and its binding for each fence of a policy file. A fence lets only the holder of a
lease write the listed resources, among the listed service accounts; the API server enforces it without a webhook.
Nothing is applied: read it, then pipe it to kubectl.
"""
_FENCE_EPILOG: Final = """\
Examples:
  # it warns first
  lease-webhook export fence policy.yaml |
    kubectl apply --server-side --force-conflicts -f -
  lease-webhook export fence policy.yaml --mode deny |
    kubectl apply --server-side --force-conflicts -f -
"""


@click.command("install", cls=Command, help=_INSTALL, epilog=_INSTALL_EPILOG)
@click.argument("words", metavar="", nargs=-1)
@click.option("--certificate", type=click.Choice(CERTIFICATES), help="where the certificate comes from")
@click.option("--policies-only", is_flag=True, help="the rules as policies of the API server, and no webhook")
@click.option("--kubernetes", metavar="VERSION", help=f"for --policies-only; {_KUBERNETES} unless given")
@click.option(
    "--component",
    multiple=True,
    type=click.Choice(COMPONENTS),
    metavar="NAME",
    help="one of the components below; may be repeated",
)
@click.option("--image", metavar="IMAGE", help="image of the pods, with its version or digest")
@policy_option("a preset or a policy file (default: standard)")
@click.option(
    "--certs",
    metavar="DIR",
    shell_complete=complete_directories,
    help=f"for self-signed; {_CERTS} unless given",
)
def install(
    *,
    words: tuple[str, ...],
    certificate: str | None,
    policies_only: bool,
    kubernetes: str | None,
    component: tuple[str, ...],
    image: str | None,
    policy: str | None,
    certs: str | None,
) -> int:
    if words:
        raise click.UsageError(_explain_argument(words[0], policies_only=policies_only))
    if policies_only:
        _refuse_of_webhook({"--certificate": certificate, "--image": image, "--certs": certs})
        return _print_policies(policy, kubernetes or _KUBERNETES, component)
    if kubernetes is not None:
        raise Failure("--kubernetes: is for --policies-only")
    if certificate is None:
        raise click.UsageError(f"Missing option '--certificate'. Choose from: {', '.join(CERTIFICATES)}")
    pieces = make_pieces(certificate)
    image = _require_version(image)
    text, suffixes = None, set[str]()
    if policy is not None:
        if "observe" in component:
            raise Failure("--component observe brings its own policy: leave out --policy while it is listed")
        file = PolicyFile(policy)
        suffixes = {one.suffix for one in file.current.stamps.values()}
        text = file.text
    if "stamp" in component and len(suffixes) != 1:
        raise Failure("--component stamp: needs a --policy whose `stamps` have one suffix; docs/stamp.md shows one")
    directory = Path(certs or _CERTS)
    pair = _read_pair(directory) if certificate == "self-signed" else {}
    for problem in _find_problems(directory) if pair else ():
        print_message(f"{directory}: {problem}: the API server will refuse it, and then no write is reviewed")
    print(_HEADER.format("install"))
    objects = compose(pieces, component)
    fill(objects, image, text, pair, suffixes.pop() if "stamp" in component else "")
    print(write_stream(objects), end="")
    return 0


def _refuse_of_webhook(given: Mapping[str, str | None]) -> None:
    """Raise Failure for an option of the webhook where only policies are printed; None is one that is not given."""
    for option, value in given.items():
        if value is not None:
            raise Failure(f"{option}: is about the webhook, which --policies-only leaves out")


def _require_version(image: str | None) -> str:
    """Return the image of the pods; raises Failure for one that may be another tomorrow."""
    if image is None or not re.fullmatch(r"\S+[:@][^\s/]+", image) or image.endswith(":latest"):
        raise Failure("--image: name the image of the pods by version or digest: registry.example/lease-webhook:0.3.0")
    return image


def _explain_argument(word: str, *, policies_only: bool) -> str:
    """Return the refusal of an argument, with the option of which it looks like the value: there are only options."""
    short = quote(truncate(word, _MAX_WORD))
    option = _find_option_of(word, policies_only=policies_only)
    # The word is there to be copied, so it is not cut.
    hint = f"did you mean {option} {quote_path(word)}?" if option else "install takes options only"
    return f"{short} is not expected; {hint}"


def _find_option_of(word: str, *, policies_only: bool) -> str:
    if word in CERTIFICATES and not policies_only:
        return "--certificate"
    if word in (_NAMESPACES_OF if policies_only else COMPONENTS):
        return "--component"
    if word in PRESETS or word.endswith((".yaml", ".yml")) or os.path.isfile(word):  # noqa: PTH113 - never raises
        return "--policy"
    return "--kubernetes" if policies_only and _VERSION.fullmatch(word) else ""


def _print_policies(policy: str | None, kubernetes: str, components: tuple[str, ...]) -> int:
    minor = _VERSION.fullmatch(kubernetes)
    if minor is None:
        raise Failure(f"--kubernetes: {quote(truncate(kubernetes, _MAX_WORD))} is not a version such as 1.36")
    if int(minor[1]) < _FIRST_MINOR:
        raise Failure(f"--kubernetes: policies need 1.{_FIRST_MINOR} or newer")
    if unknown := set(components) - _NAMESPACES_OF.keys():
        raise Failure(f"--component {min(unknown)}: is about the webhook, which --policies-only leaves out")
    loaded, now = load(policy), time.time_ns() // 1000
    try:
        objects = make_shipped_manifests(loaded, now, [_NAMESPACES_OF[one] for one in components])
        if int(minor[1]) >= _FIRST_MINOR_OF_STAMPS:
            objects += make_stamp_policies(loaded, now)
    except PolicyError as error:
        raise Failure(f"{policy}: {error}") from error
    print(_HEADER.format("install --policies-only"))
    for note in list_unexported(loaded, now):
        print(write_comment(note))
    print(write_stream(objects), end="")
    return 0


def _read_pair(directory: Path) -> dict[str, bytes]:
    try:
        return {name: (directory / name).read_bytes() for name in _PAIR}
    except OSError as error:
        command = make_certs_command(directory)
        raise Failure(f"{error.filename}: {error.strerror}; `{command}` makes the certificate") from error


def _find_problems(directory: Path) -> Sequence[str]:
    """Return what is wrong with a certificate that is to be served by the shipped Service."""
    # cryptography takes longer to import than the rest, and only a certificate of one's own is examined.
    from webhook.certificates.inspect import inspect  # noqa: PLC0415

    try:
        return inspect(read_pair(directory), frozenset([_SERVED])).check_dates(dt.datetime.now(dt.UTC)).problems
    except Unusable as problem:
        return (str(problem),)


@click.command("fence", cls=Command, help=_FENCE, epilog=_FENCE_EPILOG)
@click.argument("policy", metavar="POLICY", shell_complete=complete_files)
@click.option("--name", "names", multiple=True, metavar="NAME", help="only this fence; may be repeated")
@click.option("--mode", type=click.Choice(("audit", "warn", "deny")), help="in place of the mode in the file")
def fence(*, policy: str, names: tuple[str, ...], mode: str | None) -> int:
    fences = load(policy).fences
    known = [one.name for one in fences]
    if not known:
        raise Failure(f"{policy}: has no fences; docs/fence.md shows one")
    for name in names:
        if name not in known:
            raise Failure(f"{policy}: no fence has the name {quote(name)}{suggest_nearest(name, known)}")
    chosen = [replace(one, mode=mode or one.mode) for one in fences if not names or one.name in names]
    for fence in chosen:
        if fence.mode != "deny":
            print_message(f"fence {fence.name} refuses nothing: its mode is {fence.mode}; --mode deny refuses")
    print(_HEADER.format("export fence"))
    print(write_stream(manifest for one in chosen for manifest in make_fence_manifests(one)), end="")
    return 0
