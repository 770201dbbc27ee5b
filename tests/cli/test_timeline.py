"""`timeline`: its formats, what it is pointed at, and what it says if something is missing."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.factories import make_lease
from tests.history.fake_server import FakeServer, together
from tests.inputs.fake_kubectl import Install, fake
from webhook.analysis.timeline import lanes
from webhook.analysis.timeline.downsampling import SpanRecord
from webhook.cli import audit, why
from webhook.cli.main import main
from webhook.cli.options import FORMATS_OF_OTHERS
from webhook.cli.timeline import EXAMPLE, EXAMPLE_FILES

__all__ = ["fake"]


@pytest.fixture
def watched(tmp_path: Path) -> str:
    """A watch in which `shop/db` lost its leader while `shop/mail` went on."""
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    together(60, db, mail)
    together(20, mail)
    together(20, server.elector("db-1", "shop/db"), mail)
    server.elector("db-1", "shop/db").lead(10)
    path = tmp_path / "leases.json"
    path.write_bytes(server.watch())
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["timeline", *words])
    out, err = capsys.readouterr()
    return code, out, err


def document(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code, out, err = run(capsys, *words, "--format", "json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_a_page_is_written_and_summed_up(watched: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    code, out, err = run(capsys, "--input", watched, "-o", str(page))
    assert (code, out) == (0, "")
    assert err.endswith("page.html: 2 leases, 94 renewals, 3 marks\n")
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert "db-1_1" in page.read_text()


def test_without_a_file_the_page_goes_to_standard_output(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--input", watched)
    assert (code, err) == (0, "")
    assert out.startswith("<!DOCTYPE html>")


def test_on_a_terminal_the_page_goes_to_a_file_which_is_named(
    watched: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "--input", watched)
    assert (code, out) == (0, "")
    assert err.startswith("lease-timeline.html: 2 leases, ")
    assert Path("lease-timeline.html").read_text().startswith("<!DOCTYPE html>")


def test_json_has_spans_and_marks(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    db, mail = document(capsys, "--input", watched)["leases"]
    assert (db["name"], mail["name"]) == ("db", "mail")
    assert [span["kind"] for span in db["spans"]] == ["held", "overdue", "held"]


@pytest.mark.parametrize("output", ["html", "json"])
def test_a_file_whose_name_is_no_text(output: str, watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A name of a file may be any bytes, and is in the page."""
    strange = Path(watched).with_name("leases\udcff.json")
    Path(watched).rename(strange)
    code, out, err = run(capsys, "--input", str(strange), "--format", output, "shop/db")
    assert (code, err) == (0, "")
    assert "shop/db" in out or '"db"' in out


def test_one_lease(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    timeline = document(capsys, "--input", watched, "shop/db")
    assert [one["name"] for one in timeline["leases"]] == ["db"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("-n", "shop"), ["db", "mail"]),
        (("-n", "mall", "-A"), ["db", "mail"]),
        (("shop/db", "-n", "shop"), ["db"]),
        (("db", "-n", "shop"), ["db"]),
        (("db", "shop/mail"), ["db", "mail"]),
        (("-n", "mall"), "lease-webhook: no lease of namespace mall is in the input\n"),
        (
            ("--serve", "-n", "shop"),
            (
                "lease-webhook: --serve shows everything in a browser: it takes no lease, -o, --format, --now and"
                " --policy, and no --namespace with --input\n"
            ),
        ),
    ],
)
def test_a_namespace_selects_the_leases_of_an_input(
    words: tuple[str, ...], expected: list[str] | str, watched: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if isinstance(expected, str):
        assert run(capsys, *words, "--input", watched)[::2] == (2, expected)
    else:
        assert [one["name"] for one in document(capsys, *words, "--input", watched)["leases"]] == expected


def test_a_name_in_several_namespaces_needs_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = FakeServer()
    together(3, server.elector("db-0", "shop/db"), server.elector("db-9", "mall/db"))
    path = tmp_path / "leases.json"
    path.write_bytes(server.watch())
    assert "db is in several namespaces: mall, shop; name one" in run(capsys, "db", "--input", str(path))[2]
    (lease,) = document(capsys, "db", "-n", "mall", "--input", str(path))["leases"]
    assert lease["namespace"] == "mall"


def test_standard_input(watched: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(watched).read_bytes())))
    assert len(document(capsys, "--input", "-")["leases"]) == 2


def test_kubectl_is_run_if_nothing_is_named(fake: Install, capsys: pytest.CaptureFixture[str]) -> None:
    log = fake()
    code, out, err = run(capsys, "--format", "json", "--context", "prod", "-n", "shop")
    assert code == 0
    assert err.startswith("a list shows one moment; `lease-webhook record history` keeps a history")
    assert [one["name"] for one in json.loads(out)["leases"]] == ["checkout"]
    assert "--namespace=shop" in log.read_text().splitlines()[0]


COMPLAINTS = [
    pytest.param(["a/b/c"], "a/b/c must be NAMESPACE/NAME", id="a lease with too many parts"),
    pytest.param(["gone/other"], "lease gone/other is not in the input; 2 others are", id="another lease"),
    pytest.param(["shop/db", "-n", "mall"], "shop/db and --namespace mall name two namespaces", id="two namespaces"),
    pytest.param(["dbx"], "lease dbx is not in the input", id="a name that no namespace has"),
    pytest.param(["shop/bd"], "lease shop/bd is not in the input; did you mean shop/db?", id="a mistyped lease"),
    pytest.param(["-n", "shpo"], "no lease of namespace shpo is in the input; did you mean shop?", id="a namespace"),
    pytest.param(["--format", "png"], "'png' is not one of", id="an unknown format"),
    pytest.param(["--bind", "127.0.0.1:80"], "--bind is for --serve", id="an address without a server"),
    pytest.param(["--serve", "shop/db"], "--serve shows everything", id="a server of one lease"),
    pytest.param(["--serve", "--bind", "nowhere"], "is not HOST:PORT", id="an address without a port"),
]


