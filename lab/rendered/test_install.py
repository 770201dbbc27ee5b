"""The install blocks, typed as printed in a copy of the checkout; docker, make and the cluster are stand-ins."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.docs.pages import DOCS, README, find_section
from tools.rendered.rendering import DEPLOY, ROOT, compose_overlay, find_object, load_objects, render

INSTALL = DOCS / "install.md"


def find_block(text: str, language: str = "sh") -> str:
    """Return the first fenced block of this language."""
    return re.split(rf"```{language}(?: needs=.*)?\n", text, maxsplit=1)[1].partition("```")[0]


BLOCKS = [
    pytest.param(find_block(INSTALL.read_text(), "sh"), id="of the page"),
    pytest.param(find_block(find_section(README, "Install the webhook"), "sh"), id="of the README"),
]
UNINSTALL = find_block(find_section(INSTALL, "Uninstall"))
OWN_POLICY = find_block(find_section(INSTALL, "Your own policy"), "yaml")
STAND_IN = """#!/bin/sh
if [ "$1" = kustomize ]; then PATH="$REAL_PATH" exec "$DEPLOY/kustomize" "$2"; fi
echo "$(basename "$0") $*" >> "$TYPED"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for part in ("deploy", "certs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    (tmp_path / "stand-ins").mkdir()
    for name in ("docker", "make", "kubectl"):
        program = tmp_path / "stand-ins" / name
        program.write_text(STAND_IN)
        program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("commands", BLOCKS)
def test_the_install_block_installs_the_image_that_it_built(commands: str, checkout: Path) -> None:
    environment = os.environ | {
        "PATH": f"{checkout / 'stand-ins'}:{os.environ['PATH']}",
        "REAL_PATH": os.environ["PATH"],
        "DEPLOY": str(DEPLOY),
        "TYPED": str(checkout / "typed"),
    }
    command = ["bash", "-euo", "pipefail", "-c", commands]
    result = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "doctor" not in commands or "safe" in result.stdout
    build, push, *_, apply, wait = (checkout / "typed").read_text().splitlines()
    image = build.split()[-2]
    assert push == f"docker push {image}"
    assert apply == "kubectl apply --server-side -k my-cluster"
    objects = load_objects(render(checkout / "my-cluster"))
    deployment = find_object(objects, "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == image
    namespace, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
    assert wait.startswith(f"kubectl -n {namespace} rollout status deployment/{name} ")


def install_own_policy(directory: Path, *components: str) -> list[dict[str, Any]]:
    compose_overlay(directory, "cert-manager", *components)
    document = yaml.safe_load((directory / "kustomization.yaml").read_text())
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(document | yaml.safe_load(OWN_POLICY)))
    (directory / "policy.yaml").write_text("apiVersion: lease-webhook/v1\npreset: strict\nmode: warn\n")
    return load_objects(render(directory))


def test_a_policy_of_ones_own_takes_the_place_of_the_shipped_one_under_the_same_name(tmp_path: Path) -> None:
    objects = install_own_policy(tmp_path)
    config_map = find_object(objects, "ConfigMap")
    assert config_map["data"] == {"policy.yaml": (tmp_path / "policy.yaml").read_text()}
    volumes = find_object(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert config_map["metadata"]["name"] in [each["configMap"]["name"] for each in volumes if "configMap" in each]
    assert config_map["metadata"]["name"] == "lease-webhook-policy"


def test_while_observe_is_listed_its_policy_wins(tmp_path: Path) -> None:
    assert "preset: observe" in find_object(install_own_policy(tmp_path, "observe"), "ConfigMap")["data"]["policy.yaml"]


@pytest.mark.parametrize("overlay", ["self-signed", "cert-manager", "openshift"])
def test_uninstalling_needs_no_overlay(overlay: str, tmp_path: Path) -> None:
    """Check that everything outside of the namespace, which is deleted with it, is named."""
    commands = re.findall(r"^kubectl delete (\S+)((?: (?!-)\S+)+)", UNINSTALL, re.MULTILINE)
    names_by_kind = {(kind, name) for kinds, names in commands for kind in kinds.split(",") for name in names.split()}
    components = [path.name for path in (DEPLOY / "components").iterdir()]
    for each in load_objects(render(compose_overlay(tmp_path, overlay, *components))):
        name, namespace = each["metadata"]["name"], each["metadata"].get("namespace")
        assert ("namespace", namespace) in names_by_kind or (each["kind"].lower(), name) in names_by_kind
