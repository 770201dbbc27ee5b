"""The rendering of deploy/ with kustomize, as a person does it."""

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
Object = dict[str, Any]


def render(directory: Path) -> str:
    done = subprocess.run([DEPLOY / "kustomize", directory], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def load_objects(text: str) -> list[Object]:
    return list(yaml.safe_load_all(text))


def find_object(found: list[Object], kind: str) -> Object:
    (only,) = [each for each in found if each["kind"] == kind]
    return only


def compose_overlay(directory: Path, overlay: str, *components: str) -> Path:
    """Write an overlay such as a user has, as docs/install.md shows it; return its directory."""
    here = os.path.relpath(DEPLOY, directory.resolve())
    document = {
        "resources": [f"{here}/overlays/{overlay}"],
        "components": [f"{here}/components/{component}" for component in components],
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(document))
    return directory
