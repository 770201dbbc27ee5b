"""Every overlay with every set of components, in many orders: safe, with the overlay's scope, whatever the order."""

import datetime as dt
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.rendered.rendering import DEPLOY, Object, load_objects, render
from webhook.admission.policy.parse import parse
from webhook.api_server.doctor.checks import examine
from webhook.api_server.doctor.documents import Documents

OVERLAYS = ("self-signed", "cert-manager", "openshift", "local")
ENTRIES = {
    "strict": "strict.lease-webhook.svc",
    "node-leases": "nodes.lease-webhook.svc",
    "control-plane": "control-plane.lease-webhook.svc",
    "bindings": "renewals.lease-webhook.svc",
}
SHIPPED = "leases.lease-webhook.svc"
RENEWAL = "not-a-plain-renewal"
CHOSEN_NAMESPACES = {ENTRIES["node-leases"]: "kube-node-lease", ENTRIES["control-plane"]: "kube-system"}
NAMESPACES = ("shop", "openshift-etcd", "kube-system", "kube-node-lease", "kube-public", "lease-webhook")
OPTIONAL_LABELS: tuple[dict[str, str], ...] = (
    {},
    {"lease-webhook/fail": "closed"},
    {"lease-webhook/renewals": "reviewed"},
)
UNRELATED = "|".join(
    (
        *("Namespace", "ServiceAccount", "Deployment", "Service", "PodDisruptionBudget"),
        *("NetworkPolicy", "Secret", "Issuer", "Certificate", "ServiceMonitor", "PrometheusRule"),
    )
)
NOW = dt.datetime.now(dt.UTC)


def list_orders(overlay: str) -> list[tuple[str, ...]]:
    """Return every set of the components of the webhook configuration; all orders of up to three, two of more.

    The other two components stand before them in every second case and behind them in the others.
    """
    components = (*ENTRIES, "all-renewals")
    orders: list[tuple[str, ...]] = []
    for size in range(len(components) + 1):
        for combination in itertools.combinations(components, size):
            orders += itertools.permutations(combination) if size <= 3 else (combination, combination[::-1])
    if overlay == "local":
        return orders
    others = ("monitoring", "high-availability")
    return [(*others, *one) if number % 2 else (*one, *others) for number, one in enumerate(orders)]


class Case:
    """The rendered objects of one order of components."""

    def __init__(self, components: tuple[str, ...], configuration: Object, policy: str) -> None:
        self.components = components
        self.configuration = configuration
        self.policy = policy
        self.entries: dict[str, Object] = {one["name"]: one for one in configuration["webhooks"]}


def read_conditions(entry: Object) -> dict[str, str]:
    return {one["name"]: one["expression"] for one in entry["matchConditions"]}


@pytest.fixture(scope="module", params=OVERLAYS)
def cases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """All of one overlay, rendered by one process: each in a directory of its own, with a number behind its names."""
    overlay: str = request.param
    root = tmp_path_factory.mktemp(overlay)
    orders = list_orders(overlay)
    for number, components in enumerate(orders):
        directory = root / str(number)
        directory.mkdir()
        here = os.path.relpath(DEPLOY, directory.resolve())
        document: dict[str, Any] = {
            "resources": [f"{here}/overlays/{overlay}"],
            "components": [f"{here}/components/{component}" for component in components],
            "nameSuffix": f"-{number}",
            "patches": [{"target": {"kind": UNRELATED}, "patch": "{$patch: delete, kind: any, metadata: {name: any}}"}],
        }
        (directory / "kustomization.yaml").write_text(yaml.safe_dump(document))
    (root / "kustomization.yaml").write_text(yaml.safe_dump({"resources": [str(one) for one in range(len(orders))]}))
    objects = {(one["kind"], one["metadata"]["name"]): one for one in load_objects(render(root))}
    return [
        Case(
            components,
            objects["ValidatingWebhookConfiguration", f"lease-webhook-{number}"],
            objects.get(("ConfigMap", f"lease-webhook-policy-{number}"), {"data": {"policy.yaml": ""}})["data"][
                "policy.yaml"
            ],
        )
        for number, components in enumerate(orders)
    ]


def test_doctor_calls_each_safe(cases: list[Case]) -> None:
    for case in cases:
        rules = parse(case.policy) if case.policy else None
        reports = examine(Documents([case.configuration]), rules, NOW)
        assert [one.check for report in reports for one in report.findings] == [], case.components


