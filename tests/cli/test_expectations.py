"""`check --expect` and `--write-expected`: what is expected is kept, and every difference named."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.check_command import RENEWAL, STEAL, Run
from tests.factories import Document, drop, make_lease, put, to_bytes
from webhook.cli.main import main

FILE = "reviews/expected.jsonl"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `check reviews`, a folder with a renewal and a steal; gives (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    Path("reviews").mkdir()
    for name, review in (("renewal", RENEWAL), ("steal", STEAL)):
        Path(f"reviews/{name}.json").write_bytes(to_bytes(review))

    def check(*args: str) -> tuple[int, str, str]:
        code = main(["check", "reviews", *args])
        return code, *capsys.readouterr()

    return check


def expected() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(FILE).read_text().splitlines()]


def keep(*lines: Document) -> None:
    Path(FILE).write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def test_what_is_written_is_as_expected(run: Run) -> None:
    assert run("--write-expected", FILE) == (0, f"{FILE}: 2 lines written: read them before you keep them\n", "")
    assert expected() == [
        {"review": "renewal.json", "verdict": "allowed", "code": 200, "rules": []},
        {"review": "steal.json", "verdict": "warned", "code": 200, "rules": ["takeover-before-expiry=warn"]},
    ]
    assert run("--expect", FILE)[:2] == (0, "2 as expected; 1 skipped (ignored 1)\n")


def test_what_differs_is_named(run: Run) -> None:
    run("--write-expected", FILE)
    assert run("--expect", FILE, "--policy", "strict")[:2] == (
        1,
        """\
differs    reviews/steal.json  Lease shop/checkout, steal
           verdict: expected warned, is denied
           code: expected 200, is 403
           rules: expected takeover-before-expiry=warn, which is missing
           rules: takeover-before-expiry=deny is not expected
1 as expected, 1 not; 1 skipped (ignored 1)
""",
    )


def test_a_review_without_a_line_and_a_line_without_a_review_differ(run: Run) -> None:
    run("--write-expected", FILE)
    renewal, steal = expected()
    keep(steal | {"why": "held"}, renewal | {"review": "../gone.json"})
    code, out, _ = run("--expect", FILE)
    assert code == 1
    assert "renewal.json" in out
    assert "no line expects it: allowed" in out
    assert "missing    ../gone.json\n           it was not evaluated\n1 as expected, 2 not" in out


def test_differences_are_json_too(run: Run) -> None:
    run("--write-expected", FILE)
    keep(*expected(), {"review": "gone.json", "verdict": "denied", "code": 403, "rules": []})
    code, out, _ = run("--expect", FILE, "--format", "json")
    assert code == 1
    outcomes = [json.loads(line) for line in out.splitlines()]
    assert [one["differences"] for one in outcomes] == [[], [], ["it was not evaluated"]]


def test_documents_of_one_file_have_numbers(run: Run) -> None:
    Path("reviews/steal.json").unlink()
    Path("reviews/renewal.json").rename("reviews/a.jsonl")
    with Path("reviews/a.jsonl").open("ab") as file:
        file.write(b"\n" + to_bytes(STEAL))
    run("--write-expected", FILE)
    assert [one["review"] for one in expected()] == ["a.jsonl#1", "a.jsonl#2"]
    assert run("--expect", FILE)[0] == 0


def test_a_misspelled_field_of_a_manifest_is_a_warning_here_too(run: Run) -> None:
    bare = (drop("metadata.uid"), drop("metadata.resourceVersion"), drop("metadata.creationTimestamp"))
    Path("reviews/lease.json").write_bytes(to_bytes(make_lease(*bare, put("spec.renewTim", "x"))))
    run("--write-expected", FILE)
    assert [one["verdict"] for one in expected() if one["review"] == "lease.json"] == ["warned"]


def test_a_file_is_never_replaced(run: Run) -> None:
    keep({"review": "a", "verdict": "denied", "code": 403, "rules": []})
    before = Path(FILE).read_bytes()
    code, _, err = run("--write-expected", FILE)
    assert (code, "exists: edit the lines that differ" in err) == (2, True)
    assert Path(FILE).read_bytes() == before


def test_nothing_is_written_of_what_cannot_be_read(run: Run) -> None:
    Path("reviews/broken.json").write_text('{"kind": "AdmissionReview", "request": [')
    code, out, err = run("--write-expected", FILE)
    assert (code, "broken.json" in out, f"{FILE} is not written: 1 unreadable" in err) == (2, True, True)
    assert not Path(FILE).exists()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param(b"{", "line 1: ", id="broken"),
        pytest.param(b'\n{"review": "a", "verdict": "no"}', "line 2: Invalid enum value 'no'", id="another verdict"),
        pytest.param(b'{"review": "a", "verdict": "denied", "code": 1}', "missing required field `rules`", id="less"),
        pytest.param(
            b'{"review": "a", "verdict": "denied", "code": 1, "rules": [], "x": 1}', "unknown field `x`", id="more"
        ),
        pytest.param(b"\xff", "line 1: ", id="another encoding"),
        pytest.param(b'{"review": ' + b"[" * 100_000, "line 1: ", id="nested deeply"),
        pytest.param(
            b'{"review": "a", "verdict": "denied", "code": 1, "rules": []}\n' * 2, "has a line already", id="twice"
        ),
    ],
)
def test_a_broken_file_is_one_line_and_exit_2(content: bytes, complaint: str, run: Run) -> None:
    Path(FILE).write_bytes(content)
    code, out, err = run("--expect", FILE)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert complaint in err


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["--expect", "a", "--write-expected", "b"], id="both"),
        pytest.param(["--expect", "a", "--against", "strict"], id="two policies"),
        pytest.param(["--expect", "a", "--format", "sarif"], id="a report"),
        pytest.param(["--expect", "absent"], id="an absent file"),
        pytest.param(["--write-expected", "absent/expected.jsonl"], id="an absent folder"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(args: list[str], run: Run) -> None:
    code, _, err = run(*args)
    assert (code, err.count("\n")) == (2, 1)
