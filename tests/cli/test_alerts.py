"""`export alerts` as people type it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.analysis.alerts import LIMIT, MAX_RULES_OF_AN_OBJECT
from webhook.cli.main import main
from webhook.cli.options import parse_moment
from webhook.kubernetes.times import format_time
from webhook.text.yaml_reader import LOADER

NOW = "2026-11-24T12:00:00.000000Z"


def lease(name: str, namespace: str = "shop", renewed: int | None = 0, **spec: Any) -> dict[str, Any]:
    """A lease that was renewed some seconds before NOW; None if it never was."""
    at = None if renewed is None else format_time(parse_moment(NOW) - renewed * 1_000_000)
    known = {"holderIdentity": "checkout-0", "leaseDurationSeconds": 15, "acquireTime": at, "leaseTransitions": 1}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**known, "renewTime": at and at.replace("Z", ".000000Z"), **spec},
    }


def heartbeat(name: str, **spec: Any) -> dict[str, Any]:
    return lease(name, acquireTime=None, leaseTransitions=None, leaseDurationSeconds=60, **spec)


class Export:
    """Runs the command on a list of leases."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = directory / "leases.json"
        self._capsys = capsys

    def __call__(self, *leases: dict[str, Any], options: tuple[str, ...] = ()) -> tuple[int, str, str]:
        self.file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*leases]}))
        code = main(["export", "alerts", "--input", str(self.file), *options])
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err

    def limits(self, *leases: dict[str, Any], options: tuple[str, ...] = ()) -> dict[tuple[str, str], tuple[str, str]]:
        """Kind and expression of each record, by namespace and name."""
        code, out, _ = self(*leases, options=options)
        assert code == 0
        rules = [
            rule for thing in yaml.load_all(out, LOADER) for group in thing["spec"]["groups"] for rule in group["rules"]
        ]
        records = [rule for rule in rules if rule.get("record") == LIMIT]
        return {
            (rule["labels"]["namespace"], rule["labels"]["lease"]): (rule["labels"]["kind"], rule["expr"])
            for rule in records
        }


@pytest.fixture
def export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Export:
    return Export(tmp_path, capsys)


@pytest.mark.parametrize(
    ("stored", "limit"),
    [
        pytest.param(lease("a"), ("election", "vector(90)"), id="an election: two durations"),
        pytest.param(lease("a", leaseDurationSeconds=137), ("election", "vector(334)"), id="a longer one"),
        pytest.param(lease("a", leaseDurationSeconds=None), ("election", "vector(90)"), id="no duration"),
        pytest.param(lease("a", leaseDurationSeconds=1, holderIdentity=""), ("election", "vector(90)"), id="released"),
        pytest.param(lease("a", leaseDurationSeconds=-5), ("election", "vector(90)"), id="a negative duration"),
        pytest.param(
            lease("a", leaseDurationSeconds=2**31 - 1), ("election", "vector(3600)"), id="an endless duration"
        ),
        pytest.param(heartbeat("a"), ("heartbeat", "vector(360)"), id="a heartbeat: five durations"),
    ],
)
def test_the_limit_comes_from_the_duration_of_the_lease(
    export: Export, stored: dict[str, Any], limit: tuple[str, str]
) -> None:
    assert export.limits(stored) == {("shop", "a"): limit}


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        pytest.param(lease("b", renewed=100_000), "not renewed for a day, so without a limit: shop/b", id="abandoned"),
        pytest.param(lease("b", renewed=None), "never renewed, so without a limit: shop/b", id="never held"),
        pytest.param(lease("B\n{{ x }}"), "not a name that an API server stores", id="a hostile name"),
    ],
)
def test_a_lease_without_a_limit_is_mentioned(export: Export, stored: dict[str, Any], reason: str) -> None:
    code, out, err = export(lease("a"), stored)
    assert code == 0
    assert reason in err
    assert "{{ x }}" not in out
    assert export.limits(lease("a"), stored).keys() == {("shop", "a")}


def test_a_lease_that_is_silent_already_is_mentioned(export: Export) -> None:
    _, _, err = export(lease("a"), lease("b", renewed=91))
    assert "shop/b is not renewed now: its alert will fire" in err
    assert "shop/a is" not in err


def test_a_duration_that_no_elector_sets_is_mentioned(export: Export) -> None:
    _, _, err = export(lease("a", leaseDurationSeconds=2**31 - 1))
    assert "shop/a lasts 2147483647 s, so its limit is 3600 s" in err


def test_an_old_list_is_compared_with_itself(export: Export) -> None:
    _, _, err = export(lease("a", renewed=10**8), lease("b", renewed=10**8 + 5))
    assert err.splitlines() == ["limits of 2 elections and 0 heartbeats"]


def test_leases_of_nodes_have_limits_only_on_request(export: Export) -> None:
    leases = lease("a"), lease("worker-1", "kube-node-lease", leaseDurationSeconds=40)
    assert export.limits(*leases).keys() == {("shop", "a")}
    asked = export.limits(*leases, options=("-n", "kube-node-lease"))
    assert asked == {("kube-node-lease", "worker-1"): ("heartbeat", "vector(260)")}


def test_a_large_cluster_gets_several_objects(export: Export) -> None:
    leases = [lease(f"a{number}") for number in range(MAX_RULES_OF_AN_OBJECT + 1)]
    _, out, _ = export(*leases)
    names = [thing["metadata"]["name"] for thing in yaml.load_all(out, LOADER)]
    assert names == ["lease-alerts", "lease-alerts-limits-1", "lease-alerts-limits-2"]
    assert len(export.limits(*leases)) == len(leases)


def test_a_file_of_rules_has_the_same_groups(export: Export) -> None:
    _, operator, _ = export(lease("a"))
    _, rules, _ = export(lease("a"), options=("--format", "rules"))
    groups = [group for thing in yaml.load_all(operator, LOADER) for group in thing["spec"]["groups"]]
    assert yaml.load(rules, LOADER) == {"groups": groups}


def test_the_address_of_the_documentation_can_be_set(export: Export) -> None:
    _, out, _ = export(lease("a"), options=("--docs", "https://docs.example/alerts"))
    assert "https://docs.example/alerts#leasewithoutleader" in out
    assert "lease-webhook.example" not in out


def test_an_input_without_leases_is_an_error(export: Export) -> None:
    code, out, err = export()
    assert (code, out) == (2, "")
    assert "no lease is in the input" in err