def test_each_component_brings_its_own_entry_and_nothing_else(cases: list[Case]) -> None:
    for case in cases:
        assert set(case.entries) == {SHIPPED, *(ENTRIES[one] for one in case.components if one in ENTRIES)}


def test_what_the_overlay_keeps_out_by_a_condition_stays_out_of_every_entry(cases: list[Case]) -> None:
    kept_out = {name: text for name, text in read_conditions(cases[0].entries[SHIPPED]).items() if name != RENEWAL}
    for case in cases:
        for entry in case.entries.values():
            more = {name: text for name, text in read_conditions(entry).items() if name != RENEWAL}
            assert more == kept_out, (case.components, entry["name"])


def test_renewals_are_reviewed_by_all_renewals_and_bindings_only(cases: list[Case]) -> None:
    shipped = read_conditions(cases[0].entries[SHIPPED])[RENEWAL]
    for case in cases:
        for name, entry in case.entries.items():
            reviewed = name == ENTRIES["bindings"] or (name == SHIPPED and "all-renewals" in case.components)
            assert read_conditions(entry)[RENEWAL] == ("true" if reviewed else shipped), (case.components, name)


def is_selected(entry: Object, namespace: str, labels: dict[str, str]) -> bool:
    """Return whether the API server's selector takes a namespace of this name with these labels."""
    present = {"kubernetes.io/metadata.name": namespace, **labels}
    selector = entry["namespaceSelector"]
    match_labels: dict[str, str] = selector.get("matchLabels", {})
    return all(present.get(key) == value for key, value in match_labels.items()) and all(
        (present.get(one["key"]) in one["values"]) == (one["operator"] == "In")
        for one in selector.get("matchExpressions", ())
    )


def list_namespaces() -> Iterator[tuple[str, dict[str, str]]]:
    for name, optional, other in itertools.product(NAMESPACES, OPTIONAL_LABELS, OPTIONAL_LABELS):
        yield name, optional | other


def test_no_component_brings_a_namespace_into_scope_but_the_two_that_say_so(cases: list[Case]) -> None:
    overlay = cases[0].entries[SHIPPED]
    for case, (namespace, labels) in itertools.product(cases, list_namespaces()):
        for name, entry in case.entries.items():
            if is_selected(entry, namespace, labels) and CHOSEN_NAMESPACES.get(name) != namespace:
                assert is_selected(overlay, namespace, labels), (case.components, name, namespace)


def test_no_component_takes_a_namespace_out_of_scope(cases: list[Case]) -> None:
    overlay = cases[0].entries[SHIPPED]
    for case, (namespace, labels) in itertools.product(cases, list_namespaces()):
        whole = [one for name, one in case.entries.items() if name in {SHIPPED, ENTRIES["strict"]}]
        reviewed = sum(is_selected(entry, namespace, labels) for entry in whole)
        assert reviewed == is_selected(overlay, namespace, labels), (case.components, namespace, labels)


def test_only_strict_fails_closed_and_only_where_a_label_asks_for_it(cases: list[Case]) -> None:
    for case in cases:
        for name, entry in case.entries.items():
            assert (entry["failurePolicy"] == "Fail") == (name == ENTRIES["strict"])
            assert entry["timeoutSeconds"] <= 2
            assert not (entry["failurePolicy"] == "Fail" and is_selected(entry, "shop", {}))


def test_the_order_of_components_changes_nothing(cases: list[Case]) -> None:
    first: dict[frozenset[str], Any] = {}
    for case in cases:
        entries = {name: entry | {"matchConditions": read_conditions(entry)} for name, entry in case.entries.items()}
        result = (entries, case.configuration["metadata"].get("annotations"), case.policy)
        assert first.setdefault(frozenset(case.components), result) == result, case.components


def test_where_to_call_is_the_same_everywhere(cases: list[Case]) -> None:
    for case in cases:
        targets = [entry["clientConfig"] for entry in case.entries.values()]
        assert all(target == targets[0] for target in targets)


def test_the_overlay_for_openshift_keeps_the_platform_out_of_all_renewals(tmp_path: Path) -> None:
    here = os.path.relpath(DEPLOY, tmp_path.resolve())
    document = {"resources": [f"{here}/overlays/openshift"], "components": [f"{here}/components/all-renewals"]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(document))
    (configuration,) = [
        one for one in load_objects(render(tmp_path)) if one["kind"] == "ValidatingWebhookConfiguration"
    ]
    (entry,) = configuration["webhooks"]
    assert read_conditions(entry) == {
        RENEWAL: "true",
        "not-the-platform": '!request.namespace.startsWith("openshift-")',
    }
