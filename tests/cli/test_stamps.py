"""`why`, `audit` and `timeline` of stamped leases: what the stamps say, where a policy names them and elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.factories import STAMP_ENTRY, Document
from tests.history.fake_server import START, FakeServer, together
from tests.inputs.reading import read
from tests.live.test_condenser import condensed, observations
from webhook.admission.policy.file import load
from webhook.analysis.inputs.items import Observation
from webhook.analysis.inputs.stamp_reader import StampReader
from webhook.cli.main import main
from webhook.kubernetes.managed_fields import list_entries
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND, format_micro_time, format_time, parse

SUFFIX = "1a2b3c4d"
AT = format_time(START + 40 * SECOND)


class StampingServer(FakeServer):
    """Each write of a spec is stamped with the uid of the pod and the user; managedFields are one entry."""

    def write(self, lease: str, spec: Document, manager: str, user: str, pod: str) -> None:
        if stored := self.leases.get(lease):
            self.leases[lease] = {**stored, "metadata": {**stored["metadata"], "managedFields": []}}
        super().write(lease, spec, manager, user, pod)
        metadata = self.leases[lease]["metadata"]
        metadata["managedFields"] = [STAMP_ENTRY]
        metadata["annotations"] = {
            f"lease-webhook/writer-{SUFFIX}": f"{f'uid-of-{pod}' if pod else '-'} {user}",
            f"lease-webhook/written-{SUFFIX}": format_time(self.now),
        }

    def label(self, lease: str) -> None:
        """A write that leaves the stamps."""
        document = json.loads(json.dumps(self.leases[lease]))
        self.revision += 1
        document["metadata"] |= {"labels": {"a": str(self.revision)}, "resourceVersion": str(self.revision)}
        self.leases[lease] = document
        self.events.append((self.now, "MODIFIED", document))


def written(path: Path, text: bytes) -> str:
    path.write_bytes(text)
    return str(path)


@pytest.fixture
def policy(tmp_path: Path) -> str:
    text = f"apiVersion: lease-webhook/v1\nstamps: [{{suffix: {SUFFIX}, namespaces: [shop]}}]\n"
    return written(tmp_path / "policy.yaml", text.encode())


def listed(server: FakeServer) -> bytes:
    items = [json.loads(json.dumps(one)) for one in server.leases.values()]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    main(list(words))
    return " ".join(capsys.readouterr().out.split())


@pytest.fixture
def dump(tmp_path: Path) -> str:
    """A list with one lease, renewed 2 s before AT by a holder whose clock is 9 h ahead."""
    server = StampingServer()
    server.elector("db-0", "shop/db").lead(40)
    spec = server.leases["shop/db"]["spec"]
    spec["renewTime"] = format_micro_time(server.now + 9 * 3600 * SECOND)
    return written(tmp_path / "leases.json", listed(server))


def test_a_list_shows_who_renews_it_and_when(dump: str, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = run(capsys, "why", "shop/db", "--verbose", "--input", dump, "--policy", policy, "--now", AT)
    assert "Clock its renewTime is 9 h 0 min ahead of the API server's clock" in output
    # A client can write all of this where the policy file lists a namespace that is not labeled.
    assert "Stamp says shop/db from the pod with uid uid-of-db-0 wrote it at 2026-11-18T11:07:" in output
    assert (
        "(if namespace shop has the label lease-webhook/stamp, which this input does not show: "
        "kubectl get namespace shop -L lease-webhook/stamp)"
    ) in output
    assert "Evidence" not in output
    (document,) = [
        json.loads(run(capsys, "why", "shop/db", "--verbose", "--input", dump, "--policy", policy, "--format", "json"))
    ]
    assert document["last_renewal_by"] is None


def test_a_stamp_that_came_with_no_change_of_spec_names_no_writer(
    tmp_path: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A client can store the constant entry and invented annotations where nothing is stamped."""
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(4)
    forged = json.loads(json.dumps(server.leases["shop/db"]))
    forged["metadata"]["managedFields"] = [STAMP_ENTRY]
    forged["metadata"]["annotations"] = {
        f"lease-webhook/writer-{SUFFIX}": "uid-of-another system:serviceaccount:shop:innocent",
        f"lease-webhook/written-{SUFFIX}": format_time(server.now),
    }
    forged["metadata"]["resourceVersion"] = str(server.revision + 1)
    server.events.append((server.now, "MODIFIED", forged))
    watch = written(tmp_path / "watch.json", server.watch())
    output = run(capsys, "why", "shop/db", "--input", watch, "--policy", policy)
    assert "by shop/innocent" not in output
    assert "Stamp says shop/innocent from the pod with uid uid-of-another" in output
    (document,) = [json.loads(run(capsys, "why", "shop/db", "--input", watch, "--policy", policy, "--format", "json"))]
    assert "innocent" not in json.dumps(document)


