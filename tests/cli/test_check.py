"""`check`: what a person reads, what a program reads, and the exit code."""

import gzip
import io
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance import CODES
from tests.cli.check_command import Run, run
from tests.factories import (
    HOLDER,
    KEEPER,
    Document,
    changed,
    drop,
    make_candidate,
    make_entry,
    make_lease,
    make_review,
    put,
    to_bytes,
)
from tests.inputs.events import make_event
from tests.recordings import FOLDER
from webhook.cli.main import main

__all__ = ["run"]

TOO_SHORT = put("spec.leaseDurationSeconds", 0)
BARE = (drop("metadata.uid"), drop("metadata.resourceVersion"), drop("metadata.creationTimestamp"))
NO_WRITER = "rules about the writer were not evaluated: --user NAME says who writes the manifests\n"
STRANGER = "system:serviceaccount:other:intruder"


def write(path: str, *documents: Document) -> str:
    """A YAML file, or JSON lines where the name says so."""
    if path.endswith(".jsonl"):
        Path(path).write_bytes(b"".join(map(to_bytes, documents)))
    else:
        Path(path).write_text(yaml.safe_dump_all(documents))
    return path


def lines(out: str) -> list[dict[str, Any]]:
    """The JSON lines."""
    return [json.loads(line) for line in out.splitlines()]


# ---- what a person reads: the wording, once -------------------------------------------------------------------------


def test_text_of_an_allowed_lease(run: Run) -> None:
    write("lease.yaml", make_lease(*BARE))
    assert run("lease.yaml") == (
        0,
        "1 evaluated: 1 allowed\n",
        NO_WRITER,
    )


def test_text_of_a_denied_lease_says_what_to_do(run: Run) -> None:
    write("lease.yaml", make_lease(*BARE, put("spec.renewTime", "2026-11-20T12:00:00.000000Z"), TOO_SHORT))
    assert run("lease.yaml") == (
        1,
        """\
denied     lease.yaml  Lease shop/checkout, create
           line 22: lease-duration: spec.leaseDurationSeconds: Invalid value: 0: must be greater
           than 0
           line 24: renew-time-in-future: spec.renewTime: Invalid value:
           "2026-11-20T12:00:00.000000Z": must not be more than 86400 s ahead of the API server
           (12:00:00Z), is 365 d 0 h ahead; write the current time, or set the client's clock
1 evaluated: 1 denied
Why a rule exists: lease-webhook rules lease-duration
""",
        NO_WRITER,
    )


def test_text_of_a_lease_with_a_warning(run: Run) -> None:
    taken = make_lease(
        put("spec.holderIdentity", "checkout-6d5f9c-x2x8p_2a7c"),
        put("spec.leaseTransitions", 6),
        put("metadata.managedFields[0].time", "2025-11-20T12:00:04Z"),
    )
    Path("review.json").write_bytes(to_bytes(make_review(new=taken, old=make_lease())))
    assert run("review.json") == (
        0,
        """\
warned     review.json  Lease shop/checkout, steal
           warning: lease webhook, takeover-before-expiry: lease "shop/checkout" was taken from
           "checkout-6d5f9c-x2x8p_1f0e" 11 s before expiry: there may be two leaders

  rule                    standard
  takeover-before-expiry  1 warn

1 evaluated: 1 allowed with warnings
""",
        "",
    )


def test_text_of_what_cannot_be_read(run: Run) -> None:
    Path("broken.yaml").write_text("kind: Lease\nspec: {\n")
    assert run("broken.yaml", "absent.json") == (
        2,
        """\
unreadable broken.yaml
           line 3, column 1: did not find expected node content
unreadable absent.json
           No such file or directory
0 evaluated; 2 unreadable
""",
        "",
    )


