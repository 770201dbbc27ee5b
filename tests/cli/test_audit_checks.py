"""Every check of docs/audit.md, and every rule that stored objects can break, finds the defect seeded for it."""

import json
import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.factories import Document, drop, make_candidate, make_entry, make_lease, put
from tests.rules.pinned_writes import pinned_writes
from tools.docs.pages import DOCS, find_section, find_table
from webhook.analysis.audit.leases import STORED_RULES
from webhook.analysis.claims.registry import KINDS
from webhook.cli.main import main

DATA = Path(__file__).parent.parent / "data"
NOW = "2025-11-20T12:00:04Z"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-9"}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "another", "namespace": "shop"}}
ALPHA = put("apiVersion", "coordination.k8s.io/v1alpha1")
NODE_LEASE = (put("metadata.namespace", "kube-node-lease"), put("metadata.name", "worker-1"))
OTHER = put("metadata.name", "other")


def preferring(*strategies: str) -> list[Any]:
    """v1alpha1 has a list of strategies instead of one."""
    return [ALPHA, drop("spec.strategy"), put("spec.preferredStrategies", list(strategies))]


SEEDS: dict[str, list[Document]] = {
    "abandoned": [make_lease(put("metadata.managedFields[0].time", "2025-11-10T12:00:00Z"))],
    "acquire-time-foreign": [
        make_lease(
            put(
                "metadata.managedFields",
                [
                    make_entry("acquireTime", "leaseTransitions"),
                    make_entry("holderIdentity", "renewTime", manager="kubectl-patch"),
                ],
            )
        )
    ],
    "candidate-strategy-conflict": [
        make_candidate(*preferring("a.b/c", "a.b/d")),
        make_candidate(OTHER, *preferring("a.b/d", "a.b/c")),
    ],
    "expired": [make_lease(put("metadata.managedFields[0].time", "2025-11-20T11:50:00Z"))],
    "heartbeat-silent": [
        make_lease(
            put("metadata.managedFields[0].time", "2025-11-20T11:50:00Z"),
            drop("spec.acquireTime"),
            drop("spec.leaseTransitions"),
        )
    ],
    "holder-clock": [make_lease(put("spec.renewTime", "2025-11-20T21:00:00.000000Z"))],
    "holder-gone": [POD, make_lease()],
    "lease-preferred-holder": [make_lease(put("spec.preferredHolder", "x"))],
    "lease-strategy": [make_lease(put("spec.strategy", "x"))],
    "lease-without-stamps": [make_lease(OTHER), make_lease(drop("metadata.managedFields"))],
    "node-gone": [NODE, make_lease(*NODE_LEASE)],
    "object-metadata": [make_lease(put("metadata.labels", {"a b": "c"}))],
    "object-name": [make_lease(put("metadata.name", "A"))],
    "object-types": [make_lease(put("spec.leaseDurationSeconds", "15"))],
    "renewal-stamp-tampered": [make_lease(put("metadata.managedFields[0].time", "2025-11-20T13:00:00Z"))],
    "lease-shared": [
        make_lease(put("metadata.managedFields", [make_entry("renewTime"), make_entry("strategy", manager="other")]))
    ],
    "timing-tight": [make_lease(put("spec.leaseDurationSeconds", 5))],
}
"""Objects of a dump, by the check that must find what is wrong with them."""

DENIED: dict[str, list[Document]] = {
    rule: [
        review["request"]["object"]
        for name, review in pinned_writes()
        if name == rule and review["request"].get("object")
    ]
    for rule in STORED_RULES.keys() - SEEDS.keys()
}
"""By rule, the objects that its own tests expect it to deny: stored, each has the same defect."""

