"""`why`: one lease, all leases; what it is pointed at, and what it says if something is missing."""

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.claims.test_coordinated import STRATEGY, chooses, start_coordinated
from tests.factories import make_lease, put
from tests.history.fake_server import SECOND, FakeServer, together
from tests.inputs.fake_kubectl import Install, fake
from webhook.cli.main import main
from webhook.kubernetes.times import DAY, format_time

__all__ = ["fake"]


@pytest.fixture
def watched(tmp_path: Path) -> str:
    """A watch in which `shop/db` lost its leader while others went on."""
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    together(60, db, mail)
    together(16, mail)
    together(20, server.elector("db-1", "shop/db"), mail)
    server.elector("db-1", "shop/db").lead(10)
    path = tmp_path / "leases.json"
    path.write_bytes(server.watch())
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["why", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_one_lease(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "shop/db", "--input", watched)
    assert (code, err) == (0, "")
    assert out.startswith("shop/db  live: db-1_1 holds it since 11:07:58Z, renewed 0 s ago\nas of 2026-11-18T")
    assert "warning  leader-lost\n  db-0_1 last renewed at 11:07:40Z, up to " in out
    assert "renewed on time" in " ".join(out.split())
    assert "What happened" not in out
    assert (
        "\nHeld and renewed now. If db-0_1, which lost the lease, is a pod, see it:\n  kubectl -n shop describe" in out
    )


@pytest.mark.parametrize(("duration", "is_noted"), [(6, True), (15, False)], ids=["tight", "as by default"])
@pytest.mark.parametrize("is_verbose", [True, False])
def test_a_tight_timing_is_a_note_below_what_is_to_be_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, duration: int, is_noted: bool, is_verbose: bool
) -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db", duration=duration).lead(60)
    path = tmp_path / "leases.json"
    path.write_bytes(server.watch())
    _, out, _ = run(capsys, "shop/db", "--input", str(path), *(["--verbose"] if is_verbose else []))
    assert "warning" not in out
    above, well, below = out.partition("\nIt is held and renewed; a lease does not show whether its holder works.\n")
    assert well
    assert "timing-tight" not in above
    assert ("\nnote  timing-tight\n  it lasts 6 s" in below) is is_noted
    assert ("-> for an outage of 30 s set duration" in below) is is_noted


@pytest.mark.parametrize(
    ("deed", "is_noted"),
    [("lost at once", True), ("taken late", True), ("lost for long", False), ("stolen", False)],
)
def test_what_may_happen_one_day_is_no_news_beside_what_is_worse_or_another_thing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], deed: str, *, is_noted: bool
) -> None:
    server = FakeServer()
    db, after = (server.elector(one, "shop/db", duration=6) for one in ("db-0", "db-1"))
    db.lead(60)
    server.wait({"lost at once": 8, "taken late": 20, "lost for long": 32, "stolen": 1}[deed])
    after.lead(10)
    path = tmp_path / "audit.log"
    path.write_bytes(server.audit_log())
    _, out, _ = run(capsys, "shop/db", "--input", str(path))
    assert ("lease-stolen" if deed == "stolen" else "leader-lost") in out
    assert ("taken-late" in out) is (deed in {"taken late", "lost for long"})
    assert ("note  timing-tight" in out) is is_noted
    _, out, _ = run(capsys, "shop/db", "--input", str(path), "--verbose")
    assert "note  timing-tight" in out


def test_no_numbers_are_advised_where_a_holder_was_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db", duration=6)
    db.lead(60)
    for _ in range(5):
        server.wait(2)
        db.fail(403, "no")
    db.lead(10)
    path = tmp_path / "audit.log"
    path.write_bytes(server.audit_log())
    for options in ([], ["--verbose"]):
        _, out, _ = run(capsys, "shop/db", "--input", str(path), *options)
        assert "Its writes were refused" in out
        assert "timing-tight" not in out


def test_each_command_of_a_finding_comes_with_its_purpose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    together(40, db, mail)
    together(60, mail)
    together(10, server.elector("db-1", "shop/db"), mail)
    path = tmp_path / "leases.json"
    path.write_bytes(server.watch())
    code, out, err = run(capsys, "shop/db", "--input", str(path), "--verbose")
    assert (code, err) == (0, "")
    advice = "  -> If db-1_1 is a pod, see when it started, then its log:\n     kubectl -n shop describe pod db-1\n"
    assert advice in out


