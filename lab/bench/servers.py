"""Our server and its peers on free loopback ports, pinned to cores, each with the same certificate."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from lab.bench import toolchain
from lab.bench.processes import list_children
from tests.server.harness import make_certificates
from tests.waiting import wait_for

ROOT: Final = Path(__file__).parents[2]
START_SECONDS: Final = 40
OURS: Final = "lease-webhook"


class Server(msgspec.Struct, frozen=True):
    """One program under test. `command(port, workers, work)` returns its command line; `work` is its own directory.

    `build` builds the program, or raises MissingError with the reason why this machine has none.
    `constant_answer`: it does not read the review, so its answers cannot be checked.
    """

    name: str
    build: Callable[[], Path]
    version: Callable[[], str]
    command: Callable[[int, int, Path], list[str]]
    path: str = "/validate"
    constant_answer: bool = False


class Running(msgspec.Struct, frozen=True):
    """A server that answers."""

    server: Server
    process: subprocess.Popen[bytes]
    port: int
    work: Path

    @property
    def pid(self) -> int:
        """Root of its process tree."""
        return self.process.pid

    @property
    def url(self) -> str:
        """URL of reviews, as the API server would write it."""
        return f"https://localhost:{self.port}{self.server.path}?timeout=10s"

    @property
    def certificate_authority(self) -> Path:
        """Root that signs its certificate."""
        return self.work / "tls" / "ca.crt"

    @property
    def workers(self) -> list[int]:
        """Process IDs of our server's workers."""
        return list_children(self.pid)

    @property
    def health_address(self) -> tuple[str, int]:
        """Address of our server's probes and metrics."""
        entry = next(line for line in self.log.splitlines() if '"listening"' in line)
        host, _, port = json.loads(entry)["health"].rpartition(":")
        return host, int(port)

    def get_health(self, path: str) -> tuple[int, str]:
        """Return a page of our server's health port."""
        connection = http.client.HTTPConnection(*self.health_address, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    @property
    def log(self) -> str:
        """Output so far."""
        return (self.work / "log").read_text(errors="replace")


def find_free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def run_server(
    server: Server,
    work: Path,
    *,
    workers: int = 1,
    cpus: str = "",
    environment: dict[str, str] | None = None,
    stdout: int | None = None,
) -> Iterator[Running]:
    """Run a server until the block ends.

    `cpus` as taskset takes them, or "" for no pinning; `stdout` is a file descriptor in place of the log file.
    """
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "tls").exists():
        make_certificates(work / "tls")
    port = find_free_port()
    command = server.command(port, workers, work)
    if cpus and shutil.which("taskset"):
        command = ["taskset", "--cpu-list", cpus, *command]
    variables = {**os.environ, "GOMAXPROCS": str(workers), **(environment or {})}
    # What compiles its modules when it starts takes more memory afterwards.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    with (work / "log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log if stdout is None else stdout,
            stderr=log,
            start_new_session=True,
        )
    started = Running(server, process, port, work)
    try:
        wait_until_answering(started)
        if server.name == OURS:
            wait_for("all workers", lambda: len(started.workers) == workers)
            time.sleep(0.5)  # until the last of them listens
        yield started
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes], patience: float = 30) -> float:
    """End a server in order, and after `patience` seconds it and its workers by force; return the seconds it took."""
    began = time.monotonic()
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            # It leads a session, so its workers have its group; without their master they would stay.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return time.monotonic() - began


def wait_until_answering(started: Running) -> None:
    """Wait until a TLS handshake succeeds.

    Raises:
        RuntimeError: the server ended, or did not answer in time; with the end of its log.

    """
    context = ssl.create_default_context(cafile=str(started.certificate_authority))
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if started.process.poll() is not None:
            break
        try:
            with (
                socket.create_connection(("127.0.0.1", started.port), 2) as plain,
                context.wrap_socket(plain, server_hostname="localhost"),
            ):
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"{started.server.name} did not start: {started.log[-2000:]}")


def make_own_server(*options: str) -> Server:
    """Return our server as `lease-webhook serve` starts it: every rule, metrics and guards on."""

    def build_command(port: int, workers: int, work: Path) -> list[str]:
        return [
            str(toolchain.find_server_python()), "-m", "webhook", "serve", "--bind", f"127.0.0.1:{port}",
            "--tls-dir", str(work / "tls"), "--workers", str(workers), "--health-bind", "127.0.0.1:0", *options,
        ]  # fmt: skip

    return Server(OURS, toolchain.find_server_python, _find_own_version, build_command)


def make_echo_server(part: str) -> Server:
    """Return a part of our server, see `lab.bench.echo`; only `verdict` reads reviews."""

    def build_command(port: int, _workers: int, work: Path) -> list[str]:
        return [str(toolchain.find_server_python()), "-m", "lab.bench.echo", part, str(port), str(work / "tls")]

    constant = part != "verdict"
    return Server(part, toolchain.find_server_python, _find_own_version, build_command, constant_answer=constant)