def test_without_a_policy_a_stamp_is_quoted_and_decides_nothing(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = run(capsys, "why", "shop/db", "--verbose", "--input", dump, "--now", AT)
    assert "Stamp says shop/db from the pod with uid uid-of-db-0 wrote it at 2026-11-18T11:07:" in output
    assert "(not verified)" in output
    assert "Evidence the holder's own clock" in output


@pytest.mark.parametrize("is_verbose", [False, True])
def test_a_log_says_who_wrote_it_so_that_the_stamp_is_a_detail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_verbose: bool
) -> None:
    server = StampingServer()
    server.elector("db-0", "shop/db").lead(4)
    path = tmp_path / "audit.log"
    path.write_bytes(server.audit_log())
    output = run(capsys, "why", "shop/db", "--input", str(path), *(["--verbose"] if is_verbose else []))
    assert ("Stamp says shop/db from" in output) is is_verbose


def test_each_state_of_a_write_is_dated_by_its_own_stamp(policy: str) -> None:
    server = StampingServer()
    server.elector("db-0", "shop/db").lead(4)
    before, after = [one for one in read("leases.json", [server.watch()]) if isinstance(one, Observation)][-2:]
    reader = StampReader(load(policy).stamps)
    item = reader.read(replace(after, old=before.object))
    assert isinstance(item, Observation)
    assert isinstance(item.old, Lease)
    stamps = [
        one.stamp for state in (item.old, item.object) if state for one in list_entries(state.metadata.managed_fields)
    ]
    assert stamps == [server.now // SECOND * SECOND - 2 * SECOND, server.now // SECOND * SECOND]


def test_a_planted_stamp_is_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = StampingServer()
    server.elector("db-0", "shop/db").lead(2)
    annotations = server.leases["shop/db"]["metadata"]["annotations"]
    annotations |= {"lease-webhook/writer-x": "a \u202eb", "lease-webhook/written-x": "soon \u202e"}
    annotations |= {"lease-webhook/writer-y": "- c", "lease-webhook/writer-z": ""}
    output = run(
        capsys, "why", "shop/db", "--verbose", "--input", written(tmp_path / "leases.json", listed(server)), "--now", AT
    )
    assert "\u202e" not in output
    assert output.count("Stamp says") == 3
    assert "c wrote it at an unknown time" in output


def share_identity() -> StampingServer:
    """A lease that two pods renew by turns under one identity."""
    server = StampingServer()
    first, other = (server.elector(pod, "shop/db") for pod in ("db-0", "db-1"))
    other.identity = first.identity
    for _ in range(20):
        together(2, first)
        together(2, other)
    return server


def test_two_pods_under_one_identity_are_found_in_a_watch(
    tmp_path: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = share_identity()
    watch = written(tmp_path / "watch.json", server.watch())
    output = run(capsys, "why", "shop/db", "--verbose", "--input", watch, "--policy", policy)
    assert "identity-shared (ongoing)" in output
    assert "uid-of-db-0" in output
    assert "uid-of-db-1" in output
    assert "identity-shared" in run(capsys, "audit", "--input", watch, "--policy", policy)
    assert "identity-shared" in run(
        capsys, "timeline", "--input", watch, "--policy", policy, "--format", "json", "-o", "-"
    )


def test_a_deletion_comes_before_the_next_creation_by_stamps_and_not_by_clocks_of_holders(
    tmp_path: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = StampingServer()
    db, mail = server.elector("db-0", "shop/db", ahead=3600), server.elector("mail-0", "shop/mail")
    together(20, db, mail)
    server.delete("shop/db")
    deleted = server.now
    server.wait(1)
    db.take()
    together(20, db, mail)
    watch = written(tmp_path / "watch.json", server.watch())
    drawn = json.loads(run(capsys, "timeline", "--input", watch, "--policy", policy, "--format", "json", "-o", "-"))
    (lane,) = [one for one in drawn["leases"] if one["name"] == "db"]
    (at,) = [parse(one["at"]) for one in lane["marks"] if one["kind"] == "deleted"]
    assert deleted - 2 * SECOND <= at <= deleted
    assert [one["kind"] for one in lane["spans"]][-3:] == ["held", "unrecorded", "held"]


def test_a_label_is_not_the_holders(tmp_path: Path, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    server = StampingServer()
    elector = server.elector("db-0", "shop/db")
    for _ in range(20):
        elector.lead(2)
        server.label("shop/db")
    watch = written(tmp_path / "watch.json", server.watch())
    drawn = json.loads(run(capsys, "timeline", "--input", watch, "--policy", policy, "--format", "json", "-o", "-"))
    (lane,) = drawn["leases"]
    assert lane["spans"][0]["writer"] == "shop/db from the pod with uid uid-of-db-0"
    assert "forged" not in json.dumps(drawn)
    assert "identity-shared" not in run(capsys, "audit", "--input", watch, "--policy", policy)
    # Without a policy no stamp decides anything, and nothing is called a forgery.
    assert "forged" not in run(capsys, "timeline", "--input", watch, "--format", "json", "-o", "-")


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, False, id="stamped"),
        pytest.param({"managedFields": [STAMP_ENTRY | {"time": AT}]}, True, id="an entry that an API server dated"),
        pytest.param({"annotations": {}}, True, id="no annotations"),
        pytest.param(
            {"annotations": {f"lease-webhook/writer-{SUFFIX}": "- x", f"lease-webhook/written-{SUFFIX}": "soon"}},
            True,
            id="no time",
        ),
    ],
)
def test_a_held_lease_without_a_stamp_is_found(
    changed: dict[str, Any], is_found: bool, tmp_path: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = StampingServer()
    server.elector("db-0", "shop/db").lead(40)
    server.leases["shop/db"]["metadata"] |= changed
    path = written(tmp_path / "leases.json", listed(server))
    assert ("stamp-missing" in run(capsys, "audit", "--input", path, "--policy", policy, "--now", AT)) is is_found
    server.leases["shop/db"]["spec"]["holderIdentity"] = ""
    path = written(tmp_path / "leases.json", listed(server))
    assert "stamp-missing" not in run(capsys, "audit", "--input", path, "--policy", policy, "--now", AT)


def test_audit_says_that_a_stamp_is_not_verified(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = run(capsys, "audit", "--input", dump, "--now", AT, "--severity", "info")
    assert "its stamps count only with a policy file that lists its namespace" in output
    assert "stamp-missing" not in output


def test_pods_of_a_user_are_one_writer_where_the_policy_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = share_identity()
    text = f"apiVersion: lease-webhook/v1\nstamps: [{{suffix: {SUFFIX}, namespaces: [shop], writer: user}}]\n"
    by_user = written(tmp_path / "by-user.yaml", text.encode())
    watch = written(tmp_path / "watch.json", server.watch())
    assert "identity-shared" not in run(capsys, "audit", "--input", watch, "--policy", by_user)


def test_a_live_timeline_takes_no_policy(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", "--serve", "--policy", policy]) == 2
    assert "--policy" in capsys.readouterr().err


def robbed() -> StampingServer:
    """A lease of which an administrator changes the holder alone, 5 s after the last renewal."""
    server = StampingServer()
    server.elector("db-0", "shop/db").lead(40)
    server.wait(5)
    spec = server.leases["shop/db"]["spec"] | {"holderIdentity": "mallory"}
    server.write("shop/db", spec, "kubectl-patch", "admin", "")
    server.leases["shop/db"]["metadata"]["annotations"][f"lease-webhook/writer-{SUFFIX}"] = ""
    return server


AT_ROBBERY = "2026-11-18T11:07:30Z"
COMMANDS = {
    "why": ("why", "shop/db", "--verbose", "--input"),
    "why, in JSON": ("why", "shop/db", "--format", "json", "--input"),
    "why of all": ("why", "--input"),
    "audit": ("audit", "--input"),
    "timeline": ("timeline", "--format", "json", "-o", "-", "--input"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("source", ["watch", "record", "list", "audit log", "audit log at Metadata"])
def test_the_constant_entry_never_says_when(
    command: tuple[str, ...], source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = robbed()
    now = () if command[0] == "timeline" else ("--now", "2026-11-18T11:07:30Z")
    texts = {
        "watch": server.watch(),
        "record": condensed(observations(server.watch())),
        "list": listed(server),
        "audit log": server.audit_log(),
        "audit log at Metadata": server.audit_log(metadata_only=True),
    }
    output = run(capsys, *command, written(tmp_path / "input.json", texts[source]), *now)
    assert "2000-01-01" not in output
    assert " d " not in output
    assert "1970" not in output


def test_a_stamped_lease_is_to_be_asked_about_with_its_policy_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = StampingServer()
    server.elector("db-0", "shop/db").lead(40)
    output = run(capsys, "why", "shop/db", "--input", written(tmp_path / "list.json", listed(server)))
    assert "whether it is renewed is not known: --policy FILE says which stamps to believe" in output
    assert "`why` shows when it was renewed: lease-webhook why shop/db --policy FILE" in output


@pytest.mark.parametrize("is_record", [False, True], ids=["a watch", "a record"])
def test_when_only_the_holder_was_changed_is_not_known(
    is_record: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = robbed()
    text = condensed(observations(server.watch())) if is_record else server.watch()
    path = written(tmp_path / "watch.json", text)
    output = run(capsys, "why", "shop/db", "--verbose", "--input", path)
    assert "Held by mallory, since 11:07:19Z or later: the input does not say when" in output
    assert (
        "11:07:19Z mallory was written into it in place of db-0_1, then or later, not as electors do: renewTime stayed"
        in output
    )
    assert (
        "at 11:07:19Z or later (the input does not say when) mallory was written into the lease, which db-0_1 may still"
        in output
    )
    document = json.loads(run(capsys, "why", "shop/db", "--verbose", "--input", path, "--format", "json"))
    assert (document["held_since"], document["tenures"][-1]["since"], document["leaderless_seconds"]) == (None, None, 0)
    assert document["tenures"][-1]["began"] == "unknown"


def test_what_else_has_no_time_is_not_dated_either(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = StampingServer()
    server.elector("db-0", "shop/db").lead(40)
    for changed in ({"leaseTransitions": 7}, {"holderIdentity": ""}, {"holderIdentity": "mallory"}):
        spec = server.leases["shop/db"]["spec"] | changed
        server.write("shop/db", spec, "kubectl-patch", "admin", "")
    path = written(tmp_path / "watch.json", server.watch())
    output = run(capsys, "why", "shop/db", "--verbose", "--input", path)
    assert "leaseTransitions 0 -> 7, then or later" in output
    assert "db-0_1 released it, or was removed, then or later" in output
    assert "leaseTransitions 0 -> 7, then or later" in run(
        capsys, "timeline", "--input", path, "--format", "json", "-o", "-"
    )
    document = json.loads(run(capsys, "why", "shop/db", "--verbose", "--input", path, "--format", "json"))
    assert [(one["since"] is None, one["until"] is None) for one in document["tenures"]] == [(True, True), (True, True)]


def test_a_policy_dates_what_an_administrator_wrote(
    tmp_path: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "watch.json", robbed().watch())
    output = run(capsys, "why", "shop/db", "--verbose", "--input", path, "--policy", policy)
    assert "11:07:25Z mallory was written into it in place of db-0_1, which still held it" in output


def test_a_list_of_a_stamped_lease_shows_a_write_after_the_last_renewal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "why",
        "shop/db",
        "--verbose",
        "--input",
        written(tmp_path / "list.json", listed(robbed())),
        "--now",
        AT_ROBBERY,
    )
    output = run(capsys, *words)
    assert "mallory holds it, as far as the lease says" in output
    assert "says that it was written at 11:07:25Z, after the last renewal" in output
    assert "the API server's stamps count only with --policy FILE" in output
    assert "may have written it after its last renewal, unless its clock is behind" in output
    assert json.loads(run(capsys, *words, "--format", "json"))["held_since"] is None


def test_a_list_of_a_stamped_lease_whose_holder_renews_gives_no_doubt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = StampingServer()
    server.elector("db-0", "shop/db").lead(40)
    server.leases["shop/db"]["metadata"]["annotations"]["lease-webhook/written-planted"] = "2999-01-01T00:00:00Z"
    path = written(tmp_path / "list.json", listed(server))
    assert "db-0_1 holds it, renewed 10 s ago as of" in run(
        capsys, "why", "shop/db", "--verbose", "--input", path, "--now", AT_ROBBERY
    )


@pytest.mark.parametrize("has_policy", [True, False], ids=["with a policy file", "with a preset"])
def test_check_evaluates_a_stamped_lease_at_its_time_and_not_at_that_of_the_constant_entry(
    has_policy: bool, policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = StampingServer()
    server.elector("a", "shop/db").lead(10)
    path = written(tmp_path / "list.json", listed(server))
    assert main(["check", "--policy", policy if has_policy else "strict", path]) == 0
    assert capsys.readouterr().out == "1 evaluated: 1 allowed\n"


@pytest.mark.parametrize("is_chosen", [True, False], ids=["chosen by an API server", "led by its holder"])
def test_a_list_does_not_date_what_an_api_server_chose_after_the_last_stamp(
    is_chosen: bool, tmp_path: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = StampingServer()
    server.elector("db-0", "shop/db").lead(20)
    server.wait(60)
    later = format_micro_time(server.now)
    spec = server.leases["shop/db"]["spec"] | {"strategy": "OldestEmulationVersion", "renewTime": later}
    if is_chosen:
        del spec["acquireTime"]  # an API server writes neither this nor a stamp
    server.leases["shop/db"]["spec"] = spec
    file = written(tmp_path / "leases.json", listed(server))
    said = run(capsys, "why", "shop/db", "--input", file, "--policy", policy, "--now", later)
    assert ("shop/db expired: " in said) is not is_chosen
