"""The objects of an installation, composed of what kustomize rendered in advance and the package has.

`make derived` renders with kustomize, for each overlay with a certificate: the whole installation, and for each
component the objects that differ. `all-renewals` and `strict` change the entry of the webhook configuration that every
other entry stands beside, so their combinations are rendered; of the others, entries are added.
"""

import base64
import json
from collections.abc import Collection, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

CERTIFICATES: Final = ("self-signed", "cert-manager", "openshift")
"""The overlays that bring a certificate; each is the name of a file of pieces."""
CHANGING: Final = ("all-renewals", "strict")
"""Components that change the shipped entry. Their combination is a piece of its own: `all-renewals+strict`."""
ADDING: Final = ("observe", "bindings", "node-leases", "control-plane", "high-availability", "monitoring", "stamp")
"""Components that add entries and objects, or replace objects that no other component replaces."""
COMPONENTS: Final = (*CHANGING, *ADDING)
CONFIGURATION: Final = "ValidatingWebhookConfiguration"

Object = dict[str, Any]
Pieces = Mapping[str, Sequence[Object]]
"""Objects by the name of a piece: "" is the whole installation; the others hold the objects that differ from it."""


def make_pieces(certificate: str) -> dict[str, list[Object]]:
    """Return the pieces of one of CERTIFICATES, which are the caller's to change."""
    file = files("webhook.api_server.install").joinpath(f"{certificate}.json")
    pieces: dict[str, list[Object]] = json.loads(file.read_text("utf-8"))
    return pieces


def compose(pieces: Pieces, components: Collection[str]) -> list[Object]:
    """Return the objects, the webhook configuration last: what it calls must exist before it."""
    found = _index_by_name(pieces[""])
    changing = "+".join(name for name in CHANGING if name in components)
    if changing:
        found |= _index_by_name(pieces[changing])
    for name in ADDING:
        if name not in components:
            continue
        for key, thing in _index_by_name(pieces[name]).items():
            if thing["kind"] == CONFIGURATION:
                found[key]["webhooks"] += thing["webhooks"]
                if annotations := thing["metadata"].get("annotations"):
                    found[key]["metadata"].setdefault("annotations", {}).update(annotations)
            else:
                found[key] = thing
    return sorted(found.values(), key=lambda thing: bool(thing["kind"] == CONFIGURATION))


def make_stamp_objects(suffix: str) -> list[Object]:
    """Return the objects of the component `stamp` with a suffix."""
    found = make_pieces(CERTIFICATES[0])["stamp"]
    fill(found, "", None, {}, suffix)
    return found


def fill(objects: Sequence[Object], image: str, policy: str | None, files: Mapping[str, bytes], suffix: str) -> None:
    """Set what differs from one installation to the next.

    `policy` is a text instead of the shipped one. `files` are ca.crt, tls.crt and tls.key of a certificate whose CA
    every entry trusts, none for other overlays. `suffix` is that of the component `stamp`, "" without it.
    """
    encoded = {name: base64.b64encode(content).decode() for name, content in files.items()}
    for thing in objects:
        if thing["kind"] == "Deployment":
            for container in thing["spec"]["template"]["spec"]["containers"]:
                container["image"] = image
        elif thing["kind"] == "ConfigMap" and policy is not None and "policy.yaml" in thing["data"]:
            thing["data"]["policy.yaml"] = policy
        elif thing["kind"] == "Secret" and files:
            thing["data"] = encoded
        elif suffix and thing["metadata"]["name"].startswith("lease-webhook-stamp"):
            for variable in thing["spec"].get("variables", ())[:1]:
                variable["expression"] = f"'{suffix}'"
        elif thing["kind"] == CONFIGURATION and files:
            for entry in thing["webhooks"]:
                entry["clientConfig"]["caBundle"] = encoded["ca.crt"]


def _index_by_name(objects: Sequence[Object]) -> dict[tuple[str, str], Object]:
    return {(thing["kind"], thing["metadata"]["name"]): thing for thing in objects}
