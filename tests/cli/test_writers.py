"""`writers` as people type it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.test_rights import BINDING, ROLE, rule
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


def test_a_role_that_is_missing_is_said(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    assert "its role does not exist, or was not read" in run(capsys, file, BINDING)[2]


def test_json_has_the_grants(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    _, out, _ = run(capsys, file, ROLE, BINDING, options=("--format", "json"))
    found = json.loads(out)
    assert [grant["verbs"] for grant in found["grants"]] == [["create", "update"]]
    assert (found["namespace"], found["name"], found["unresolved"]) == ("shop", "checkout", [])


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


def test_hostile_names_stay_on_their_line(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    hostile = {**BINDING, "subjects": [{"kind": "User", "name": "ann\n\x1b[31mroot"}]}
    _, out, _ = run(capsys, file, ROLE, hostile)
    assert "\x1b" not in out
    assert sum(line.startswith("User") for line in out.splitlines()) == 1