@pytest.mark.parametrize(
    ("manifest", "error"),
    [
        pytest.param(
            {"kind": "Lease"},
            "a Lease needs apiVersion: coordination.k8s.io/v1 or another version of that group",
            id="none",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "LeaseCandidate"},
            "a LeaseCandidate needs apiVersion: coordination.k8s.io/v1 or another version of that group",
            id="that of the core group",
        ),
        pytest.param(
            {"apiVersion": "coordination.k8s.io/v1", "kind": "Leese"},
            "the kinds of coordination.k8s.io are Lease and LeaseCandidate",
            id="a kind that the group does not have",
        ),
    ],
)
def test_a_mistyped_type_is_not_skipped(manifest: Document, error: str, run: Run) -> None:
    write("lease.yaml", manifest)
    code, out, _ = run("lease.yaml", "--format", "json")
    assert (code, lines(out)) == (2, [{"source": "lease.yaml#1", "line": 1, "error": error}])


def test_a_lease_of_another_group_is_skipped(run: Run) -> None:
    write("lease.yaml", {"apiVersion": "example.com/v1", "kind": "Lease"})
    assert run("lease.yaml") == (
        2,
        "0 evaluated; 1 skipped (Lease 1): nothing here is a Lease, a LeaseCandidate or an AdmissionReview\n",
        "lease-webhook: 0 evaluated, and at least 1 must be: --require 0 lets that pass\n",
    )
    assert run("lease.yaml", "--require", "0")[0] == 0
    assert run("lease.yaml", "--skip-foreign")[0] == 0


def test_nothing_is_evaluated_as_created_where_old_cannot_be_read(run: Run) -> None:
    write("lease.yaml", make_lease(*BARE))
    code, out, _ = run("lease.yaml", "--old", "absent.yaml", "--format", "json")
    assert (code, lines(out)) == (2, [{"source": "absent.yaml#1", "line": None, "error": "No such file or directory"}])


def test_a_namespace_of_a_file(run: Run) -> None:
    write("lease.yaml", make_lease(*BARE))
    message = "lease-webhook: --namespace is for the cluster: what a PATH has is evaluated whole\n"
    assert run("lease.yaml", "--namespace", "shop") == (2, "", message)


def test_a_group_without_a_user(run: Run) -> None:
    write("lease.yaml", make_lease(*BARE))
    assert run("lease.yaml", "--group", "a") == (
        2,
        "",
        "lease-webhook: --group needs --user: a group alone writes nothing\n",
    )


def test_hidden_characters_of_a_file_never_reach_the_terminal(run: Run) -> None:
    write(
        "a\x1b[2J.yaml",
        make_lease(*BARE, put("metadata.name", "x\u202e\x1b[31m\n"), put("spec.holderIdentity", "\x07")),
    )
    code, out, _ = run("a\x1b[2J.yaml")
    assert code == 1
    assert all(character.isprintable() for character in out.replace("\n", ""))


# ---- what is read ---------------------------------------------------------------------------------------------------


def test_documents_lists_and_other_kinds(run: Run) -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    foreign = {**make_lease(), "apiVersion": "example.com/v1"}
    a_list = {"apiVersion": "v1", "kind": "List", "items": [make_lease(), config_map, make_candidate()]}
    typed = {"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList", "items": [make_lease(drop("kind"))]}
    write("all.yaml", config_map, a_list, foreign, typed)
    code, out, err = run("--format", "json", "all.yaml")
    assert code == 0
    assert [line["source"] for line in lines(out)] == ["all.yaml#2", "all.yaml#4", "all.yaml#6"]
    assert err == "3 skipped (ConfigMap 2, Lease 1)\n"


def test_lines_of_reviews(run: Run) -> None:
    bodies = [to_bytes(make_review()), b"\n", b"{\n", b'{"kind": "AdmissionReview"}\n', to_bytes(make_review())]
    Path("some.jsonl").write_bytes(b"".join(bodies))
    code, out, _ = run("--format", "json", "some.jsonl")
    assert code == 2
    assert [line.get("allowed") for line in lines(out)] == [True, None, None, True]


def test_a_review_is_evaluated_byte_for_byte(run: Run) -> None:
    body = to_bytes(make_review()).replace(b":15,", b':15,"leaseDurationSeconds":0,')
    Path("repeated.json").write_bytes(body)
    assert run("repeated.json")[0] == 1


def test_a_long_key_that_appears_twice_is_shown_in_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = "x" * 100_000
    (tmp_path / "x.json").write_text(f'{{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","{key}":1,"{key}":2}}')
    assert main(["check", str(tmp_path / "x.json")]) == 2
    out = capsys.readouterr().out
    assert "xxx...' appears twice" in " ".join(out.split())
    assert len(out) < 1000


