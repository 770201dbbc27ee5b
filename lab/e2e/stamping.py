"""The policies of deploy/stamp on a running control plane, and the stamps that they wrote into a lease."""

import copy
import time
from collections.abc import Sequence
from typing import Any, Final

import yaml

from lab.e2e.api_client import APPLY, MERGE, ApiClient, Reply
from lab.e2e.stamp_cases import KEYS, SUFFIX
from lab.e2e.world import PROJECT, World, build_lease_path
from tests.waiting import wait_for

LABEL: Final = "lease-webhook/stamp"
PLURALS: Final = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
REFUSED: Final = {403, 409, 413, 422, 500}
_POLICIES: Final[Sequence[dict[str, Any]]] = tuple(
    yaml.safe_load_all((PROJECT / "deploy" / "stamp" / "policies.yaml").read_text(encoding="utf-8"))
)
STAMP: Final = _POLICIES[:2]
"""The mutating policy and its binding."""
OTHERS: Final = _POLICIES[2:]
"""The guard and the bounds, each with its binding."""


def add_suffix(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the suffix of this run, as docs/stamp.md has it replaced."""
    copy_ = copy.deepcopy(document)
    for variable in copy_["spec"].get("variables", ()):
        if variable["expression"] == "SUFFIX":
            variable["expression"] = f"'{SUFFIX}'"
    return copy_


def apply(world: World, document: dict[str, Any], manager: str = "e2e", *, forced: bool = True) -> Reply:
    """Apply one of the documents as it is; unless it is forced, it may conflict with what another manager applied."""
    path = _find_path(document)
    return world.admin.send("PATCH", path, document, media=APPLY, fieldManager=manager, force=forced)


def _find_path(document: dict[str, Any]) -> str:
    return f"/apis/admissionregistration.k8s.io/v1/{PLURALS[document['kind']]}/{document['metadata']['name']}"


def install(world: World, documents: Sequence[dict[str, Any]], manager: str = "e2e") -> None:
    """Apply documents with the suffix of this run."""
    for document in documents:
        apply(world, add_suffix(document), manager).expect()


def remove(world: World, documents: Sequence[dict[str, Any]]) -> None:
    """Delete documents."""
    for document in documents:
        world.admin.send("DELETE", _find_path(document)).expect()


def label(world: World, namespace: str, value: str | None = "required", **more: str) -> None:
    """Label a namespace; None removes the label."""
    labels = {LABEL: value} | {f"lease-webhook/{name.replace('_', '-')}": text for name, text in more.items()}
    path = f"/api/v1/namespaces/{namespace}"
    world.admin.send("PATCH", path, {"metadata": {"labels": labels}}, media=MERGE).expect()


def read_stamps(document: dict[str, Any]) -> list[str]:
    """Return writer, time and term; "" for each that is not there."""
    annotations = document.get("metadata", {}).get("annotations") or {}
    return [annotations.get(key, "") for key in KEYS]


def wait_until_stamped(client: ApiClient, namespace: str, *, stamped: bool = True) -> None:
    """Wait until writes in a namespace are stamped, or are no longer."""

    def has_settled() -> bool:
        body = {"metadata": {"name": "probe"}, "spec": {"holderIdentity": "a"}}
        reply = client.send("POST", build_lease_path(namespace), body, dryRun="All")
        return bool(read_stamps(reply.body)[0]) == stamped and reply.status == 201

    wait_for("the policies", has_settled, 30, 0.5)
    # Each policy is compiled by itself.
    time.sleep(2)
