"""`suggest bindings` as people type it."""

import gzip
import json
from pathlib import Path

import pytest
import yaml

from tests.factories import put
from tests.inputs.events import make_event
from tests.inputs.fake_kubectl import Install, fake
from tests.recordings import FOLDER
from webhook.cli import reading
from webhook.cli.main import main

__all__ = ["fake"]

CLIENT = str(FOLDER / "1.36.3" / "client-go")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["suggest", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """An audit log whose events name no holder."""
    path = tmp_path / "audit.log.gz"
    events = [make_event(put("verb", verb), put("responseObject", None)) for verb in ("get", "update")]
    path.write_bytes(gzip.compress(b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in events)))
    return path


def test_what_is_printed_is_a_good_policy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "bindings", "--input", CLIENT)
    assert (code, err) == (0, "")
    policy = tmp_path / "policy.yaml"
    policy.write_text(out)
    assert main(["policy", "check", str(policy)]) == 0
    assert capsys.readouterr().out.startswith(f"{policy}: good, preset standard")


def test_the_binding_of_a_real_elector(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "bindings", "--input", CLIENT, "client-go/operator")
    assert (
        run(capsys, "bindings", "--input", CLIENT, "-n", "client-go")[1]
        == run(capsys, "bindings", "--input", CLIENT)[1]
    )
    assert yaml.safe_load(out)["bindings"] == [
        {"namespace": "client-go", "lease": "operator", "writers": ["client-go/operator"], "holder": ["${pod}_*"]}
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bindings", "--input", "gone.log"], "gone.log: No such file"),
        (["bindings", "gone.log"], "gone.log is not NAMESPACE/NAME"),
        (["bindings", "a/b", "c/d"], "one lease at a time: a/b, c/d"),
        (
            ["bindings", "--input", CLIENT, "client-goo/operator"],
            "lease client-goo/operator is in the input; did you mean c",
        ),
        (
            ["bindings", "--input", CLIENT, "shop/operator"],
            "lease shop/operator is in the input; there is client-go/op",
        ),
        (
            ["bindings", "--input", CLIENT, "a/b"],
            "no write of lease a/b is in the input; it has those of 1 other lease",
        ),
        (["bindings", "--input", CLIENT, "-n", "shop"], "no write of a lease of namespace shop is in the input\n"),
        (
            ["bindings", "--input", CLIENT, "-n", "clientgo"],
            "namespace clientgo is in the input; did you mean client-go?",
        ),
        (["bindings", "--input", CLIENT, "-n", "shop", "a/b"], "lease a/b is not in namespace shop"),
        (["bindings", "--input", "docs/examples/bound.yaml"], "no lease and no candidate is in the input"),
    ],
    ids=str,
)
def test_arguments_that_suggest_nothing_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_unreadable_parts_are_reported_and_the_rest_counts(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_NAMED", 1)
    broken = log.parent / "broken.json"
    broken.write_text('{"kind": 5}\n{"kind": "Lease"}\n')
    code, out, err = run(capsys, "bindings", "--input", str(broken), "--input", str(log))
    assert code == 2
    assert err == f"{broken}#1: not a Kubernetes object\n1 more could not be read\n"
    assert "# not seen: 2 parts of the input that could not be read\n" in out


def test_hostile_names_give_no_control_characters(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = log.parent / "hostile.log"
    evil = make_event(put("user.username", "a\x1b[2J\nb"), put("responseObject.spec.holderIdentity", "\x1b]0;x\x07"))
    hostile.write_text(json.dumps(evil))
    _, out, err = run(capsys, "bindings", "--input", str(hostile), "--input", str(log))
    assert (out + err).replace("\n", "").isprintable()


def test_bindings_of_one_namespace_need_no_right_beyond_it(fake: Install, capsys: pytest.CaptureFixture[str]) -> None:
    log = fake()
    assert run(capsys, "bindings", "-n", "shop")[0] == 0
    asked = [line.split()[1:4] for line in log.read_text().splitlines()]
    assert [words[0] for words in asked] == [
        "leases.coordination.k8s.io",
        "pods",
        "leasecandidates.coordination.k8s.io",
    ]
    assert all("shop" in " ".join(words) for words in asked)