def test_directories_are_searched_and_indexes_left_out(run: Run) -> None:
    Path("sub/deep").mkdir(parents=True)
    write("sub/b.yaml", make_lease())
    write("sub/deep/a.jsonl", make_review())
    Path("sub/index.jsonl").write_text('{"file": "x"}\n')
    Path("sub/notes.txt").write_text("no YAML: at: all")
    code, out, err = run("--format", "json", "sub")
    assert (code, err) == (0, "")
    assert [line["source"] for line in lines(out)] == ["sub/b.yaml#1", "sub/deep/a.jsonl#1"]


def test_rotated_logs_of_a_directory_are_evaluated(run: Run) -> None:
    Path("logs").mkdir()
    written = {"audit.log": "a", "audit.log.1": "b", "audit.log.2.gz": "c", "audit.ndjson": "d"}
    for file, name in written.items():
        event = to_bytes(
            make_event(put("verb", "create"), put("objectRef.name", name), put("responseObject.metadata.name", name))
        )
        Path("logs", file).write_bytes(gzip.compress(event) if file.endswith(".gz") else event)
    code, out, _ = run("--format", "json", "logs")
    assert code == 0
    assert sorted(line["name"] for line in lines(out)) == ["a", "b", "c", "d"]


def test_archives_and_manual_pages_of_a_directory_are_skipped(run: Run) -> None:
    Path("all").mkdir()
    Path("all/chart.tar.gz").write_bytes(gzip.compress(bytes(range(256)) * 20))
    Path("all/lease.1").write_text(".TH LEASE 1\n.SH NAME\nlease: [\n")
    write("all/lease.yaml", make_lease())
    code, out, _ = run("all")
    assert code == 0
    assert out == "1 evaluated: 1 allowed; 2 skipped (not a Kubernetes object 2)\n"


def test_what_a_directory_holds_besides_is_skipped(run: Run) -> None:
    for folder in (".git", "sub/.venv", "charts", "sub/old"):
        Path("all", folder).mkdir(parents=True)
        write(f"all/{folder}/lease.yaml", make_lease(TOO_SHORT))
    Path("all/.hidden.yaml").write_text("a: [")
    Path("all/template.yaml").write_text("kind: Role\nmetadata: {{ include x }}\n{{- end }}\n")
    Path("all/kustomization.yaml").write_text("resources: [a]\n")
    Path("all/patch.yaml").write_text("- op: remove\n")
    Path("all/empty.yaml").write_text("# nothing\n")
    Path("all/latin.json").write_bytes(b"\xff")
    write("all/lease.yaml", make_lease())
    assert run("all", "--ignore", "charts", "--ignore", "sub/old/") == (
        0,
        """\
1 evaluated: 1 allowed; 10 skipped (hidden 3, not a Kubernetes object 3, ignored 2, no kind 1, template 1)
""",
        NO_WRITER,
    )


@pytest.mark.parametrize(
    "text",
    ["kind: Lease\nspec: {", '{"kind": "LeaseList", "items": [', "a: 1\nkind: 'AdmissionReview'\nrequest: [\n"],
)
def test_a_broken_document_of_ours_is_not_skipped(text: str, run: Run) -> None:
    Path("all").mkdir()
    Path("all/broken.yaml").write_text(text)
    assert run("all")[0] == 2


TEMPLATES = {
    "a condition around it": "{{- if .Values.lease }}\nkind: Lease\nspec: {}\n{{- end }}\n",
    "a name": "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata:\n  name: {{ .Release.Name }}\n",
    "a name in quotes": 'apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: "{{ .Release.Name }}"}\n',
    "an include": 'apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata:\n{{ include "x" . | indent 2 }}\n',
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in TEMPLATES.items()])
def test_a_template_of_a_lease_is_skipped_and_counted_below_a_directory(text: str, run: Run) -> None:
    Path("chart").mkdir()
    Path("chart/lease.yaml").write_text(text)
    write("chart/rendered.yaml", make_lease(*BARE))
    code, out, _ = run("chart")
    assert code == 0
    assert "1 evaluated: 1 allowed; 1 skipped (template 1)" in out
    assert "render" not in out.splitlines()[-1]
    code, out, _ = run("--skip-foreign", "--require=0", "chart/lease.yaml")
    assert (code, "1 skipped (template 1)" in out) == (0, True)
    assert "or an AdmissionReview; render the templates first, as by `helm template`" in out


