"""`lease-webhook install`: print the objects of an installation; nothing is applied."""

import json
from importlib.resources import files as package_files
from pathlib import Path
from typing import Final

import click

from webhook.audit import command_words
from webhook.cli.evaluation import load_policy
from webhook.cli.options import Command, directories, files
from webhook.cli.terminal import Failure
from webhook.install import compose
from webhook.yaml_writer import stream

_PAIR: Final = ("ca.crt", "tls.crt", "tls.key")
_HEADER: Final = "# Made by lease-webhook install. To apply: kubectl apply --server-side -f FILE\n"
_DESCRIPTION: Final = """\
Prints the objects of an installation: those that kustomize builds from deploy/ in the repository. Nothing is applied:
read them, then pipe them to kubectl.
"""
_EPILOG: Final = """\
Certificates:
  self-signed   from --certs, which `lease-webhook certs DIR` makes; the key is printed too
  cert-manager  issued and renewed by cert-manager
  openshift     issued and renewed by OpenShift's service CA

Components:
  observe            review every write and deny nothing; for the first week
  strict             fail closed in namespaces with the label lease-webhook/fail=closed
  bindings           review renewals in namespaces with the label lease-webhook/renewals=reviewed
  node-leases        review kube-node-lease too
  control-plane      review kube-system too
  high-availability  three replicas on three hosts
  monitoring         for the Prometheus operator: ServiceMonitor, alerts, dashboard

Examples:
  lease-webhook install --certificate cert-manager --component observe \\
    --image registry.example/lease-webhook:1 | kubectl apply --server-side -f -
  lease-webhook certs certs && lease-webhook install --certificate self-signed | lease-webhook doctor
"""


@click.command("install", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.option(
    "--certificate", required=True, type=click.Choice(compose.CERTIFICATES), help="where the certificate comes from"
)
@click.option("--component", multiple=True, type=click.Choice(compose.COMPONENTS), help="may be repeated")
@click.option("--image", default="lease-webhook:latest", show_default=True, metavar="IMAGE", help="image of the pods")
@click.option("--policy", metavar="FILE", shell_complete=files, help="policy file, instead of the preset standard")
@click.option(
    "--certs", default="certs", show_default=True, metavar="DIR", shell_complete=directories, help="for self-signed"
)
def command(*, certificate: str, component: tuple[str, ...], image: str, policy: str | None, certs: str) -> int:
    """Print the objects; raises Failure."""
    pieces = json.loads(package_files("webhook.install").joinpath(f"{certificate}.json").read_text())
    objects = compose.composed(pieces, component)
    if not image or image != "".join(image.split()):
        raise Failure("--image: is not the name of an image")
    compose.with_image(objects, image)
    if policy is not None:
        if "observe" in component:
            raise Failure("--component observe brings its own policy: leave out --policy while it is listed")
        load_policy(policy)
        compose.with_policy(objects, Path(policy).read_text())
    if certificate == "self-signed":
        compose.with_certificate(objects, _pair(Path(certs)))
    print(_HEADER, stream(objects), sep="", end="")
    return 0


def _pair(directory: Path) -> dict[str, bytes]:
    """Return the files of the Secret."""
    try:
        return {name: (directory / name).read_bytes() for name in _PAIR}
    except OSError as error:
        command = command_words.certs(directory)
        raise Failure(f"{error.filename}: {error.strerror}; `{command}` makes the certificate") from error
