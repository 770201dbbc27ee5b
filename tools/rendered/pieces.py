"""`make derived`: the pieces of `lease-webhook install`, rendered ahead by kustomize, a file for each certificate."""

import copy
import json
import tempfile
from pathlib import Path

from tools.rendered import chart
from tools.rendered.rendering import ROOT, Object, compose_overlay, load_objects, render
from webhook.api_server.install.objects import ADDING, CERTIFICATES, CHANGING, CONFIGURATION

INSTALL = ROOT / "webhook/api_server/install"


def list_pieces(certificate: str) -> dict[str, list[Object]]:
    """Return the whole installation as "", and by name the objects in which each other piece differs from it."""
    whole = _render(certificate)
    found = {"": list(whole.values())}
    for components in ((CHANGING[0],), (CHANGING[1],), CHANGING):
        found["+".join(components)] = _compare(_render(certificate, *components), whole)
    for name in ADDING:
        found[name] = _compare(_render(certificate, name), whole)
        for thing in found[name]:
            if thing["kind"] == CONFIGURATION:
                _leave_what_was_added(thing, whole[CONFIGURATION, "lease-webhook"])
    return found


def make_text(certificate: str) -> str:
    """Return the file of one certificate."""
    return json.dumps(list_pieces(certificate), indent=1) + "\n"


def _render(certificate: str, *components: str) -> dict[tuple[str, str], Object]:
    """Return the objects by kind and name, without the certificate that happens to lie in certs/."""
    with tempfile.TemporaryDirectory() as directory:
        found = load_objects(render(compose_overlay(Path(directory), certificate, *components)))
    for thing in found:
        if thing["kind"] == "Secret":
            thing["data"] = {}
        if thing["kind"] == CONFIGURATION:
            for entry in thing["webhooks"]:
                entry["clientConfig"].pop("caBundle", None)
    return {(thing["kind"], thing["metadata"]["name"]): thing for thing in found}


def _compare(found: dict[tuple[str, str], Object], whole: dict[tuple[str, str], Object]) -> list[Object]:
    assert whole.keys() <= found.keys()
    return [copy.deepcopy(thing) for key, thing in found.items() if whole.get(key) != thing]


def _leave_what_was_added(configuration: Object, base: Object) -> None:
    known = {entry["name"]: entry for entry in base["webhooks"]}
    for name, entry in known.items():
        assert entry in configuration["webhooks"], f"a component that adds has changed {name}"
    configuration["webhooks"] = [entry for entry in configuration["webhooks"] if entry["name"] not in known]
    annotations = configuration["metadata"].get("annotations", {})
    before = base["metadata"].get("annotations", {})
    configuration["metadata"]["annotations"] = {
        name: value for name, value in annotations.items() if before.get(name) != value
    }


if __name__ == "__main__":
    chart.copy_manifests()
    for each in CERTIFICATES:
        (INSTALL / f"{each}.json").write_text(make_text(each))