HISTORIES: dict[str, str] = {
    "foreign-release": "measured-incidents/foreign-release/audit.jsonl.gz",
    "identity-shared": "incidents/one-identity/audit.log.gz",
    "leader-lost": "incidents/leader-killed/audit.log.gz",
    "lease-deleted": "incidents/lease-deleted/audit.log.gz",
    "lease-shared": "incidents/two-applications/audit.log.gz",
    "lease-stolen": "incidents/lease-stolen/audit.log.gz",
    "renewal-late": "incidents/etcd-stalled/audit.log.gz",
    "write-fenced": "incidents/fenced/audit.log.gz",
    "write-refused": "incidents/steal-denied/audit.log.gz",
}
"""Audit logs of real incidents, by the check."""

ELSEWHERE = {"clusters-mixed", "handed-over", "stamp-missing", "token-ahead", "token-old"}
"""Found by tests/cli/test_stamps.py, tests/cli/test_tokens.py, and two modules of tests/claims."""


@cache
def documented() -> Mapping[str, str]:
    """Return the severity of each check, as the page has it."""
    section = find_section(DOCS / "audit.md", "Checks")
    rows = [*find_table(section, "rule"), *find_table(section, "check")]
    return {name: row[1] for row in rows for name in re.findall(r"`([a-z-]+)`", row[0])}


def find(capsys: pytest.CaptureFixture[str], *arguments: str) -> set[tuple[str, str]]:
    """Return the checks and severities that `audit` prints."""
    main(["audit", *arguments, "--format", "json"])
    findings = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    return {(one["check"], one["severity"]) for one in findings}


def find_checks(capsys: pytest.CaptureFixture[str], *arguments: str) -> set[str]:
    """Return the checks, whose severities are those of the page."""
    all_found = find(capsys, *arguments)
    assert not [(check, severity) for check, severity in all_found if severity not in documented().get(check, "")]
    return {check for check, _ in all_found}


def test_every_check_has_a_seed() -> None:
    assert documented().keys() == SEEDS.keys() | DENIED.keys() | HISTORIES.keys() | ELSEWHERE


def test_every_check_is_a_claim() -> None:
    assert documented().keys() <= KINDS.keys()


@pytest.mark.parametrize("check", SEEDS)
def test_a_seeded_defect_is_found(check: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": SEEDS[check]}))
    assert check in find_checks(capsys, "--input", str(dump), "--now", NOW)


@pytest.mark.parametrize("rule", sorted(DENIED))
def test_what_a_rule_denies_is_found_in_a_stored_object(
    rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump.json"
    dumps = [json.dumps({"apiVersion": "v1", "kind": "List", "items": [one]}) for one in DENIED[rule]]
    assert any(
        dump.write_text(text) and rule in find_checks(capsys, "--input", str(dump), "--now", NOW) for text in dumps
    )


HOSTILE = "{name}'; reboot; --all {lease}{kubectl}"
"""A name that ends its word, adds a command, and looks like what stands for other names."""


@pytest.mark.parametrize("check", [*SEEDS, *sorted(DENIED)])
def test_names_are_words_of_the_commands(check: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Read the advice as a shell does: anybody may write a file, and in a cluster a candidate's leaseName."""
    renamed = json.loads(json.dumps(SEEDS.get(check) or DENIED[check]))
    for one in (document for document in renamed if document["kind"] in {"Lease", "LeaseCandidate"}):
        one["metadata"]["name"] += HOSTILE
        if one["metadata"]["namespace"] == "shop":
            one["metadata"]["namespace"] += HOSTILE
        if one["spec"].get("leaseName"):
            one["spec"]["leaseName"] += HOSTILE
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": renamed}))
    main(["audit", "--input", str(dump), "--now", NOW, "--format", "json"])
    repairs = [json.loads(line)["fix"] for line in capsys.readouterr().out.splitlines()]
    named = [word for repair in repairs if "reboot" in repair for word in shlex.split(repair) if "reboot" in word]
    # A sentence may follow a command.
    assert all(word.rstrip(",").removesuffix(";").endswith(HOSTILE) for word in named)


@pytest.mark.parametrize("check", HISTORIES)
def test_an_incident_is_found_in_its_log(check: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert check in find_checks(capsys, "--input", str(DATA / HISTORIES[check]))