def test_a_template_that_is_named_is_unreadable_and_why(run: Run) -> None:
    Path("lease.yaml").write_text(TEMPLATES["a condition around it"])
    code, out, _ = run("lease.yaml")
    assert code == 2
    assert "a template: render it first, as by `helm template` (" in out


def test_a_template_that_is_yaml_is_a_template_too(run: Run) -> None:
    text = "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: '{{ .Values.name }}'}\nspec: {}\n"
    Path("lease.yaml").write_text(text)
    code, out, _ = run("lease.yaml")
    assert (code, "a template: render it first" in out) == (2, True)
    code, out, _ = run(".", "--require", "0")
    assert (code, "1 skipped (template 1)" in out) == (0, True)


def test_a_manifest_without_its_writer_is_not_evaluated_whole(run: Run) -> None:
    Path("lease.json").write_text(json.dumps(make_lease()))
    assert "rules about the writer were not evaluated: --user NAME" in run("lease.json")[2]
    assert run("lease.json", "--user", "alice")[2] == ""
    assert run("lease.json", "--format", "json")[2] == ""


@pytest.mark.parametrize("name", ["template.yaml", "empty.yaml", "patch.yaml"])
def test_what_is_named_must_be_readable(name: str, run: Run) -> None:
    Path("template.yaml").write_text("a: {{ x }}\n{{- end }}\n")
    Path("empty.yaml").write_text("# nothing\n")
    Path("patch.yaml").write_text("- op: remove\n")
    assert run(name)[0] == 2


def test_only_files_are_opened(run: Run) -> None:
    Path("all/loop").mkdir(parents=True)
    Path("all/loop/again").symlink_to("../loop")
    Path("all/zero.yaml").symlink_to("/dev/zero")
    Path("all/self.yaml").symlink_to("self.yaml")
    os.mkfifo("all/fifo.json")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("all/socket.yaml")
        write("lease.yaml", make_lease())
        Path("all/linked.yaml").symlink_to("../lease.yaml")
        code, out, err = run("all", "--format", "json")
    assert code == 2
    assert [(line["source"], "error" in line) for line in lines(out)] == [
        ("all/linked.yaml#1", False),
        ("all/self.yaml#1", True),
    ]
    assert err == "3 skipped (device, pipe or socket 3)\n"


def test_a_device_without_an_end_is_given_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.analysis.inputs.documents.MAX_LIST", 1024**2)
    code, out, _ = run("/dev/zero", "--format", "json")
    assert (code, lines(out)) == (
        2,
        [{"source": "/dev/zero#1", "line": 1, "error": "a document of more than 1 MiB; the rest is not read"}],
    )


def test_a_path_that_cannot_be_costs_only_itself(run: Run) -> None:
    write("lease.yaml", make_lease())
    code, out, _ = run("a" * 5000, "lease.yaml", "--format", "json")
    assert code == 2
    assert ["error" in line for line in lines(out)] == [True, False]


def test_a_folder_that_vanishes_costs_only_itself(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("all/b").mkdir(parents=True)
    write("all/a.yaml", make_lease())
    write("all/c.yaml", make_lease())
    listed = os.listdir

    def vanish(path: Path) -> list[str]:
        if path.name == "b":
            path.rmdir()
        return listed(path)

    monkeypatch.setattr(os, "listdir", vanish)
    code, out, _ = run("all", "--format", "json")
    assert code == 2
    assert [line["source"] for line in lines(out)] == ["all/a.yaml#1", "all/b#1", "all/c.yaml#1"]


def test_too_little_is_an_error(run: Run) -> None:
    write("lease.yaml", make_lease(TOO_SHORT), {"apiVersion": "v1", "kind": "Pod"})
    assert run("lease.yaml", "--require", "1")[0] == 1
    code, out, err = run("lease.yaml", "--require", "2")
    assert (code, out.splitlines()[-2]) == (2, "1 evaluated: 1 denied; 1 skipped (Pod 1)")
    assert err == f"{NO_WRITER}lease-webhook: 1 evaluated, and at least 2 must be: --require 1 lets that pass\n"


def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(to_bytes(make_lease(TOO_SHORT)))))
    code, out, _ = run("-", "--format", "json")
    assert code == 1
    assert lines(out)[0]["source"] == "-#1"


