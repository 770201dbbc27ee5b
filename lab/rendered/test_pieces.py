"""`lease-webhook install` prints what kustomize builds, for every set of components."""

import base64
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.rendered.pieces import INSTALL, make_text
from tools.rendered.rendering import ROOT, Object, compose_overlay, load_objects, render
from webhook.api_server.install import objects as install
from webhook.cli.main import main


def list_sets() -> Iterator[tuple[str, ...]]:
    """Yield every set of the components that touch the webhook configuration; the other two come and go beside them."""
    others = ((), ("high-availability",), ("monitoring",), ("high-availability", "monitoring"))
    inner = ("observe", "all-renewals", "strict", "bindings", "node-leases", "control-plane")
    combinations = (one for size in range(len(inner) + 1) for one in itertools.combinations(inner, size))
    for number, components in enumerate(combinations):
        yield (*components, *others[number % 4])


def index_by_name(objects: list[Object]) -> dict[tuple[str, str], Object]:
    for thing in objects:
        if thing["kind"] == install.CONFIGURATION:
            thing["webhooks"].sort(key=lambda entry: str(entry["name"]))
            for entry in thing["webhooks"]:
                if bundle := entry["clientConfig"].get("caBundle"):
                    entry["clientConfig"]["caBundle"] = base64.b64decode(bundle)
        if thing["kind"] == "Secret":
            # kustomize folds the lines of base64.
            thing["data"] = {name: base64.b64decode(text) for name, text in thing["data"].items()}
    return {(thing["kind"], thing["metadata"]["name"]): thing for thing in objects}


@pytest.mark.parametrize("certificate", install.CERTIFICATES)
def test_every_set_is_that_of_kustomize(certificate: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, components in enumerate(list_sets()):
        directory = tmp_path / str(number)
        directory.mkdir()
        flags = ["--image=lease-webhook:name-your-image", *(f"--component={name}" for name in components)]
        assert main(["install", f"--certificate={certificate}", f"--certs={ROOT / 'certs'}", *flags]) == 0
        output = index_by_name(load_objects(capsys.readouterr().out))
        kustomized = index_by_name(load_objects(render(compose_overlay(directory, certificate, *components))))
        assert output.keys() == kustomized.keys(), components
        for key, thing in output.items():
            assert thing == kustomized[key], (components, key)


@pytest.mark.parametrize("certificate", install.CERTIFICATES)
def test_what_was_rendered_ahead_is_up_to_date(certificate: str) -> None:
    stored = json.loads((INSTALL / f"{certificate}.json").read_text())
    assert stored == json.loads(make_text(certificate)), "run `make derived`"
