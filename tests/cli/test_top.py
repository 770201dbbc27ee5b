"""`top` and `why --watch`: leases live in a terminal."""

import os
import time
from pathlib import Path

import pytest

from tests.cli.on_terminal import on_terminal, plain
from tests.history.fake_server import FakeServer
from tests.live.kubectl_script import install, is_running, process_ids
from webhook.cli.main import main
from webhook.kubernetes.times import SECOND


@pytest.fixture
def path(tmp_path: Path) -> dict[str, str]:
    """Return a PATH on which kubectl watches a stolen lease and a healthy one."""
    server = FakeServer(now=time.time_ns() // 1000 - 30 * SECOND)
    mail, thief = server.elector("m", "shop/mail"), server.elector("other", "shop/db")
    holder = server.elector("a", "shop/db")
    for elector in (holder, mail):
        elector.take()
    for _ in range(10):
        server.wait(2)
        holder.renew()
        mail.renew()
    thief.take()
    server.wait(2)
    mail.renew()
    install(tmp_path, server.watch())
    return {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}


def last_frame(screen: str) -> list[str]:
    """Return what stays on the terminal after the alternate screen."""
    return [line.rstrip() for line in plain(screen.rpartition("\x1b[?1049l")[2]).splitlines() if line.strip()]


def test_the_worst_lease_is_first(path: dict[str, str], tmp_path: Path) -> None:
    code, screen = on_terminal(["top"], columns=100, environment=path, until=lambda output: "lease-stolen" in output)
    first, as_of, head, *rows = last_frame(screen)
    assert code == 0
    assert first == "1 of 2 leases needs attention"
    assert as_of.endswith("(the clock of the API server)")
    assert head.split() == ["LEASE", "STATE", "HOLDER", "RENEWED", "USUAL", "CHANGES", "WRONG"]
    assert [row.split()[0] for row in rows] == ["shop/db", "shop/mail"]
    assert rows[0].split()[-2:] == ["1", "lease-stolen"]
    assert not any(map(is_running, process_ids(tmp_path)))


def test_changes_are_shown_on_a_narrow_terminal(path: dict[str, str]) -> None:
    _, screen = on_terminal(["top"], columns=60, environment=path, until=lambda output: "lease-st" in output)
    _, _, head, first, *_ = last_frame(screen)
    assert head.split() == ["LEASE", "STATE", "HOLDER", "RENEWED", "CHANGES", "WRONG"]
    assert first.split()[-2] == "1"


def test_leases_can_be_selected(path: dict[str, str]) -> None:
    words = ["top", "-n", "shop", "--check", "lease-stolen"]
    _, screen = on_terminal(words, columns=100, environment=path, until=lambda output: "lease-stolen" in output)
    assert "shop/mail" not in "\n".join(last_frame(screen))


def test_only_as_many_rows_are_drawn_as_fit(path: dict[str, str]) -> None:
    _, screen = on_terminal(["top"], lines=6, environment=path, until=lambda output: "... 1 more" in output)
    assert "shop/mail" not in "\n".join(last_frame(screen))


@pytest.mark.parametrize("words", [["why", "--watch", "shop/db"], ["why", "-w", "db"]])
def test_one_lease_is_shown_as_why_shows_it(words: list[str], path: dict[str, str]) -> None:
    code, screen = on_terminal(words, columns=100, lines=60, environment=path, until=lambda out: "lease-stolen" in out)
    assert code == 0
    frame = last_frame(screen)
    assert frame[0].startswith("shop/db  live: ")
    assert any("lease-stolen" in line for line in frame)


def test_a_lease_that_does_not_exist_is_waited_for(path: dict[str, str]) -> None:
    words = ["why", "-w", "shop/gone"]
    code, screen = on_terminal(
        words, environment=path, until=lambda output: "there is no lease shop/gone now" in output
    )
    assert code == 2
    assert last_frame(screen) == ["there is no lease shop/gone now"]


def test_a_cluster_that_has_not_answered_is_waited_for(tmp_path: Path) -> None:
    install(tmp_path, b"")
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    _, screen = on_terminal(["top"], environment=environment, until=lambda output: "waiting for the API" in output)
    assert "of 0 leases" not in plain(screen)


def test_a_cluster_that_cannot_be_watched_does_not_seem_to_have_no_leases(tmp_path: Path) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text("#!/bin/sh\necho 'Forbidden: cannot list leases at the cluster scope' >&2\nexit 1\n")
    kubectl.chmod(0o755)
    path = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    code, screen = on_terminal(["top"], columns=100, environment=path, until=lambda output: "NAMESPACE" in output)
    assert code == 0
    assert "at the cluster scope; -n NAMESPACE looks in one namespace" in " ".join(plain(screen).split())
    assert last_frame(screen) == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["top"], "this needs a terminal"),
        (["why", "-w"], "this needs a terminal"),
        (["why", "-w", "-o", "json"], "--watch shows a cluster as it is now"),
        (["why", "-w", "--input", "x.json"], "--watch shows a cluster as it is now"),
    ],
)
def test_what_cannot_live_is_refused(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert problem in capsys.readouterr().err


def test_a_name_in_two_namespaces_is_not_one_of_them(tmp_path: Path) -> None:
    server = FakeServer(now=time.time_ns() // 1000 - 30 * SECOND)
    for lease in ("shop/db", "mall/db"):
        server.elector("a", lease).lead(10)
    install(tmp_path, server.watch())
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    words = ["why", "-w", "-A", "db"]
    _, screen = on_terminal(words, environment=environment, until=lambda output: "several" in output)
    assert last_frame(screen) == ["db is in several namespaces: mall, shop; name one, as mall/db"]


def test_a_name_whose_other_lease_was_deleted_is_that_of_one(tmp_path: Path) -> None:
    server = FakeServer(now=time.time_ns() // 1000 - 30 * SECOND)
    for lease in ("mall/db", "shop/db"):
        server.elector("a", lease).lead(10)
    server.delete("mall/db")
    install(tmp_path, server.watch())
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    _, screen = on_terminal(["why", "-w", "-A", "db"], environment=environment, until=lambda output: "live" in output)
    assert last_frame(screen)[0].startswith("shop/db  live: ")
