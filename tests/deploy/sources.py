"""The manifests as they stand in deploy/, read without kustomize."""

from pathlib import Path
from typing import Any

import yaml

from webhook.text.yaml_reader import LOADER

DEPLOY = Path(__file__).parents[2] / "deploy"
Object = dict[str, Any]


def documents(path: Path) -> list[Object]:
    """The objects in a file; a list of kustomize's replacements is none."""
    return [document for document in yaml.load_all(path.read_text(), Loader=LOADER) if isinstance(document, dict)]


def replacements(component: str) -> list[Object]:
    document: list[Object] = yaml.safe_load((DEPLOY / "components" / component / "same-as-base.yaml").read_text())
    return document


def base() -> list[Object]:
    """Every object of the base, in the order of its kustomization."""
    (kustomization,) = documents(DEPLOY / "base" / "kustomization.yaml")
    return [document for name in kustomization["resources"] for document in documents(DEPLOY / "base" / name)]


def base_object(kind: str) -> Object:
    (document,) = [one for one in base() if one["kind"] == kind]
    return document


def pod() -> Object:
    spec: Object = base_object("Deployment")["spec"]["template"]["spec"]
    return spec


def container() -> Object:
    (only,) = pod()["containers"]
    spec: Object = only
    return spec


def entries() -> list[tuple[str, Object]]:
    """(where it stands, entry) of each webhook entry in base and components, patches included."""
    return [
        (str(path.relative_to(DEPLOY)), webhook)
        for path in sorted(DEPLOY.glob("**/*.yaml"))
        # The chart is made of templates and of copies.
        if DEPLOY / "chart" not in path.parents
        for document in documents(path)
        if document.get("kind") == "ValidatingWebhookConfiguration"
        for webhook in document.get("webhooks", ())
    ]
