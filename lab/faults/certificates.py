"""Certificates that change under handshaking clients, as the kubelet changes them: `..data` is swapped whole."""

import contextlib
import datetime as dt
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from lab.bench.servers import Running, make_own_server_with, run_server
from lab.bench.table import Table
from lab.faults.watched import make_bar, make_correctness_bar, make_loss_bar, make_row, make_table, run_under_load
from tests.server.harness import NAMES, make_certificates
from tests.waiting import wait_for
from webhook.certificates.issue import Issued, issue_leaf, save

POLL_SECONDS = 0.2
"""In production it is 10 s; the swaps would take all day."""


class Volume:
    """A directory as the kubelet mounts a Secret: files are links through `..data`, which is replaced whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.authority: Issued = make_certificates(path.parent / "authority")
        self.leaves: list[bytes] = []
        self._number = 0
        path.mkdir()
        self.swap()
        for name in ("tls.crt", "tls.key", "ca.crt"):
            (path / name).symlink_to(f"..data/{name}")

    def swap(self, *, mismatched: bool = False, without: str = "", half: str = "") -> None:
        """Put a new leaf in place; `mismatched` with another key, `without` a file, `half` of a file."""
        self._number += 1
        fresh = self.path / f"..{self._number}"
        fresh.mkdir()
        shutil.copy(self.path.parent / "authority" / "ca.crt", fresh)
        save(fresh, self._issue_leaf())
        if mismatched:
            key = (fresh / "tls.key").read_bytes()
            save(fresh, self._issue_leaf())
            (fresh / "tls.key").write_bytes(key)
        elif not (without or half):
            self.leaves.append(ssl.PEM_cert_to_DER_cert(_read_first(fresh / "tls.crt")))
        if without:
            (fresh / without).unlink()
        if half:
            text = (fresh / half).read_bytes()
            (fresh / half).write_bytes(text[: len(text) // 2])
        link, last = self.path / "..data_tmp", self.path / "..data"
        old = last.resolve() if last.is_symlink() else None
        link.symlink_to(fresh.name)
        link.rename(last)
        if old:
            shutil.rmtree(old)

    def _issue_leaf(self) -> Issued:
        return issue_leaf(self.authority, NAMES, 90, dt.datetime.now(dt.UTC))


def _read_first(path: Path) -> str:
    return path.read_text().partition("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"


class Handshaker(threading.Thread):
    """A client that connects again and again, with or without SNI, and keeps its observations."""

    def __init__(self, server: Running, *, with_name: bool) -> None:
        # If the program fails, it must end nevertheless.
        super().__init__(daemon=True)
        self._port = server.port
        self._context = ssl.create_default_context(cafile=str(server.certificate_authority))
        self._name = "localhost" if with_name else None
        self._context.check_hostname = with_name
        self.handshakes = 0
        self.failures: list[str] = []
        self.last_seen: dict[bytes, float] = {}
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                with (
                    socket.create_connection(("127.0.0.1", self._port), 5) as plain,
                    self._context.wrap_socket(plain, server_hostname=self._name) as secure,
                ):
                    leaf = secure.getpeercert(binary_form=True)
                assert leaf
                self.last_seen[leaf] = time.monotonic()
                self.handshakes += 1
            except (OSError, AssertionError) as error:
                self.failures.append(repr(error))
            time.sleep(0.005)


@contextlib.contextmanager
def run_clients(*clients: Handshaker) -> Iterator[tuple[Handshaker, ...]]:
    """Let clients connect until the block ends, however it does."""
    for client in clients:
        client.start()
    try:
        yield clients
    finally:
        for client in clients:
            client.stopped.set()
        for client in clients:
            client.join()


def has_reached(clients: Iterable[Handshaker], leaf: bytes) -> bool:
    """Return whether a leaf was served to every client."""
    return all(leaf in client.last_seen for client in clients)


def swap_certificates(work: Path, *, short: bool) -> Table:
    """Swap 50 times, once with a pair that does not match, under two handshaking clients and a load of reviews."""
    count, gap = (8, 0.8) if short else (50, 1.0)
    volume = Volume(work / "server-work")
    server_work = work / "server"
    server_work.mkdir()
    (server_work / "tls").symlink_to(volume.path)
    longest = 0.0
    with run_server(make_own_server_with(certificate_poll_seconds=POLL_SECONDS), server_work, workers=2) as server:
        with run_clients(Handshaker(server, with_name=True), Handshaker(server, with_name=False)) as clients:
            with run_under_load(server, work, count * gap + 3) as load:
                for number in range(count):
                    time.sleep(gap)
                    if number == count // 2:
                        volume.swap(mismatched=True)
                        continue
                    swapped = time.monotonic()
                    before = volume.leaves[-1]
                    volume.swap()
                    time.sleep(min(gap / 2, 0.5))
                    longest = max(longest, *(client.last_seen.get(before, 0.0) - swapped for client in clients))
            # A load may end right after a swap; what was not served is a bar.
            with contextlib.suppress(TimeoutError):
                wait_for("the newest pair", lambda: has_reached(clients, volume.leaves[-1]), 2.0)
        newest = has_reached(clients, volume.leaves[-1])
        leaves = {leaf for client in clients for leaf in client.last_seen}
        failures = [failure for client in clients for failure in client.failures]
        handshakes = sum(client.handshakes for client in clients)
        note = f"{handshakes} handshakes, {len(failures)} failed, {len(leaves)} leaves seen"
        rows = [make_row(f"{count} swaps, one mismatched", server, load.report, note)]
    strangers = leaves - set(volume.leaves)
    bars = [
        make_bar(
            f"{count} certificate swaps: failed handshakes",
            "0",
            f"{len(failures)} of {handshakes}",
            met=handshakes > 0 and not failures,
        ),
        make_bar("mismatched pair: last good pair kept", "yes", str(not strangers), met=not strangers),
        make_bar("newest pair served in the end", "yes", str(newest), met=newest),
        make_loss_bar("certificate swaps", load.report.not_answered),
        make_correctness_bar("certificate swaps", load.report),
    ]
    notes = (f"The old leaf was seen for at most {longest:.2f} s after a swap; poll every {POLL_SECONDS} s, not 10 s.",)
    return make_table("Certificate rotation", notes, rows, bars, load.spent.foreign_cores)


def break_files(work: Path, *, short: bool) -> Table:
    """Write half certificate files, remove some, and write a bad policy file: the earlier ones stay in use."""
    del short
    volume = Volume(work / "server-work")
    server_work = work / "server"
    server_work.mkdir()
    (server_work / "tls").symlink_to(volume.path)
    policy = work / "policy.yaml"
    good = "apiVersion: lease-webhook/v1\npreset: standard\n"
    policy.write_text(good)
    polls = {"certificate_poll_seconds": POLL_SECONDS, "policy_poll_seconds": POLL_SECONDS}
    ready: list[tuple[str, int]] = []
    with run_server(make_own_server_with(policy=str(policy), **polls), server_work, workers=2) as server:
        client = Handshaker(server, with_name=True)
        with run_clients(client), run_under_load(server, work, 12) as load:
            ready.append(("at first", _ask_readiness(server, 200)))
            volume.swap(half="tls.crt")
            ready.append(("half a certificate", _ask_readiness(server, 200)))
            volume.swap(without="tls.key")
            ready.append(("no key", _ask_readiness(server, 200)))
            refused = "certificate" in _list_failed_reloads(server)
            volume.swap()
            ready.append(("a good pair again", _ask_readiness(server, 200)))
            policy.write_text("preset: nonsense\n")
            ready.append(("a bad policy", _ask_readiness(server, 200)))
            is_named = "warning: policy: " in server.get_health("/readyz")[1]
            refused = refused and "policy" in _list_failed_reloads(server)
            policy.write_text(good)
            ready.append(("a good policy again", _ask_readiness(server, 200)))
        rows = [
            make_row(
                "bad files", server, load.report, "/readyz: " + ", ".join(f"{what} {code}" for what, code in ready)
            )
        ]
    as_wanted = is_named and {code for _, code in ready} == {200}
    bars = [
        make_bar(
            "bad files: the last good pair and policy are ready to serve, and /readyz names the bad ones",
            "yes",
            str(as_wanted),
            met=as_wanted,
        ),
        make_bar("bad files: counted in lease_webhook_reloads_total", "both kinds", str(refused), met=refused),
        make_bar(
            "bad certificate files: failed handshakes",
            "0",
            f"{len(client.failures)} of {client.handshakes}",
            met=client.handshakes > 0 and not client.failures,
        ),
        make_loss_bar("bad files", load.report.not_answered),
        make_correctness_bar("bad files", load.report),
    ]
    return make_table("Bad files", (), rows, bars, load.spent.foreign_cores)


def _list_failed_reloads(server: Running) -> str:
    """Return the lines of /metrics that count files which were refused."""
    lines = server.get_health("/metrics")[1].splitlines()
    return "\n".join(
        line for line in lines if "reloads_total" in line and "failure" in line and not line.endswith(" 0.0")
    )


def _ask_readiness(server: Running, status: int) -> int:
    """Return the answer of /readyz for a second long, whichever worker answers; wait up to 5 s for it."""
    agreed = 0
    code = 0
    end = time.monotonic() + 5
    while agreed < 10 and time.monotonic() < end:
        code = server.get_health("/readyz")[0]
        agreed = agreed + 1 if code == status else 0
        time.sleep(0.05)
    return code