def test_an_input_with_nothing_to_evaluate_is_reported(run: Run) -> None:
    Path("empty").mkdir()
    code, out, _ = run("empty")
    assert (code, out) == (
        2,
        "0 evaluated: nothing here is a Lease, a LeaseCandidate or an AdmissionReview\n",
    )


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(b"", "empty", id="nothing"),
        pytest.param(b"# only a comment\n", "empty", id="a comment"),
        pytest.param(b"\xff\xfe", "not UTF-8", id="another encoding"),
        pytest.param(b"- 1\n", "not a Kubernetes object", id="a list"),
        pytest.param(b'{"kind": "Lease",', "line 1: not JSON: cut off", id="truncated JSON"),
        pytest.param(b"[" * 200_000, "nested too deeply", id="deep JSON"),
        pytest.param(b"a: " + b"[" * 1500, "nested deeper than 200 levels", id="deep YAML"),
        pytest.param(b"a: &a [*a]\n", "recursive", id="an alias of itself"),
        pytest.param(b"a: !!python/object:os.system {}\n", "is not allowed", id="a foreign tag"),
    ],
)
def test_why_something_cannot_be_read(content: bytes, error: str, run: Run) -> None:
    Path("file.yaml").write_bytes(content)
    code, out, _ = run("--format", "json", "file.yaml")
    assert code == 2
    assert error in lines(out)[0]["error"]
    assert set(lines(out)[0]) == {"source", "line", "error"}


@pytest.mark.parametrize("value", ["[{}]", "{{<<: [{}]}}"], ids=["in a list", "merged"])
def test_aliases_cannot_explode(value: str, run: Run) -> None:
    rows = [f"a0: &a0 {value.format('{x: 1}')}"]
    rows += [f"a{n}: &a{n} {value.format(', '.join([f'*a{n - 1}'] * 10))}" for n in range(1, 9)]
    Path("bomb.yaml").write_text("apiVersion: coordination.k8s.io/v1\nkind: Lease\n" + "\n".join(rows))
    code, out, _ = run("--format", "json", "bomb.yaml")
    assert code == 2
    assert "aliases and merge keys add more than 20971520 characters" in lines(out)[0]["error"]


# ---- how a bare manifest is evaluated -------------------------------------------------------------------------------


def test_without_a_writer_nobody_is_evaluated(run: Run) -> None:
    write("lease.yaml", make_lease(put("spec.strategy", "OldestEmulationVersion")))
    assert run("lease.yaml")[0] == 0
    code, out, _ = run("lease.yaml", "--user", STRANGER)
    assert code == 1
    assert "strategy-writer" in out
    assert run("lease.yaml", "--user", "me", "--group", "a", "--group", "system:masters")[0] == 0


def test_two_manifests_written_by_hand_are_an_update(run: Run) -> None:
    write("old.yaml", make_lease(*BARE, drop("metadata.managedFields")))
    write("new.yaml", make_lease(*BARE, drop("metadata.managedFields"), put("metadata.labels.team", "x")))
    code, out, _ = run("--format", "json", "--old", "old.yaml", "new.yaml", "--now", "2025-11-20T12:00:05Z")
    assert (code, [(line["operation"], line["findings"]) for line in lines(out)]) == (0, [("UPDATE", [])])


def test_a_resource_version_of_the_new_manifest_is_that_of_the_old_one(run: Run) -> None:
    write("old.yaml", make_lease(*BARE))
    write("new.yaml", make_lease(*BARE, put("metadata.resourceVersion", "7")))
    assert run("--old", "old.yaml", "new.yaml")[0] == 0


