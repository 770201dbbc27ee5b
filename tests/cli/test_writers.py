"""`writers` as people type it."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.factories import make_lease
from tests.test_rights import BINDING, ROLE, rule
from webhook.analysis.rights import read_access_control
from webhook.cli.grants import format_overview
from webhook.cli.main import main


def run(capsys: pytest.CaptureFixture[str], file: Path, *objects: dict[str, Any], options: tuple[str, ...] = ()) -> Any:
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [*objects]}))
    code = main(["writers", "shop/checkout", "--input", str(file), *options])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rbac.json"


def test_a_row_for_each_grant_and_what_closes_it(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, out, err = run(capsys, file, ROLE, BINDING)
    assert (code, err) == (0, "")
    assert re.split(r"  +", out.splitlines()[1]) == [
        "ServiceAccount shop/checkout",
        "create,update",
        "no",
        "RoleBinding shop/elector (Role elector)",
    ]
    assert "lease-webhook suggest bindings shop/checkout" in out
    assert "RBAC cannot limit create by name" in out


def test_without_create_its_limit_is_not_explained(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    _, out, _ = run(capsys, file, rule(resourceNames=["checkout"]), BINDING)
    assert "RBAC cannot limit" not in out


def test_a_lease_that_no_one_may_write(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, out, _ = run(capsys, file, ROLE)
    assert code == 0
    assert "no one but system:masters may write this lease" in out


def test_a_missing_role_is_reported(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    assert "its role does not exist, or was not read" in run(capsys, file, BINDING)[2]


@pytest.mark.parametrize(
    ("reason", "is_refused"),
    [
        pytest.param('clusterroles is forbidden: cannot list resource "clusterroles" at the cluster scope', True),
        pytest.param("Error from server (Timeout)", False),
    ],
    ids=["no right", "another failure"],
)
def test_a_person_without_rights_is_told_what_others_can_write_for_them(
    reason: str, is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f"#!/bin/sh\necho '{reason}' >&2\nexit 1\n")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert main(["writers", "shop/checkout"]) == 2
    err = capsys.readouterr().err
    assert "-n NAMESPACE" not in err
    assert ("whoever may run this can write a file for --input: kubectl get roles," in err) is is_refused


def test_json_has_the_grants(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    _, out, _ = run(capsys, file, ROLE, BINDING, options=("--format", "json"))
    document = json.loads(out)
    assert [grant["verbs"] for grant in document["grants"]] == [["create", "update"]]
    assert (document["namespace"], document["name"], document["unresolved"]) == ("shop", "checkout", [])


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        pytest.param([{"kind": "Pod", "apiVersion": "v1"}], "no role and no binding is in the input", id="other kinds"),
        pytest.param([rule(verbs="*")], "not an object of RBAC: Role: Expected `array", id="a broken role"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], file: Path, objects: list[dict[str, Any]], words: str
) -> None:
    code, out, err = run(capsys, file, *objects)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_an_empty_input_is_called_empty(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    file.write_text("")
    assert main(["writers", "shop/checkout", "--input", str(file)]) == 2
    assert capsys.readouterr().err == f"lease-webhook: no role and no binding is in the input: {file} is empty\n"


def test_the_files_of_a_directory_are_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name, thing in {"role.json": ROLE, "binding.json": BINDING}.items():
        (tmp_path / name).write_text(json.dumps(thing))
    assert main(["writers", "shop/checkout", "--input", str(tmp_path)]) == 0
    assert "ServiceAccount shop/checkout" in capsys.readouterr().out


def test_hostile_names_stay_on_their_line(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    hostile = {**BINDING, "subjects": [{"kind": "User", "name": "ann\n\x1b[31mroot"}]}
    _, out, _ = run(capsys, file, ROLE, hostile)
    assert "\x1b" not in out
    assert sum(line.startswith("User") for line in out.splitlines()) == 1


# ---- why and audit, on request ---------------------------------------------------------------------------------------


@pytest.fixture
def both(tmp_path: Path) -> list[str]:
    """A list with a lease, and one with RBAC objects."""
    files = {"leases.json": [make_lease()], "rbac.json": [rule(resourceNames=["checkout"]), BINDING]}
    for name, items in files.items():
        (tmp_path / name).write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    return [option for name in files for option in ("--input", str(tmp_path / name))]


ROW: Final = "ServiceAccount shop/checkout  update  yes              RoleBinding shop/elector (Role elector)"


def test_why_shows_who_may_write_the_lease(capsys: pytest.CaptureFixture[str], both: list[str]) -> None:
    assert main(["why", "shop/checkout", "--writers", *both]) == 0
    out = capsys.readouterr().out
    assert "Who may write it" in out
    assert ROW in out
    assert main(["why", "shop/checkout", *both]) == 0
    assert "Who may write it" not in capsys.readouterr().out


@pytest.mark.parametrize("words", [["why", "shop/checkout"], ["audit"]], ids=["why", "audit"])
def test_leases_and_rbac_objects_are_read_from_one_directory(
    words: list[str], capsys: pytest.CaptureFixture[str], both: list[str]
) -> None:
    main([*words, "--writers", "--input", str(Path(both[-1]).parent)])
    out, err = capsys.readouterr()
    assert "ServiceAccount shop/checkout" in out
    assert "directory" not in err


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_why_writes_grants_for_a_program(capsys: pytest.CaptureFixture[str], both: list[str], output: str) -> None:
    assert main(["why", "shop/checkout", "--writers", "--format", output, *both]) == 0
    out = capsys.readouterr().out
    written = json.loads(out) if output == "json" else yaml.safe_load(out)
    assert written["rights"]["grants"][0]["name"] == "shop/checkout"
    assert main(["why", "shop/checkout", "--format", output, *both]) == 0
    assert "rights" not in capsys.readouterr().out


def test_audit_shows_who_may_write_each_lease(capsys: pytest.CaptureFixture[str], both: list[str]) -> None:
    main(["audit", "--writers", *both])
    out = capsys.readouterr().out
    assert out.endswith("LEASE          WRITERS (* only this lease)\nshop/checkout  ServiceAccount shop/checkout*\n")
    main(["audit", "--writers", "--format", "json", *both])
    written = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (written["namespace"], written["name"]) == ("shop", "checkout")
    assert written["rights"]["grants"][0]["is_named"]
    main(["audit", "--writers", "-l", "team=other", *both])
    assert "shop/checkout" not in capsys.readouterr().out.partition("WRITERS")[2]


def test_a_row_has_a_few_subjects_and_counts_the_others() -> None:
    subjects = [{"kind": "User", "name": f"u{at}"} for at in range(9)]
    access = read_access_control([ROLE, {**BINDING, "subjects": subjects}])
    row = list(format_overview(access, [("shop", "checkout"), ("other", "checkout")]))[1:]
    assert row[0].endswith("User u5, 3 more")
    assert row[1].split() == ["other/checkout", "-"]


def test_a_row_begins_with_others_than_kubernetes_itself() -> None:
    names = ["system:masters", "system:authenticated", "ann"]
    subjects = [{"kind": "Group", "name": name} for name in names]
    subjects.append({"kind": "ServiceAccount", "namespace": "kube-system", "name": "gc"})
    access = read_access_control([ROLE, {**BINDING, "subjects": subjects}])
    row = list(format_overview(access, [("shop", "checkout")]))[1]
    assert row.split("  ", 1)[1].split(", ") == [
        "Group ann",
        "Group system:authenticated",
        "Group system:masters",
        "ServiceAccount kube-system/gc",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["why", "--writers"], id="a list of all leases"),
        pytest.param(["why", "shop/checkout", "--writers", "--format", "name"], id="names"),
        pytest.param(["why", "shop/checkout", "--writers", "--input", "-"], id="standard input"),
        pytest.param(["why", "shop/checkout", "--writers", "--watch"], id="a terminal"),
        pytest.param(["audit", "--writers", "--format", "name"], id="names of findings"),
        pytest.param(["audit", "--writers", "--in-cluster"], id="in a pod"),
    ],
)
def test_where_it_cannot_be_shown(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 2
    assert "--writers" in capsys.readouterr().err