def test_the_random_part_of_a_name_is_shown_with_every_fact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = FakeServer()
    before, after = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    before.identity = "db-0_8bb635b4-4965-4adb-ad3e-a95042a5608d"
    after.identity = "db-1_17bd61bf-fb91-4f7c-9b85-8825a17ecf47"
    before.lead(20)
    server.wait(20)
    after.lead(10)
    path = tmp_path / "leases.json"
    path.write_bytes(server.watch())
    _, out, _ = run(capsys, "shop/db", "--input", str(path))
    assert "live: db-1_17bd61bf... holds it" in out
    assert "db-0_8bb635b4... last renewed at" in out
    assert "-4965-" not in out
    _, out, _ = run(capsys, "shop/db", "--input", str(path), "--verbose")
    assert "..." not in out
    assert before.identity in out


def test_every_fact_and_event_of_one_lease(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "shop/db", "--input", watched, "--verbose")
    assert (code, err) == (0, "")
    for part in ("Held by", "Last renewed", "Expires", "Renewals", "What happened", "leader-lost"):
        assert part in out
    assert out.count("kubectl -n shop describe pod db-0") == 1


def test_of_several_findings_of_one_kind_the_latest_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = FakeServer()
    mail = server.elector("mail-0", "shop/mail")
    for number in range(3):
        together(30, server.elector(f"db-{number}", "shop/db"), mail)
        together(16, mail)
    server.elector("db-3", "shop/db").lead(10)
    path = tmp_path / "leases.json"
    path.write_bytes(server.watch())
    _, out, _ = run(capsys, "shop/db", "--input", str(path))
    assert "leader-lost (2 earlier, the last of db-1_1 at 11:08:14Z)" in out
    assert out.count("took the expired lease") == 1
    assert "db-3_1 took the expired lease" in " ".join(out.split())