def test_deep_managed_fields_cost_only_their_document(run: Run) -> None:
    deep = '{"f:a":' * 900 + "{}" + "}" * 900
    for name, holder in (("old", "c"), ("new", "b")):
        document = make_lease(*BARE, put("spec.holderIdentity", holder), put("metadata.managedFields", ["DEEP"]))
        entry = '{"manager":"m","operation":"Update","fieldsType":"FieldsV1","fieldsV1":' + deep + "}"
        text = to_bytes(document).decode().replace('"DEEP"', entry)
        Path(f"{name}.json").write_text(text)
    write("good.yaml", make_lease(put("metadata.name", "good")))
    out = run("--format", "json", "--old", "old.json", "new.json", "good.yaml")[1]
    assert [line["source"] for line in lines(out)] == ["new.json#1", "good.yaml#1"]


def test_an_update_keeps_what_the_server_owns(run: Run) -> None:
    write("live.yaml", make_lease(), make_lease(put("metadata.name", "other")))
    write("new.yaml", make_lease(*BARE, drop("metadata.managedFields"), put("metadata.labels.team", "x")))
    code, out, _ = run("--format", "json", "--old", "live.yaml", "new.yaml")
    assert code == 0
    assert [(line["operation"], line["event"]) for line in lines(out)] == [("UPDATE", "untouched")]


def test_what_is_not_stored_is_created(run: Run) -> None:
    write("live.yaml", make_lease(put("metadata.name", "other")))
    write("new.yaml", make_lease(*BARE))
    _, out, err = run("--format", "json", "--old", "live.yaml", "new.yaml")
    assert lines(out)[0]["operation"] == "CREATE"
    assert err == "--old has no Lease shop/checkout: it was evaluated as a creation\n"


def test_what_is_not_stored_is_named_once_and_counted_where_it_is_much(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write("new.yaml", *(make_lease(*BARE, put("metadata.name", f"lease-{number}")) for number in range(7)))
    _, _, err = run("--old", "empty", "--against", "strict", "new.yaml")
    assert err.count("it was evaluated as a creation") == 5
    assert "--old lacks 2 more, evaluated as creations\n" in err


def test_a_manifest_without_a_name_is_a_creation_in_any_case(run: Run) -> None:
    write("live.yaml", make_lease())
    write("new.yaml", make_lease(*BARE, drop("metadata.name"), put("metadata.generateName", "checkout-")))
    assert "--old" not in run("--old", "live.yaml", "new.yaml")[2]


@pytest.mark.parametrize(
    ("now", "event"), [("2025-11-20T12:00:05Z", "steal"), ("2025-11-20T13:00:15+01:00", "takeover")]
)
def test_a_new_holder_is_measured_at_now(now: str, event: str, run: Run) -> None:
    write("live.yaml", make_lease())
    write("new.yaml", make_lease(*BARE, drop("metadata.managedFields"), put("spec.holderIdentity", "b")))
    out = run("--format", "json", "--old", "live.yaml", "--now", now, "new.yaml")[1]
    assert lines(out)[0]["event"] == event


def test_without_now_the_latest_stamp_is_the_moment(run: Run) -> None:
    ahead = put("spec.renewTime", "2025-11-20T12:30:00.000000Z")
    write("lease.yaml", make_lease(ahead))
    assert run("lease.yaml")[1].startswith("warned ")
    later = put("metadata.managedFields[0]", make_entry("holderIdentity", time="2025-11-20T12:30:00Z"))
    write("lease.yaml", make_lease(ahead, later))
    assert run("lease.yaml")[1] == "1 evaluated: 1 allowed\n"


def test_a_manifest_without_a_namespace_goes_to_default(run: Run) -> None:
    write("lease.yaml", make_lease(*BARE, drop("metadata.namespace")))
    code, out, _ = run("--format", "json", "lease.yaml")
    assert (code, lines(out)[0]["namespace"]) == (0, "default")


@pytest.mark.parametrize(
    "document",
    [
        make_lease(put("apiVersion", "coordination.k8s.io/v9")),
        make_candidate(put("apiVersion", "coordination.k8s.io/v1")),
    ],
    ids=["Lease", "LeaseCandidate"],
)
def test_an_unknown_version_is_denied(document: Document, run: Run) -> None:
    write("new.yaml", document)
    code, out, _ = run("--format", "json", "new.yaml")
    assert code == 1
    assert [cause["field"] for cause in lines(out)[0]["causes"]] == ["apiVersion"]
    assert run("--policy", "observe", "new.yaml")[0] == 0


# ---- unknown fields, lines, what fails -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "warning"),
    [
        pytest.param(
            make_lease(*BARE, put("spec.leaseDurationSecond", 15)),
            '"spec.leaseDurationSecond": the API server drops it, and kubectl refuses it; did you mean '
            '"leaseDurationSeconds"?',
            id="a misspelled field",
        ),
        pytest.param(make_lease(*BARE, put("metadata.label", {})), 'did you mean "labels"?', id="of metadata"),
        pytest.param(make_lease(*BARE, put("status", {})), '"status"', id="a part of an object that it lacks"),
        pytest.param(
            make_candidate(*BARE, put("spec.preferredStrategies", ["x"])),
            '"spec.preferredStrategies": the API server drops it, and kubectl refuses it; v1alpha1 has it',
            id="of another version",
        ),
        pytest.param(
            make_lease(*BARE, put("metadata.ownerReferences", [{"name": "a", "kid": "b"}])),
            '"metadata.ownerReferences[0].kid"',
            id="of an owner",
        ),
    ],
)
def test_an_unknown_field_is_a_warning_with_its_line(document: Document, warning: str, run: Run) -> None:
    (line,) = lines(run("--format", "json", write("lease.yaml", document))[1])
    (field,) = line["unknownFields"]
    assert warning in field["message"]
    name = field["field"].rpartition(".")[2]
    assert f"{name}:" in Path("lease.yaml").read_text().splitlines()[field["line"] - 1]
    assert f"unknown field {warning[:20]}" in run("lease.yaml")[1] or "did you mean" in warning