def make_own_server_with(**settings: object) -> Server:
    """Return our server with settings that no operator can choose, as `tests.server.launch` takes them."""

    def build_command(port: int, workers: int, work: Path) -> list[str]:
        every = {"bind": f"127.0.0.1:{port}", "tls_dir": str(work / "tls"), "workers": workers, **settings}
        return [sys.executable, "-m", "tests.server.launch", json.dumps({"health_bind": "127.0.0.1:0", **every})]

    return Server(OURS, lambda: Path(sys.executable), _find_own_version, build_command)


def find_interpreter_name() -> str:
    """Return which Python our server runs on."""
    python = toolchain.find_server_python()
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[-1]
    built = "of the tests" if python == Path(sys.executable) else "of Debian, built with PGO as the image's is"
    return f"CPython {version} {built}"


def _find_own_version() -> str:
    version = subprocess.run(
        [sys.executable, "-m", "webhook", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return f"{version.split()[-1]}, {find_interpreter_name()}"


_controller_runtime_program = partial(toolchain.build_go_program, "peers/controller_runtime")
_net_http_program = partial(toolchain.build_go_program, "peers/net_http")
_opa_program = partial(toolchain.build_go_program, "peers/opa")


def _build_controller_runtime_command(port: int, _workers: int, work: Path) -> list[str]:
    return [
        str(_controller_runtime_program()),
        f"-port={port}",
        f"-tls-dir={work / 'tls'}",
        f"-metrics=127.0.0.1:{find_free_port()}",
    ]


def _build_net_http_command(port: int, _workers: int, work: Path) -> list[str]:
    return [str(_net_http_program()), f"-address=127.0.0.1:{port}", f"-tls-dir={work / 'tls'}"]


def _build_opa_command(port: int, _workers: int, work: Path) -> list[str]:
    return [
        str(_opa_program()), "run", "--server", f"--addr=127.0.0.1:{port}", "--log-level=error",
        f"--tls-cert-file={work / 'tls' / 'tls.crt'}", f"--tls-private-key-file={work / 'tls' / 'tls.key'}",
        "--set=default_decision=/lease/main", "--disable-telemetry", str(toolchain.HERE / "peers/opa/policy.rego"),
    ]  # fmt: skip


_NGINX_CONF: Final = """
daemon off; pid {work}/pid; error_log stderr crit; worker_processes {workers};
events {{ worker_connections 1024; }}
http {{
  access_log off; client_max_body_size 20m; client_body_buffer_size 64k; keepalive_requests 1000000000;
  client_body_temp_path {work}; proxy_temp_path {work}; fastcgi_temp_path {work};
  uwsgi_temp_path {work}; scgi_temp_path {work};
  server {{
    listen 127.0.0.1:{port} ssl; ssl_certificate {work}/tls/tls.crt; ssl_certificate_key {work}/tls/tls.key;
    location / {{ default_type application/json; return 200 '{{"apiVersion":"admission.k8s.io/v1"}}'; }}
  }}
}}
"""


def _build_nginx_command(port: int, workers: int, work: Path) -> list[str]:
    configuration = work / "nginx.conf"
    configuration.write_text(_NGINX_CONF.format(work=work, workers=workers, port=port))
    return [str(toolchain.find_nginx()), "-c", str(configuration), "-e", "stderr"]


def _find_nginx_version() -> str:
    output = subprocess.run([str(toolchain.find_nginx()), "-v"], capture_output=True, text=True, check=True).stderr
    match = re.search(r"nginx/([\d.]+)", output)
    return match[1] if match else output.strip()


CONTROLLER_RUNTIME: Final = Server(
    "controller-runtime",
    _controller_runtime_program,
    lambda: (
        f"{toolchain.find_module_version('controller_runtime', 'sigs.k8s.io/controller-runtime')}, "
        f"{toolchain.find_go_version()}"
    ),
    _build_controller_runtime_command,
)
NET_HTTP: Final = Server(
    "net/http, one comparison", _net_http_program, toolchain.find_go_version, _build_net_http_command
)
OPA: Final = Server(
    "OPA, Rego",
    _opa_program,
    lambda: (
        f"{toolchain.find_module_version('opa', 'github.com/open-policy-agent/opa')}, {toolchain.find_go_version()}"
    ),
    _build_opa_command,
    path="/",
)
NGINX: Final = Server(
    "nginx `return 200`", toolchain.find_nginx, _find_nginx_version, _build_nginx_command, constant_answer=True
)
PEERS: Final = (CONTROLLER_RUNTIME, NET_HTTP, OPA, NGINX)
