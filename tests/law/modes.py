"""The ways in which the rules are in force: webhook, stamps, both, policies only; and nothing, the world without us."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct

from tests.factories import Document
from tests.law.admission import ExpressionError, Policy, policies
from tests.law.api_server import NAME, NAMESPACE, Refused
from tests.match_condition import EXPRESSION, is_reviewed
from tests.model.api_server import User
from webhook.admission import evaluate as decision_path
from webhook.admission.policy.model import Policy as PolicyFile
from webhook.admission.policy.parse import parse
from webhook.api_server.rule_policies import make_manifests, make_stamp_policies
from webhook.kubernetes.review import decode

SUFFIX: Final = "5f3a9c1e7b20d486"
LABEL: Final = "lease-webhook/stamp"
KEYS: Final = tuple(f"lease-webhook/{name}-{SUFFIX}" for name in ("writer", "written", "term"))
_SHIPPED: Final = Path(__file__).parents[2] / "deploy" / "stamp" / "policies.yaml"
_LISTED: Final = f"stamps: [{{suffix: {SUFFIX}, namespaces: [{NAMESPACE}]}}]\n"


class Mode(Struct, frozen=True):
    """What is in force: `webhook` and `rules` are presets of a webhook and of policies only, "" without them."""

    name: str
    webhook: str = ""
    rules: str = ""
    stamps: bool = False

    @property
    def is_guarded(self) -> bool:
        """Return whether the stamps' guard refuses other writers, rather than warns of them."""
        return any(policy.name == "lease-webhook-stamp-guard" for policy in self.policies())

    def policies(self) -> tuple[Policy, ...]:
        """The admission policies of this mode, of the tree as it is."""
        return _policies(self.stamps, self.rules)

    def policy_file(self) -> PolicyFile:
        """The policy of the webhook of this mode."""
        return _policy_file(self.webhook, self.stamps)


NONE: Final = Mode("nothing")
MODES: Final = (
    Mode("webhook in standard", webhook="standard"),
    Mode("webhook in strict", webhook="strict"),
    Mode("stamps", stamps=True),
    Mode("stamps and webhook in standard", webhook="standard", stamps=True),
    Mode("stamps and webhook in strict", webhook="strict", stamps=True),
    Mode("policies only, standard", rules="standard"),
    Mode("policies only, strict", rules="strict"),
    Mode("policies only, standard, with stamps", rules="standard", stamps=True),
    Mode("policies only, strict, with stamps", rules="strict", stamps=True),
)


def shipped_stamps(text: str = "") -> list[Document]:
    """Return the objects of deploy/stamp with the suffix of the tests; `text` is used instead of the file."""
    text = text or _SHIPPED.read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text.replace("expression: SUFFIX", f"expression: \"'{SUFFIX}'\"")))


@cache
def _policy_file(preset: str, stamps: bool) -> PolicyFile:
    return parse(f"apiVersion: lease-webhook/v1\npreset: {preset}\n{_LISTED if stamps else ''}")


@cache
def _policies(stamps: bool, rules: str) -> tuple[Policy, ...]:
    documents: list[Document] = []
    if rules:
        file = _policy_file(rules, stamps)
        documents += make_manifests(file, 0, EXPRESSION, ["kube-system", "kube-node-lease"])
        documents += make_stamp_policies(file, 0)
    elif stamps:
        documents += shipped_stamps()
    return policies(documents)


class Admission:
    """What an API server asks about each write, in one mode; the namespace may be labeled for stamps or not."""

    def __init__(self, mode: Mode, policies: Sequence[Policy] | None = None) -> None:
        self.mode = mode
        self._policies = mode.policies() if policies is None else tuple(policies)
        self.in_force = False
        self.now = 0
        self.label = ""

    def __call__(self, user: User, operation: str, old: Document | None, new: Document | None) -> Document | None:
        """Return the object to store. Raises Refused."""
        if not self.in_force:
            return new
        labels = {"kubernetes.io/metadata.name": NAMESPACE} | ({LABEL: self.label} if self.label else {})
        namespace = {"metadata": {"name": NAMESPACE, "labels": labels}}
        request = _request(user, operation)
        concerned = [policy for policy in self._policies if policy.concerns(operation, labels)]
        data: dict[str, Any] = {"request": request, "oldObject": old, "namespaceObject": namespace}
        try:
            for policy in concerned:
                if policy.mutates and new is not None:
                    new = policy.mutated(data | {"object": new})
        except ExpressionError as error:
            raise Refused(str(error)) from error
        data["object"] = new
        for policy in concerned:
            if not policy.mutates and (refusal := policy.refusal(data)):
                raise Refused(refusal)
        if self.mode.webhook:
            self._review(request | {"object": new, "oldObject": old})
        return new

    def _review(self, request: Document) -> None:
        try:
            if not is_reviewed(request):
                return
        except ValueError:
            return  # an API server that cannot evaluate the condition stores the write: failurePolicy is Ignore
        body = msgspec.json.encode({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
        verdict = decision_path.evaluate(decode(body), self.mode.policy_file(), self.now)
        if not verdict.allowed:
            rules = ", ".join(one.rule for one in verdict.findings if one.mode.word == "deny")
            raise Refused(f"webhook: {rules}: {verdict.message[:300]}")


def _request(user: User, operation: str) -> Document:
    token = "authentication.kubernetes.io"
    extra = {f"{token}/pod-name": [user.pod], f"{token}/pod-uid": [f"uid-of-{user.pod}"]} if user.pod else {}
    info: dict[str, Any] = {"username": user.name, "groups": list(user.groups)}
    if extra:
        info["extra"] = extra
    kind = {"group": "coordination.k8s.io", "version": "v1", "kind": "Lease"}
    resource = {"group": "coordination.k8s.io", "version": "v1", "resource": "leases"}
    options = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}[operation]
    return {
        "uid": "0e7b6f1c-4d6a-4b0e-9a53-3c1f6a3b2d10",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": NAME,
        "namespace": NAMESPACE,
        "operation": operation,
        "userInfo": info,
        "options": {"kind": options, "apiVersion": "meta.k8s.io/v1"},
        "dryRun": False,
    }


def annotations_of(document: Mapping[str, Any]) -> list[str]:
    """The writer, time and term that are stamped on an object."""
    annotations = document["metadata"].get("annotations") or {}
    return [annotations.get(key, "") for key in KEYS]