@pytest.mark.parametrize("field", ["spec.leaseDurationSecond", "metadata.label", "status"])
def test_an_unknown_field_is_dropped_before_the_rules_see_the_write(field: str, run: Run) -> None:
    empty = make_lease(*BARE, drop("spec"), drop("metadata.managedFields"))
    assert run("--policy", "strict", write("empty.yaml", empty))[0] == 1
    code, out, _ = run("--policy", "strict", write("typo.yaml", changed_document(empty, field)))
    assert code == 1
    assert "lease-created-empty" in out


def changed_document(document: Document, field: str) -> Document:
    """The document with a field that no Lease has."""
    changed = {**document, "metadata": {**document["metadata"]}}
    target, _, name = field.rpartition(".")
    (changed.setdefault(target, {}) if target else changed)[name] = {"a": "b"}
    return changed


def test_a_known_field_is_no_warning_in_any_version(run: Run) -> None:
    known = make_lease(*BARE, put("spec.strategy", ""), put("metadata.selfLink", "x"), put("metadata.generation", 1))
    assert [line["unknownFields"] for line in lines(run("--format=json", write("a.yaml", known))[1])] == [[]]


@pytest.mark.parametrize(
    ("document", "fail_on", "code"),
    [
        pytest.param(make_lease(*BARE, TOO_SHORT), "never", 0, id="denied, never"),
        pytest.param(make_lease(*BARE, TOO_SHORT), "warn", 1, id="denied, warn"),
        pytest.param(make_lease(*BARE, put("spec.x", 1)), "warn", 1, id="warned, warn"),
        pytest.param(make_lease(*BARE, put("spec.x", 1)), "deny", 0, id="warned, deny"),
        pytest.param(make_lease(*BARE), "warn", 0, id="allowed, warn"),
        pytest.param({"kind": "Lease"}, "never", 2, id="unreadable, never"),
    ],
)
def test_what_fails_is_chosen(document: Document, fail_on: str, code: int, run: Run) -> None:
    assert run("--fail-on", fail_on, write("lease.yaml", document))[0] == code


def test_what_is_allowed_is_listed_on_request(run: Run) -> None:
    write("two.yaml", make_lease(*BARE), make_lease(*BARE, TOO_SHORT))
    words = [line.split()[0] for line in run("two.yaml")[1].splitlines() if line[0] != " "]
    assert words == ["denied", "2", "Why"]
    listed = [line.split()[0] for line in run("--show-allowed", "two.yaml")[1].splitlines() if line[0] != " "]
    assert listed == ["allowed", "denied", "2", "Why"]