@pytest.mark.parametrize("quiet", [1, 2])
def test_the_latest_finding_of_a_kind_does_not_hide_a_worse_one(
    quiet: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lease that was deleted while its holder led, and then once or twice after it had expired."""
    server = FakeServer()
    mail = server.elector("mail-0", "shop/mail")
    together(20, server.elector("db-0", "shop/db"), mail)
    server.delete("shop/db")
    mail.lead(2)
    for number in range(quiet):
        together(10, server.elector(f"db-{number + 1}", "shop/db"), mail)
        together(40, mail)
        server.delete("shop/db")
    together(10, server.elector("db-9", "shop/db"), mail)
    path = tmp_path / "audit.log"
    path.write_bytes(server.audit_log())
    _, out, _ = run(capsys, "shop/db", "--input", str(path))
    worse, _, latest = out.partition("\nwarning  lease-deleted")
    assert "\nerror  lease-deleted\n" in worse
    assert "while db-0_1 held it" in worse
    assert latest.startswith(" (1 earlier, between 11:07:12Z and 11:07:52Z)" if quiet == 2 else "\n")
    assert f"db-{quiet}_1 held it" in latest


@pytest.mark.parametrize(("writers", "earlier"), [(9, "8 more"), (14, "at least 9 more")])
def test_of_many_refused_writers_the_number_is_a_bound(
    writers: int, earlier: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(10)
    for number in range(writers):
        db.lead(2)
        server.elector(f"db-{number + 1}", "shop/db").fail(422, "no")
    path = tmp_path / "audit.log"
    path.write_bytes(server.audit_log())
    _, out, _ = run(capsys, "shop/db", "--input", str(path))
    assert f"write-refused ({earlier}, the last: 1 by shop/db from pod db-{writers - 1}, the last one " in " ".join(
        out.split()
    )


def test_one_long_name_does_not_make_every_row_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "leases.json"
    leases = [make_lease(put("metadata.name", name)) for name in ("x" * 100_000, *"abcdefghij")]
    path.write_text("".join(json.dumps(one) + "\n" for one in leases))
    code, out, _ = run(capsys, "--input", str(path))
    assert code == 0
    assert len(out) < 10_000


def test_all_leases(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--input", watched)
    first, head, db, mail, moment = out.splitlines()
    assert code == 0
    assert first == "1 of 2 leases needs attention"
    assert head.split() == ["LEASE", "STATE", "HOLDER", "RENEWED", "CAN", "BE", "TAKEN", "CHANGES", "WRONG"]
    assert db.split()[:3] == ["shop/db", "live", "db-1_1"]
    assert db.split()[-2:] == ["1", "leader-lost"]
    assert mail.split()[-2:] == ["-", "-"]
    assert moment.startswith("as of ")


def test_json_of_one_and_of_all(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "shop/db", "--input", watched, "--format", "json")
    document = json.loads(out)
    assert (document["state"], document["holder"], document["handovers"]) == (
        "live",
        "db-1_1",
        {"seen": 1, "expired": 1},
    )
    _, out, _ = run(capsys, "--input", watched, "--format", "json")
    assert [json.loads(line)["name"] for line in out.splitlines()] == ["db", "mail"]


def test_another_moment(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "shop/db", "--input", watched, "--now", "2026-11-18T12:00:00Z")
    assert out.startswith("shop/db  unknown: db-1_1 held it when the input ended at 11:08:26Z")
    lines = " ".join(out.split())
    assert "as of 2026-11-18T12:00:00Z (--now, 51 min 34 s after the input's end: " in lines


def test_a_moment_before_the_end_of_the_input_is_marked_so(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "shop/db", "--input", watched, "--now", "2026-11-18T11:00:00Z")
    line = out.splitlines()[1]
    assert line.startswith("as of 2026-11-18T11:00:00Z (--now, before the end of the input at 2026-11-18T11:")
    assert line.endswith(": what happened after --now is included); duration 15 s; --verbose: more")
    assert "renewal-stamp-tampered" not in out
    assert "the API server's stamps are later than the time of evaluation" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("shop/bd", "--input", "FILE"), "lease shop/bd is not in the input; did you mean shop/db?"),
        (("mailx", "--input", "FILE"), "lease mailx is not in the input; did you mean shop/mail?"),
        (("shop/x", "--input", "FILE"), "lease shop/x is not in the input; there are shop/db, shop/mail"),
        (("-n", "shpo", "--input", "FILE"), "no lease of namespace shpo is in the input; did you mean shop?"),
        (("gone/x", "--input", "FILE"), "lease gone/x is not in the input; 2 others are"),
        (("x", "--input", "FILE"), "lease x is not in the input"),
        (("a/b/c", "--input", "FILE"), "a/b/c must be NAMESPACE/NAME"),
        (("/b", "--input", "FILE"), "/b must be NAMESPACE/NAME"),
        (("a/-b", "--input", "FILE"), "a/-b is not the name of a lease"),
        (("--input", "FILE", "--now", "soon"), '"soon" is not an RFC 3339 time'),
        (("--input", "/dev/null"), "no lease is in the input: /dev/null is empty"),
    ],
)
def test_a_lease_that_cannot_be_found_is_explained(
    words: tuple[str, ...], complaint: str, watched: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *(watched if word == "FILE" else word for word in words))
    assert (code, out) == (2, "")
    assert complaint in err


def test_a_name_without_a_namespace(watched: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "db", "--input", watched)[1].startswith("shop/db ")
    other = tmp_path / "other.json"
    other.write_text(json.dumps(make_lease(put("metadata.name", "db"), put("metadata.namespace", "mall"))))
    code, _, err = run(capsys, "db", "--input", watched, "--input", str(other))
    assert code == 2
    assert "db is in several namespaces: mall, shop" in err
    assert run(capsys, "db", "-n", "mall", "--input", watched, "--input", str(other))[1].startswith("mall/db ")


def test_a_namespace_selects_the_leases_of_an_input(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    whole, selected = (run(capsys, "--input", watched, *words)[1] for words in ((), ("-n", "shop")))
    assert selected == whole
    code, out, err = run(capsys, "--input", watched, "-n", "mall")
    assert (code, out) == (2, "")
    assert "no lease of namespace mall is in the input" in err


def test_unreadable_parts_are_reported_and_the_rest_is_used(
    watched: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("[1,2,3,4,5,6,7]")
    code, out, err = run(capsys, "shop/db", "--input", str(broken), "--input", watched)
    assert code == 0
    assert out.startswith("shop/db  live")
    assert err.count("not a Kubernetes object") == 5
    assert "2 more could not be read" in err


def test_hidden_managed_fields_are_noted_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.json"
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(4)
    path.write_bytes(server.dump(managed_fields=False))
    _, out, err = run(capsys, "--input", str(path), "--now", "2026-11-18T11:06:45Z")
    assert err.count("--show-managed-fields") == 1
    assert out.splitlines()[2].split()[:2] == ["shop/db", "live"]


@pytest.mark.parametrize("is_renewed", [True, False])
def test_of_a_lease_that_is_never_renewed_no_clock_is_said_to_date_renewals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_renewed: bool
) -> None:
    server = FakeServer()
    server.elector("b", "shop/mail").lead(20)
    renewals = {"renewTime": "2026-11-18T11:06:59.000000Z"} if is_renewed else {}
    server.write("shop/db", {"holderIdentity": "a", **renewals}, "kubectl-create", "alice", "")
    path = tmp_path / "watch.json"
    path.write_bytes(server.watch(managed_fields=False))
    code, _, errors = run(capsys, "shop/db", "--input", str(path))
    assert (code, "only the holders' own clocks say when they renewed" in errors) == (0, is_renewed)


def test_standard_input_is_as_of_the_clock(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(make_lease()).encode())))
    _, out, _ = run(capsys, "shop/checkout", "--input", "-")
    assert "(the clock of this computer)" in out
    assert "expired" in out


@pytest.mark.parametrize(("seconds", "is_told"), [(20, False), (7200, True)], ids=["it just ended", "of the past"])
def test_a_history_that_is_piped_long_after_its_end_does_not_show_what_happened_since(
    seconds: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, is_told: bool
) -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(server.audit_log())))
    monkeypatch.setattr(time, "time_ns", lambda: (server.now + seconds * SECOND) * 1000)
    _, out, _ = run(capsys, "shop/db", "--input", "-")
    said = (
        "2 h 0 min after the input's end: what happened since is not in it; for that moment: --now 2026-11-18T11:07:00"
    )
    assert (said in " ".join(out.split())) is is_told


def pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], data: bytes, now: int, *words: str
) -> tuple[str, str]:
    """Return what a command prints of an input that is piped at a moment."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    monkeypatch.setattr(time, "time_ns", lambda: now * 1000)
    main([*words, "--input", "-"])
    out, err = capsys.readouterr()
    return out, err


@pytest.mark.parametrize("is_log", [True, False], ids=["log", "watch"])
def test_of_a_history_that_is_piped_days_after_its_end_no_lease_is_to_be_deleted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, is_log: bool
) -> None:
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    together(20, db, mail)
    mail.lead(40)
    data, later = server.audit_log() if is_log else server.watch(), server.now + 3 * DAY
    said = "3 d 0 h after the input's end: what happened since is not in it; for that moment: --now 2026-11-18T11:07:40"
    out, err = pipe(monkeypatch, capsys, data, later, "audit")
    assert said in " ".join(err.split())
    assert "delete lease" not in out
    assert "shop/db  expired" in out
    assert "shop/mail" not in out
    out, _ = pipe(monkeypatch, capsys, data, later, "why")
    assert said in " ".join(out.split())
    states = {row.split()[0]: row.split()[1] for row in out.splitlines() if row.startswith("shop/")}
    assert states == {"shop/db": "expired", "shop/mail": "unknown"}
    out, _ = pipe(monkeypatch, capsys, data, later, "why", "shop/mail")
    assert "mail-0_1 held it when the input ended" in " ".join(out.split())
    assert "delete lease" not in out