@pytest.mark.parametrize(("words", "text"), COMPLAINTS)
def test_what_cannot_be_drawn_is_reported_in_one_line(
    words: list[str], text: str, watched: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "--input", watched, *words)
    assert (code, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1


def test_an_input_without_leases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}')
    message = f"lease-webhook: no lease is in the input: other documents in {path} (ConfigMap 1)\n"
    assert run(capsys, "--input", str(path))[::2] == (2, message)


def test_a_file_that_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "--input", "/nowhere/x.json")
    assert code == 2
    assert "/nowhere/x.json: No such file or directory" in err


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("json", "for that format write --format json"),
        ("html", "for that format write --format html"),
        ("yaml", "formats are html and json"),
        ("wide", "formats are html and json"),
    ],
)
def test_a_format_is_no_name_of_a_file(
    name: str,
    how: str,
    watched: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "--input", watched, "-o", name)
    assert (code, out, list(tmp_path.glob(name))) == (2, "", [])
    assert err == f"lease-webhook: -o {name} would be a file of that name: {how}; for the file write -o ./{name}\n"
    assert run(capsys, "--input", watched, "-o", f"./{name}")[0] == 0
    assert (tmp_path / name).read_text().startswith("<!DOCTYPE html>")


def test_each_format_of_other_commands_that_look_at_leases_is_known() -> None:
    assert {*audit.FORMATS, *why.FORMATS} == {*FORMATS_OF_OTHERS}


def test_a_place_that_cannot_be_written(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "--input", watched, "-o", "/nowhere/page.html")
    assert (code, err) == (2, "lease-webhook: /nowhere/page.html: No such file or directory\n")


def test_an_input_without_stamps_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    lease = make_lease()
    del lease["metadata"]["managedFields"]
    path.write_text(json.dumps(lease))
    code, _, err = run(capsys, "--input", str(path), "--format", "json")
    assert code == 0
    assert "--show-managed-fields" in err


def test_broken_parts_cost_only_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    path.write_text("[1, 2, 3, 4, 5, 6, 7]" + json.dumps(make_lease()))
    code, _, err = run(capsys, "--input", str(path), "--format", "json")
    assert code == 0
    assert "2 more could not be read" in err


LINES = [json.dumps(one) for one in (make_lease(), {"type": "MODIFIED", "object": make_lease()})]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    line=st.sampled_from(LINES),
    place=st.integers(0, 400),
    text=st.text(alphabet='{}[]",:0123456789-TZ.\\u abcnulltrue', max_size=12),
    gone=st.integers(0, 30),
    output=st.sampled_from(["html", "json"]),
)
def test_a_damaged_input_never_gives_a_traceback(
    line: str, place: int, text: str, gone: int, output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.json"
    path.write_text(line[:place] + text + line[place + gone :])
    code, _, err = run(capsys, "--input", str(path), "--format", output)
    assert code in {0, 2}
    assert "this is a bug" not in err


def test_the_example_is_a_recorded_incident(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = Path("tests/data/incidents/fenced")
    for name in EXAMPLE_FILES:
        assert (EXAMPLE / name).read_bytes() == (recorded / name).read_bytes()
    code, _, err = run(capsys, "--example", "-o", str(tmp_path / "page.html"))
    assert (code, "4 leases" in err) == (0, True)


def test_the_example_is_an_input_of_its_own(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--input", watched, "--example")[::2] == (
        2,
        "lease-webhook: --example is an input of its own: it takes no file\n",
    )


def test_leases_that_did_not_fit_are_counted_where_the_command_ends(
    watched: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "MAX_LANES", 1)
    page = tmp_path / "page.html"
    _, _, err = run(capsys, "--input", watched, "-o", str(page))
    assert err.endswith("page.html: 1 of 2 leases, the rest is left out: name some, or a namespace with -n\n")
    assert [one["name"] for one in document(capsys, "shop/mail", "--input", watched)["leases"]] == ["mail"]


def test_a_list_is_drawn_as_of_the_time_that_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "leases.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [make_lease()]}))
    renewed = document(capsys, "--input", str(path), "--now", "2026-11-24T12:00:00Z")
    assert renewed["ends"] == "2026-11-24T12:00:00.000000Z"
    assert renewed["leases"][0]["spans"][-1]["kind"] == "overdue"


def test_a_lease_that_cannot_be_drawn_is_named_and_the_others_are_drawn(
    watched: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = SpanRecord.spans

    def broken(record: SpanRecord, *words: Any, **more: Any) -> Any:
        if record.closed:
            raise ValueError("a defect")
        return whole(record, *words, **more)

    monkeypatch.setattr(SpanRecord, "spans", broken)
    page = tmp_path / "page.html"
    code, _, err = run(capsys, "--input", watched, "-o", str(page))
    assert code == 0
    assert "shop/db cannot be drawn: this is a bug: ValueError: a defect\n" in err
    leases = {one["name"]: one for one in json.loads(run(capsys, "--input", watched, "--format", "json")[1])["leases"]}
    assert leases["db"]["problem"] == "this is a bug: ValueError: a defect"
    assert leases["mail"]["spans"][0]["kind"] == "held"