def test_a_place_opens_in_an_editor(run: Run) -> None:
    write("two.yaml", make_lease(*BARE), make_lease(*BARE, put("metadata.name", "second")))
    second = Path("two.yaml").read_text().splitlines().index("---") + 2
    assert f"allowed    two.yaml:{second}  Lease shop/second, create\n" in run("--show-allowed", "two.yaml")[1]


# ---- what a program reads -------------------------------------------------------------------------------------------


def test_the_keys_of_a_json_line_are_those_of_the_contract(run: Run) -> None:
    write("lease.yaml", make_lease(*BARE, TOO_SHORT))
    (line,) = lines(run("--format", "json", "lease.yaml")[1])
    assert line == {
        "source": "lease.yaml#1",
        "line": 1,
        "uid": "manifest",
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "operation": "CREATE",
        "event": "create",
        "namespace": "shop",
        "name": "checkout",
        "user": "",
        "verdict": "denied",
        "allowed": False,
        "code": 422,
        "reason": CODES[422],
        "message": 'Lease.coordination.k8s.io "checkout" is invalid: spec.leaseDurationSeconds: Invalid value: 0: '
        "must be greater than 0 (lease webhook, rule lease-duration)",
        "causes": [
            {
                "reason": "FieldValueInvalid",
                "message": "Invalid value: 0: must be greater than 0 (lease webhook, rule lease-duration)",
                "field": "spec.leaseDurationSeconds",
            }
        ],
        "warnings": [],
        "auditAnnotations": {
            "event": "create",
            "rules": "lease-duration=deny",
            "policy": line["auditAnnotations"]["policy"],
        },
        "findings": [
            {
                "rule": "lease-duration",
                "mode": "deny",
                "type": "FieldValueInvalid",
                "field": "spec.leaseDurationSeconds",
                "line": Path("lease.yaml").read_text().splitlines().index("  leaseDurationSeconds: 0") + 1,
                "value": 0,
                "detail": "must be greater than 0",
            }
        ],
        "unknownFields": [],
    }


def test_recordings_are_read_without_a_word_of_complaint(run: Run) -> None:
    code, out, err = run("--format", "json", str(FOLDER / "1.36.3" / "client-go"))
    assert (code, err) == (0, "")
    assert {line["name"] for line in lines(out)} == {"operator"}
    assert HOLDER not in out


# ---- wrong usage ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--policy", "standrad"], "standrad"),
        (["--now", "tomorrow"], '"tomorrow" is not an RFC 3339 time; write 2026-01-31T23:59:59Z'),
        (
            ["--now", "2026-02-30T00:00:00Z"],
            '"2026-02-30T00:00:00Z" is not an RFC 3339 time; write 2026-01-31T23:59:59Z',
        ),
    ],
    ids=["no such policy", "no time", "no such day"],
)
def test_wrong_usage_is_one_line_and_exit_2(args: list[str], complaint: str, run: Run) -> None:
    write("lease.yaml", make_lease())
    code, out, err = run(*args, "lease.yaml")
    assert (code, out) == (2, "")
    assert err.startswith("lease-webhook: ")
    assert complaint in err
    assert err.count("\n") == 1


def test_a_writer_may_be_a_service_account(run: Run) -> None:
    write("live.yaml", make_lease())
    write("new.yaml", changed(make_lease(*BARE, drop("metadata.managedFields")), put("spec.holderIdentity", "b")))
    at = ("--now", "2025-11-20T12:00:05Z", "--old", "live.yaml")
    assert run(*at, "new.yaml", "--user", STRANGER)[0] == 1
    assert run(*at, "new.yaml", "--user", KEEPER)[0] == 0


def test_standard_warns_of_no_heartbeat_of_another_project(capsys: pytest.CaptureFixture[str]) -> None:
    """Their durations and holders are not those of electors."""
    heartbeats = Path(__file__).parents[1] / "data" / "leases" / "heartbeats.json"
    assert main(["check", str(heartbeats), "--policy", "standard", "--fail-on", "warn"]) == 0
    assert "5 evaluated: 5 allowed" in capsys.readouterr().out
