"""`lease-webhook policy check|show|schema`."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.docs.policy_schema import make_json_schema, make_text
from webhook.admission.policy.schema import PLAIN_SETTINGS, RULE_IDS
from webhook.cli.main import main

SHOP = str(Path(__file__).parent.parent / "data" / "policies" / "shop.yaml")


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_check_tells_what_a_file_comes_to_and_what_is_odd(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "check", SHOP]) == 0
    first, *notes = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{SHOP}: good, preset strict, hash ")
    assert first.endswith("rules in mode warn at most, without_stamps weaken")
    assert any(note.startswith("  note: exempt[1] (on-call) expired after 2026-01-31") for note in notes)


def test_check_of_a_plain_file_says_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("apiVersion: lease-webhook/v1\n")
    assert main(["policy", "check", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{path}: good, preset standard, hash ")
    assert out.endswith("rules in mode deny at most, without_stamps weaken\n")


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        pytest.param("strict", ["this is the preset; the file of that name is ./strict"], id="the preset of its name"),
        pytest.param("./strict", [], id="the file"),
        pytest.param("standard", [], id="a preset whose name no file has"),
    ],
)
def test_check_says_that_a_file_with_the_name_of_a_preset_was_not_read(
    name: str, notes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "strict").write_text("apiVersion: lease-webhook/v1\n")
    monkeypatch.chdir(tmp_path)
    assert main(["policy", "check", "-o", "json", name]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == notes


def give(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_check_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    give("apiVersion: lease-webhook/v1\npreset: strict\n", monkeypatch)
    assert main(["policy", "check", "-"]) == 0
    assert capsys.readouterr().out.startswith("standard input: good, preset strict, hash ")
    give("apiVersion: lease-webhook/v1\npreset: strct\n", monkeypatch)
    assert main(["policy", "check", "-"]) == 2
    assert 'standard input: line 2: preset: "strct" is not known; did you mean "strict"?' in capsys.readouterr().err


def test_no_other_command_takes_a_policy_from_standard_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "show", "-"]) == 2
    assert capsys.readouterr().err == (
        "lease-webhook: -: only `policy check` reads a policy from standard input; name a file\n"
    )


def test_check_refuses_with_the_path_and_the_nearest_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("apiVersion: lease-webhook/v1\nrules:\n  takeover-befor-expiry: {mode: deny}\n")
    assert main(["policy", "check", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"lease-webhook: {path}: line 3: rules.takeover-befor-expiry: unknown rule; "
        'did you mean "takeover-before-expiry"?\n'
    )


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["policy", "show", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[1:])) <= 100
    return [" ".join(line.split()) for line in lines]


def test_show_names_the_layer_of_every_setting_of_a_lease(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, SHOP, "shop/checkout")
    assert "for lease shop/checkout" in lines
    assert {rule for rule in RULE_IDS if any(line.startswith(f"{rule} ") for line in lines)} == set(RULE_IDS)
    for line in (
        "object-name warn (would deny) preset",
        "takeover-before-expiry warn (would deny) rules",
        "foreign-release off overrides[0]",
        "holder-identity-mismatch audit overrides[1] on CREATE",
        "holder-identity-mismatch warn preset on UPDATE",
        "warn_above_seconds 3600 rules",
        "deny_from 5000 overrides[0]",
        "above_seconds 3600 built in",
    ):
        assert line in lines
    text = " ".join(lines[lines.index("What the file says of it") + 1 :])
    for entry in (
        'overrides[0] rules: {"transitions-jump": {"deny_from": 5000},',
        'leases: ["check*"] overrides[1] rules: {"holder-identity-mismatch": {"mode": "audit"}}',
        'bindings[0] namespace: "shop"',
        'holder: ["${pod}_*"] exempt[0] owner: "platform team"',
        'operations: ["CREATE"], until: "2027-01-31"',
    ):
        assert entry in text


def test_show_leaves_out_what_does_not_concern_the_lease(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, SHOP, "--namespace", "bank")
    assert "for lease bank/*" in lines
    assert not any(line.startswith(("overrides[0]", "bindings[", "exempt[0]")) for line in lines)
    assert any(line.startswith("exempt[1]") for line in lines)
    assert "foreign-release warn (would deny) preset" in lines


def test_show_without_a_file_is_standard(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys)
    assert lines[0] == "standard"
    assert lines[1].startswith("preset standard, hash ")
    assert "for lease */*" in lines
    assert "takeover-before-expiry warn preset" in lines
    assert "What the file says of it" not in lines


def test_show_says_loudly_that_a_policy_is_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        "apiVersion: lease-webhook/v1\nmode: off\n"
        "exempt: [{users: [ann], owner: ops, reason: tests}]\n"
        "bindings: [{namespace: a, lease: b, writers: [a/b], holder: [b], require_pod: true}]\n"
    )
    lines = shown(capsys, str(path))
    assert "everything allowed (mode: off)" in lines[1]
    assert "object-name off preset" in lines
    assert 'exempt[0] owner: "ops", reason: "tests", users: ["ann"]' in lines
    assert any(line.endswith("require_pod: true") for line in lines)


def test_both_commands_say_where_the_rules_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("apiVersion: lease-webhook/v1\ndocs_url: https://docs.example.com/rules/{rule}.md\n")
    assert main(["policy", "check", str(path)]) == 0
    assert capsys.readouterr().out.endswith(", docs_url https://docs.example.com/rules/{rule}.md\n")
    assert main(["policy", "show", str(path)]) == 0
    assert ", docs_url https://docs.example.com/rules/{rule}.md\n" in capsys.readouterr().out


def list_plain_settings() -> Iterator[Any]:
    """Yield each with a value, but for those that the first words of both commands say in their own way."""
    properties = make_json_schema()["$defs"]["PolicyDocument"]["properties"]
    for name in PLAIN_SETTINGS:
        about = properties[name]
        value = about.get("enum", [about.get("minimum", "https://docs.example.com")])[-1]
        yield pytest.param(name, value, id=name)


@pytest.mark.parametrize(("name", "value"), [*list_plain_settings()])
def test_both_commands_say_what_each_plain_setting_is(
    name: str, value: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"apiVersion: lease-webhook/v1\n{name}: {json.dumps(value)}\n")
    for command in ("check", "show"):
        assert main(["policy", command, str(path)]) == 0
        assert f"{name} {value}" in capsys.readouterr().out or (name, value) == ("mode", "off")
        assert main(["policy", command, str(path), "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)[name] == value


def test_schema_is_the_one_in_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "schema"]) == 0
    assert capsys.readouterr().out == make_text()


def test_what_a_program_reads_of_a_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        "apiVersion: lease-webhook/v1\n"
        "exempt:\n- {owner: a, reason: b, users: [ci], until: 2020-01-01}\n"
        "overrides:\n- {namespaces: [shop], rules: {lease-duration: {mode: warn}}}\n"
        "bindings:\n- {namespace: shop, lease: x, writers: [shop/x], holder: [x]}\n"
    )
    assert main(["policy", "check", str(path), "--format", "json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert (checked["good"], checked["preset"], len(checked["notes"])) == (True, "standard", 1)
    assert main(["policy", "show", str(path), "--namespace", "shop", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    overridden = {"rule": "lease-duration", "name": "mode", "value": "warn", "layer": "overrides[0]", "operations": []}
    assert overridden in document["settings"]
    assert [document[key][0]["position"] for key in ("exempt", "overrides", "bindings")] == [0, 0, 0]
    assert (document["exempt"][0]["until"], document["hash"]) == ("2020-01-01", checked["hash"])
    assert document["exempt"][0]["ended"] is True


@pytest.mark.parametrize(
    ("until", "is_ended"),
    [
        pytest.param("until: 2020-01-01", True, id="a day that is over"),
        pytest.param("until: 9000-01-01", False, id="a day to come"),
        pytest.param("rules: [ping-time-writer]", False, id="no end"),
    ],
)
def test_show_marks_an_exemption_that_has_ended(
    until: str, is_ended: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"apiVersion: lease-webhook/v1\nexempt:\n- {{owner: a, reason: b, users: [ci], {until}}}\n")
    text = " ".join(shown(capsys, str(path)))
    assert ("(ended: it exempts nobody)" in text) is is_ended
    assert main(["policy", "show", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["exempt"][0]["ended"] is is_ended


@pytest.mark.parametrize(
    "entry",
    [
        r'{owner: "\e[31mred", reason: b, users: [c]}',
        r'{owner: a, reason: "\e[2J\u202Ex", users: [c]}',
        r'{owner: a, reason: b, users: ["c\e[31m"]}',
        r'{owner: a, reason: b, users: ["c\n"]}',
        r'{owner: a, reason: b, leases: ["c\a"]}',
        r'{owner: a, reason: b, service_accounts: ["c/d\x9b"]}',
    ],
)
def test_a_policy_holds_no_control_characters(entry: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"apiVersion: lease-webhook/v1\nexempt:\n- {entry}\n")
    assert main(["policy", "show", str(path)]) == 2
    out, err = capsys.readouterr()
    assert (out, "exempt[0]" in err) == ("", True)


def test_show_escapes_what_does_not_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        "apiVersion: lease-webhook/v1\n"
        'exempt:\n- {owner: "o\\u200b", reason: "r\\ns", users: ["u\\u200b"], leases: ["l\\u200b"]}\n'
        'overrides:\n- {namespaces: ["n\\u200b"], rules: {lease-duration: {mode: warn}}}\n'
        'bindings:\n- {namespace: "b\\u200b", lease: x, writers: ["user:w\\u200b"], holder: ["h\\u200b"]}\n',
        encoding="utf-8",
    )
    assert main(["policy", "show", str(path)]) == 0
    out = capsys.readouterr().out
    assert (out.count(r"\u200b"), r"r\ns" in out) == (7, True)
    assert all(character.isprintable() for character in out.replace("\n", ""))


def test_object_types_is_known_and_cannot_be_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("apiVersion: lease-webhook/v1\nrules: {object-types: {mode: warn}}\n")
    assert main(["policy", "check", str(path)]) == 2
    assert "rules.object-types: this rule cannot be changed" in capsys.readouterr().err