def test_a_watch_of_a_lease_that_no_one_renews_may_have_gone_on_until_it_is_evaluated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    line = json.dumps({"type": "ADDED", "object": server.leases["shop/db"]}).encode()
    out, _ = pipe(monkeypatch, capsys, line, server.now + 7200 * SECOND, "why", "shop/db")
    assert out.startswith("shop/db  expired: db-0_1 has not renewed it for 2 h 0 min")


def test_a_dump_is_as_of_when_its_file_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dump.json").write_text(json.dumps(make_lease()))
    assert "(when the file was written)" in run(capsys, "--input", str(tmp_path))[1]


def test_kubectl_is_run_and_asked_for_events(fake: Install, capsys: pytest.CaptureFixture[str]) -> None:
    log = fake()
    code, out, _ = run(capsys, "shop/checkout", "--context", "prod")
    assert code == 0
    assert "checkout-6d5f9c-x2x8p" in out
    calls = log.read_text().splitlines()
    assert calls[0].startswith("get leases.coordination.k8s.io --namespace=shop ")
    assert calls[-1].startswith("get events --field-selector=involvedObject.kind=Lease,involvedObject.name=checkout ")
    run(capsys)
    assert "--all-namespaces" in log.read_text().splitlines()[-2]


def test_one_moment_ends_with_what_it_does_not_show(fake: Install, capsys: pytest.CaptureFixture[str]) -> None:
    about = {"kind": "Lease", "namespace": "shop", "name": "checkout"}
    event = {"kind": "Event", "apiVersion": "v1", "involvedObject": about, "lastTimestamp": "2025-11-20T11:00:00Z"}
    events = [event | {"message": "a_1 stopped leading"}, event | {"message": "\u202ex became leader"}]
    fake(events=json.dumps({"kind": "List", "apiVersion": "v1", "items": events}))
    code, out, _ = run(capsys, "shop/checkout")
    assert code == 0
    assert "What Events say (clients write them; they are kept for an hour)" in out
    assert "an Event says: a_1 stopped leading" in out
    assert "\u202e" not in out
    assert "A list has no history." in out
    assert out.endswith("lease-webhook record history (docs/record.md)\n")
    assert "always had" not in out


