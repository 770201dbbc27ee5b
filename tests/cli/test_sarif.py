"""`check --format sarif`: the same findings and exit codes as text, in valid documents whatever was checked."""

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from tests.factories import HOLDER, Document, drop, make_lease, put
from webhook import __version__
from webhook.cli.main import main
from webhook.cli.sarif import REQUEST, UNREADABLE, sarif, uri
from webhook.inputs.items import Place, Unreadable

SCHEMA: Final = Path(__file__).parents[1] / "data" / "sarif-schema-2.1.0.json"
VALIDATOR: Final = Draft4Validator(json.loads(SCHEMA.read_text()), format_checker=Draft4Validator.FORMAT_CHECKER)
BARE = (drop("metadata.uid"), drop("metadata.resourceVersion"), drop("metadata.creationTimestamp"))
SHORT = put("spec.leaseDurationSeconds", 0)

Run = Callable[..., tuple[int, list[dict[str, Any]]]]


def results(text: str) -> list[dict[str, Any]]:
    document = json.loads(text)
    VALIDATOR.validate(document)
    found: list[dict[str, Any]] = document["runs"][0]["results"]
    return found


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Check files in an empty directory; gives (exit code, results)."""
    monkeypatch.chdir(tmp_path)

    def command(*args: str) -> tuple[int, list[dict[str, Any]]]:
        code = main(["check", *args, "--format", "sarif"])
        return code, results(capsys.readouterr().out)

    return command


def write(path: str, *documents: Document) -> str:
    Path(path).write_text(yaml.safe_dump_all(documents))
    return path


def test_each_finding_has_its_rule_level_and_line(check: Run) -> None:
    write("a b.yaml", make_lease(*BARE, put("metadata.name", "good")), {"kind": "Pod"}, make_lease(*BARE, SHORT))
    Path("broken.yaml").write_text("# one of ours\nkind: Lease\nspec: {\n")
    code, found = check("a b.yaml", "broken.yaml")
    assert code == 2
    starts = [number for number, line in enumerate(Path("a b.yaml").read_text().split("\n"), 1) if line == "---"]
    places = [one["locations"][0]["physicalLocation"] for one in found]
    assert [(one["ruleId"], one["level"]) for one in found] == [("lease-duration", "error"), (UNREADABLE, "error")]
    assert places[0] == {"artifactLocation": {"uri": "a%20b.yaml"}, "region": {"startLine": starts[1] + 1}}
    assert places[1] == {"artifactLocation": {"uri": "broken.yaml"}, "region": {"startLine": 2}}
    assert found[0]["message"]["text"].startswith("Lease shop/checkout, create #3: spec.leaseDurationSeconds: ")


def test_the_rules_that_were_broken_are_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["check", write("a.yaml", make_lease(*BARE, SHORT)), "gone.yaml", "--format", "sarif"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    driver = run["tool"]["driver"]
    assert [rule["id"] for rule in driver["rules"]] == ["lease-duration", UNREADABLE]
    assert driver["rules"][0]["help"]["text"].startswith(driver["rules"][0]["shortDescription"]["text"])
    assert [result["ruleIndex"] for result in run["results"]] == [0, 1]
    assert driver["semanticVersion"] == __version__
    assert run["invocations"] == [{"executionSuccessful": False}]


def test_what_is_admitted_with_a_warning_says_what_happened(check: Run) -> None:
    old = write("old.yaml", make_lease())
    new = write("new.yaml", make_lease(put("spec.holderIdentity", "other-0"), put("spec.leaseTransitions", 9)))
    code, found = check("--policy", "observe", "--old", old, new)
    assert (code, {one["level"] for one in found}) == (0, {"warning"})
    assert "Forbidden" not in "".join(one["message"]["text"] for one in found)


def test_a_denial_without_a_rule_is_a_finding_of_the_request(check: Run) -> None:
    code, (found,) = check(write("old.yaml", make_lease(*BARE, put("apiVersion", "coordination.k8s.io/v1beta9"))))
    assert (code, found["ruleId"], found["level"]) == (1, REQUEST, "error")
    assert "coordination.k8s.io/v1beta9" in found["message"]["text"]


def test_a_policy_that_is_switched_off_is_a_warning(check: Run) -> None:
    Path("off.yaml").write_text('apiVersion: lease-webhook/v1\nmode: "off"\n')
    code, found = check(write("a.yaml", make_lease(*BARE)), "--policy", "off.yaml")
    assert code == 0
    assert {(one["ruleId"], one["level"]) for one in found} <= {(REQUEST, "warning")}


def test_a_fingerprint_does_not_depend_on_lines_and_numbers(check: Run) -> None:
    def fingerprints(*documents: Document) -> list[str]:
        Path("a.yaml").write_text("\n" * len(documents) + yaml.safe_dump_all(documents))
        return [one["partialFingerprints"]["finding/v1"] for one in check("a.yaml")[1]]

    bad = make_lease(*BARE, SHORT)
    (first,) = fingerprints(bad)
    assert fingerprints(make_lease(*BARE, put("spec.leaseDurationSeconds", -7))) == [first]
    assert fingerprints(make_lease(*BARE, SHORT, put("metadata.name", "other"))) != [first]
    assert len(set(fingerprints(bad, bad))) == 2


def test_a_holder_with_control_characters_leaves_the_document_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    holder = f"{HOLDER}\x00\x1b[31m\ud800\uffff]]>&<"
    lease = make_lease(*BARE, put("spec.holderIdentity", holder), put("metadata.name", "\x1b"))
    Path("a.json").write_text(json.dumps(lease))
    assert main(["check", "a.json", "--format", "sarif"]) == 1
    out = capsys.readouterr().out
    assert out.isascii()
    assert out.replace("\n", "").isprintable()
    assert results(out)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("deploy/a.yaml", "deploy/a.yaml"),
        ("./a.yaml", "a.yaml"),
        ("/tmp/a b.yaml", "file:///tmp/a%20b.yaml"),
        ("a:b#c?.yaml", "a%3Ab%23c%3F.yaml"),
        ("-", "-"),
        ("\u00e4\udcff", "%C3%A4%ED%B3%BF"),
    ],
)
def test_a_path_as_a_reference(path: str, expected: str) -> None:
    assert uri(path) == expected


# Control characters and surrogates come often.
HOSTILE = st.text(st.one_of(st.characters(), st.sampled_from('\0\x1b\x7f\x85\u2028\ud800\udc80\ufffe\uffff<&"\n\r\t')))


@given(st.lists(st.builds(Unreadable, st.builds(Place, HOSTILE, line=st.integers(0, 9)), HOSTILE), max_size=4))
def test_hostile_text_gives_valid_documents(found: list[Unreadable]) -> None:
    text = sarif(found)
    assert len(results(text)) == len(found)
    categories = {unicodedata.category(character) for character in text.replace("\n", "")}
    assert not categories & {"Cc", "Cf", "Cs", "Cn", "Co"}


def test_changed_files_that_are_not_objects_can_be_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("values.yaml").write_text("replicas: 3\n")
    Path("template.yaml").write_text("kind: {{ .Values.kind }}\n")
    Path("lease.yaml").write_text("kind: Lease\nspec: {\n")
    assert main(["check", "values.yaml", "template.yaml"]) == 2
    capsys.readouterr()
    assert main(["check", "--skip-foreign", "values.yaml", "template.yaml"]) == 0
    out = capsys.readouterr().out
    assert ("2 skipped (" in out, "not a Kubernetes object 1" in out) == (True, True)
    assert main(["check", "--skip-foreign", "lease.yaml"]) == 2
