"""`export fence`, `suggest fence` and `doctor` on fences, as people type them."""

import io
from pathlib import Path

import pytest
import yaml

from webhook.cli.main import main

DATA = Path(__file__).parent.parent / "data" / "fence"
POLICY = str(DATA / "policy.yaml")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def names(text: str) -> list[str]:
    return [one["metadata"]["name"] for one in yaml.safe_load_all(text)]


def test_every_fence_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "export", "fence", POLICY)
    assert (code, err) == (0, "")
    assert names(out) == ["fence-shop-operator"] * 2 + ["fence-ledger"] * 2
    assert out == run(capsys, "export", "fence", POLICY)[1]


def test_one_fence_in_another_mode(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "export", "fence", POLICY, "--name", "ledger", "--mode", "warn")
    assert names(out) == ["fence-ledger"] * 2
    assert list(yaml.safe_load_all(out))[1]["spec"]["validationActions"] == ["Warn", "Audit"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param([POLICY, "--name", "legder"], 'has the name "legder"; did you mean "ledger"?', id="no such name"),
        pytest.param(["standard"], "has no fences", id="a preset"),
        pytest.param(["gone.yaml"], "gone.yaml", id="no such file"),
    ],
)
def test_arguments_that_make_no_fence_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    code, out, err = run(capsys, "export", "fence", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_a_proposal_from_an_audit_log(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    log = DATA / "audit.log"
    code, out, _ = run(capsys, "suggest", "fence", "--input", str(log), "--writer", "shop/operator")
    assert code == 0
    (entry,) = yaml.safe_load(out)["fences"]
    assert (entry["lease"], entry["resources"]) == ("shop/operator", ["configmaps", "deployments.apps"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(log.read_bytes())))
    assert run(capsys, "suggest", "fence", "--input", "-", "--writer", "shop/operator")[1] == out


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        pytest.param(b"{}\n{", [], "#2: line 2: not JSON", id="a line that is cut off"),
        pytest.param(b"{", [], "#1: line 1: not JSON", id="broken JSON"),
        pytest.param(b"a: [", [], "#1: line 2, column 1: did not", id="broken YAML"),
        pytest.param(b"\xff", [], "not UTF-8", id="bytes"),
        pytest.param(b"", [], "no stored write by the service account shop/operator", id="empty"),
        pytest.param(b"a: b", ["shop/operator"], "no stored write by", id="nothing of use"),
        pytest.param(b"[" * 3000, ["shop/operator"], "nested too deeply", id="deep"),
    ],
)
def test_bad_inputs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, arguments: list[str], words: str
) -> None:
    file = tmp_path / "input"
    file.write_bytes(content)
    code, out, err = run(capsys, "suggest", "fence", "--input", str(file), "--writer", "shop/operator", *arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_a_writer_without_a_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--writer must be" in run(capsys, "suggest", "fence", "--input", "x", "--writer", "operator")[2]


def test_the_doctor_finds_what_was_changed_by_hand(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    text = run(capsys, "export", "fence", POLICY)[1]
    cluster.write_text(text)
    assert run(capsys, "doctor", "--input", str(cluster), "--policy", POLICY)[0] == 0
    cluster.write_text(text.replace("failurePolicy: Fail", "failurePolicy: Ignore"))
    code, out, _ = run(capsys, "doctor", "--input", str(cluster), "--policy", POLICY)
    assert code == 1
    assert "fence-drift  ValidatingAdmissionPolicy spec.failurePolicy: Ignore" in out


def test_a_fence_without_a_mode_warns_and_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(Path(POLICY).read_text().replace("  mode: deny\n", ""))
    code, out, err = run(capsys, "export", "fence", str(policy), "--name", "ledger")
    assert code == 0
    assert err == "fence ledger refuses nothing: its mode is warn; --mode deny refuses\n"
    assert list(yaml.safe_load_all(out))[1]["spec"]["validationActions"] == ["Warn", "Audit"]
    assert run(capsys, "export", "fence", str(policy), "--mode", "deny")[2] == ""