def test_a_holder_that_is_no_pod_reaches_no_kubectl(
    fake: Install, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "tests.inputs.fake_kubectl.make_lease", lambda: make_lease(put("spec.holderIdentity", "--x=y_1"))
    )
    log = fake()
    code, out, _ = run(capsys, "shop/checkout")
    assert (code, "--x=y" in out) == (0, True)
    assert "--x=y" not in log.read_text()


def test_hostile_text_reaches_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lease = make_lease(put("spec.holderIdentity", "a\x1b[2J\u202e\nb"), put("metadata.name", "x\x1b]0;y"))
    lease["metadata"]["namespace"] = "sh\u202eop"
    (tmp_path / "x.json").write_text(json.dumps(lease))
    for words in ((), ("x\x1b]0;y",), ("--format", "json")):
        _, out, _ = run(capsys, *words, "--input", str(tmp_path))
        assert out.strip()
        assert not any(hidden in out for hidden in "\x1b\u202e")


def test_metrics_need_what_the_server_brings(
    watched: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert main(["audit", "--input", watched, "--metrics", str(tmp_path / "out")]) == 2
    assert "--metrics needs prometheus_client" in capsys.readouterr().err


def test_metrics_that_cannot_be_written_are_named_as_they_were_given(
    watched: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "gone" / "leases.prom")
    assert main(["audit", "--input", watched, "--metrics", path]) == 2
    assert capsys.readouterr().err.endswith(f"lease-webhook: {path}: No such file or directory\n")


def test_it_imports_nothing_of_the_server(watched: str) -> None:
    program = f"""
import sys
import time
from webhook.cli.main import main
from webhook.kubernetes.times import format_time
main(["why", "--input", {watched!r}])
server = {{"cryptography", "flask", "gunicorn", "prometheus_client", "webhook.server"}}
print(sorted(server & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"


def test_a_lease_of_another_namespace_is_looked_for_in_all(fake: Install, capsys: pytest.CaptureFixture[str]) -> None:
    fake()
    assert "lease gone is not in the namespace of the context; -A looks in all namespaces" in run(capsys, "gone")[2]
    assert "lease gone is not in the cluster; 1 other is" in run(capsys, "gone", "-A")[2]
    assert "lease x/gone is not in namespace x; 1 other is" in run(capsys, "x/gone")[2]


def explain_list(tmp_path: Path, capsys: pytest.CaptureFixture[str], stopped: int, *words: str) -> str:
    """Return what is printed beside the answer about a list of four leases, of which some stopped an hour before."""
    server = FakeServer()
    electors = [server.elector(f"{name}-0", f"shop/{name}") for name in ("db", "mail", "cart", "cache")]
    together(20, *electors)
    server.wait(3600)
    together(20, *electors[stopped:])
    path = tmp_path / "list.json"
    path.write_bytes(server.dump())
    return run(capsys, "--input", str(path), *words)[2]


def test_a_list_whose_leases_were_renewed_together_was_probably_taken_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = explain_list(tmp_path, capsys, 1)
    assert "most leases were last renewed within a minute before 2026-11-18T12:07:20Z" in output
    assert "if the list was taken then, give --now 2026-11-18T12:07:20Z" in " ".join(output.split())
    assert explain_list(tmp_path, capsys, 1, "--now", "2026-11-18T13:00:00Z") == ""
    assert explain_list(tmp_path, capsys, 2) == ""


def test_when_a_list_of_the_cluster_was_taken_is_known(
    fake: Install, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leases = ", ".join(str(make_lease(put("metadata.name", name))) for name in ("a", "b", "c"))
    monkeypatch.setattr("tests.inputs.fake_kubectl.make_lease", lambda: leases)
    fake()
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    assert out.startswith("3 of 3 leases need attention")


def test_a_list_is_not_older_than_its_renewals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "list.json"
    explain_list(tmp_path, capsys, 0)
    os.utime(path, (0, 0))
    output = " ".join(run(capsys, "--input", str(path))[2].split())
    assert "after the time of evaluation: if the list was taken then, give --now 2026-11-18T12:07:20Z" in output


@pytest.mark.parametrize("words", [(), ("--now", "2026-11-18T11:00:00Z")], ids=["the end", "a moment before it"])
def test_a_stamp_of_the_future_does_not_hide_itself(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A state of a watch says when it was written, so one that was forged would be the end of the input."""
    forged = make_lease(put("metadata.managedFields[0].time", "2126-11-18T12:00:00Z"))
    path = tmp_path / "watch.json"
    path.write_text("".join(json.dumps({"type": one, "object": forged}) + "\n" for one in ("ADDED", "MODIFIED")))
    assert "renewal-stamp-tampered" in run(capsys, "shop/checkout", "--input", str(path), *words)[1]


def test_what_was_never_to_be_stored_is_no_lease(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(4)
    (first, *_) = map(json.loads, server.audit_log(metadata_only=True).splitlines())
    nameless = {**first, "auditID": "nameless", "objectRef": {**first["objectRef"], "name": ""}}
    dry = {
        **first,
        "auditID": "dry",
        "objectRef": {**first["objectRef"], "name": "proof"},
        "requestURI": f"{first['requestURI']}?dryRun=All",
    }
    log = tmp_path / "audit.log"
    log.write_bytes(server.audit_log() + b"".join(json.dumps(one).encode() + b"\n" for one in (nameless, dry)))
    _, out, _ = run(capsys, "--input", str(log), "-o", "name")
    assert out == "shop/db\n"
    assert main(["timeline", "--input", str(log), "--format", "json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["leases"]] == ["db"]


def test_every_fact_is_of_one_lease(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "--verbose", "--input", watched)
    assert code == 2
    assert "--verbose is for one lease" in err


def test_a_list_that_was_taken_long_before_blames_no_api_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = FakeServer()
    together(20, *(server.elector(name, f"shop/{name}") for name in ("db", "mail", "cart", "users", "stock")))
    path = tmp_path / "leases.json"
    path.write_bytes(server.dump())
    os.utime(path, (server.now / 1e6 + 3600,) * 2)
    assert "most leases were last renewed within a minute" in run(capsys, "shop/db", "--input", str(path))[2]
    assert "The API server was slow" not in run(capsys, "shop/db", "--input", str(path), "--verbose")[1]
    late = format_time(server.now + 3600 * 1_000_000)
    assert "The API server was slow" in run(capsys, "shop/db", "--input", str(path), "--verbose", "--now", late)[1]


def test_a_moment_within_the_second_of_the_end_is_the_end(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "shop/db", "--input", watched, "--now", "2026-11-18T11:08:25.500000Z")
    _, at_end, _ = run(capsys, "shop/db", "--input", watched)
    assert "before the end of the input" not in out
    assert out.splitlines()[0] == at_end.splitlines()[0]


def test_a_candidate_that_did_not_take_the_lease_up_is_news_once_another_one_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """While it has the lease, the headline says so."""
    server, _ = start_coordinated()
    server.wait(17)
    chooses(server, "b_1")
    server.wait(60)
    third = server.elector("c", "shop/db")
    third.ask()
    path = tmp_path / "audit.log"
    path.write_bytes(server.audit_log())
    _, out, _ = run(capsys, "shop/db", "--input", str(path))
    assert "b_1 was chosen" in out.partition("\n")[0]
    assert "not-taken-up" not in out
    chooses(server, "c_1")
    for _ in third.ticks(20):
        third.renew(strategy=STRATEGY)
    path.write_bytes(server.audit_log())
    _, out, _ = run(capsys, "shop/db", "--input", str(path))
    assert "warning  not-taken-up\n  b_1 was chosen by an API server" in out


def test_what_the_headline_says_of_a_silence_is_not_said_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db", duration=120), server.elector("mail-0", "shop/mail")
    together(40, db, mail)
    together(30, mail)
    path = tmp_path / "leases.json"
    path.write_bytes(server.watch())
    _, out, _ = run(capsys, "shop/db", "--input", str(path))
    assert "db-0_1 has not renewed it for 30 s, and keeps it until" in " ".join(out.split("\n")[0:2])
    assert "warning  renewal-late (ongoing)\n  It stored no renewal" in out
    _, out, _ = run(capsys, "shop/db", "--input", str(path), "--verbose")
    assert "warning  renewal-late (ongoing)\n  db-0_1 has not renewed since" in out


@pytest.mark.parametrize("duration", [15, 120], ids=["expired", "live"])
def test_a_cause_that_stands_alone_names_the_holder_and_the_time(
    duration: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db", duration=duration), server.elector("mail-0", "shop/mail")
    together(60, db, mail)
    together(60, mail)
    path = tmp_path / "audit.log"
    path.write_bytes(server.audit_log())
    _, out, _ = run(capsys, "shop/db", "--input", str(path))
    unheard = "the log has no answered request for the lease from the pod of db-0_1 (it may have ended,"
    assert f"For most of the time since its last renewal {unheard}" in " ".join(out.split())


def test_a_lease_with_a_field_of_a_wrong_type_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "leases.json"
    path.write_text(json.dumps(make_lease(put("spec.holderIdentity", 5))))
    problem = "spec.holderIdentity must be a string, not an integer"
    _, out, _ = run(capsys, "--input", str(path))
    assert out.startswith("1 of 1 lease needs attention\n")
    assert out.splitlines()[2].split() == ["shop/checkout", "unknown", "object-types"]
    _, out, _ = run(capsys, "shop/checkout", "--input", str(path))
    assert " ".join(out.split()).startswith(
        f"shop/checkout unknown: the object in the input cannot be read: {problem} as of"
    )
    assert "\nFix it: correct the type in the manifest; an API server refuses the object.\n" in out
    assert "error  object-types" not in out  # the headline says it
    _, out, _ = run(capsys, "shop/checkout", "--input", str(path), "--verbose")
    assert f"\nerror  object-types\n  {problem}\n\nFix it: " in out
    shown = json.loads(run(capsys, "shop/checkout", "--input", str(path), "--format", "json")[1])
    assert [(one["claim"], one["text"]) for one in shown["claims"]] == [("object-types", problem)]


def test_the_command_of_an_advice_is_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "leases.json"
    path.write_text(json.dumps(make_lease(put("metadata.name", "Checkout"))))
    words = ("shop/Checkout", "--input", str(path), "--now", "2025-11-20T12:00:05Z", "--format", "json")
    fix = "correct it in the manifest or the client that writes it; a current API server refuses the value"
    advice = json.loads(run(capsys, *words)[1])["advice"]
    assert advice == {"sentence": f"Fix it: {fix}.", "command": ""}


def test_why_two_holders_in_a_row_were_lost_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = FakeServer()
    db, after, mail = (server.elector(*one) for one in (("a", "shop/db"), ("b", "shop/db"), ("m", "shop/mail")))
    together(20, db, mail)
    together(20, mail)
    together(20, after, mail)
    together(20, mail)
    path = tmp_path / "leases.json"
    path.write_bytes(server.watch())
    _, out, _ = run(capsys, "shop/db", "--input", str(path))
    assert out.count("It stored no renewal") == 1
    assert "Why: as above." in " ".join(out.split())
    _, out, _ = run(capsys, "shop/db", "--input", str(path), "--verbose")
    assert " ".join(out.split()).count("It stored no renewal") == 2


@pytest.mark.parametrize(("is_verbose", "times"), [(False, 1), (True, 2)])
def test_who_renewed_a_held_lease_in_the_place_of_its_holder_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_verbose: bool, times: int
) -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    server.wait(2)
    server.write("shop/db", server.leases["shop/db"]["spec"] | {"renewTime": db._time()}, "curl", "mallory", "")
    path = tmp_path / "audit.log"
    path.write_bytes(server.audit_log())
    _, out, _ = run(capsys, "shop/db", "--input", str(path), *(["--verbose"] if is_verbose else []))
    said = " ".join(out.split())
    assert "mallory renewed it last, which is not known to be its process" in said
    assert said.count("which is not known") == times
