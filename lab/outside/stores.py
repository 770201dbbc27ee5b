"""PostgreSQL and Redis of Debian, on sockets in a directory, and one client of each; no driver is needed."""

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Final, Self

from lab.e2e.processes import Process
from lab.e2e.world import PROJECT
from tests.waiting import wait_for

EXAMPLES: Final = PROJECT / "docs" / "examples" / "outside"
USER: Final = "postgres"
"""PostgreSQL does not run as root; the Debian package makes this user."""
REDIS: Final = ("redis-server", "redis-check-rdb")
"""One program under two names; the second one is in redis-tools."""


class MissingStoreError(Exception):
    """Raised when a program of a Debian package is missing."""


def find_postgresql() -> Path:
    """Return the directory of the newest version. Raises MissingStoreError."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda one: int(one.parts[-3]))
    if not programs or not shutil.which("psql"):
        raise MissingStoreError("PostgreSQL is missing: apt-get install postgresql")
    return programs[-1].parent


def find_redis() -> str:
    """Return the path of the server. Raises MissingStoreError."""
    path = next(filter(None, map(shutil.which, REDIS)), None)
    if path is None:
        raise MissingStoreError("Redis is missing: apt-get install redis-tools")
    return path


class Stores:
    """Both servers in one directory, with the shipped table and without; a context manager."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._processes: list[Process] = []

    def __enter__(self) -> Self:
        programs, data = find_postgresql(), self.directory / "data"
        self.directory.chmod(0o755)
        data.mkdir()
        shutil.chown(data, USER)
        shutil.chown(self.directory, USER)
        initdb = [str(programs / "initdb"), "--auth=trust", "--no-sync", f"--pgdata={data}"]
        subprocess.run(initdb, user=USER, check=True, capture_output=True, timeout=120)
        server = [str(programs / "postgres"), "-D", str(data), "-k", str(self.directory), "-c", "listen_addresses="]
        # A leader that is stopped within a transaction holds the lock for which its successor waits.
        server += ["-c", "idle_in_transaction_session_timeout=2s"]
        self._run("postgresql", "setpriv", f"--reuid={USER}", "--clear-groups", *server)
        redis = [
            "--port",
            "0",
            "--unixsocket",
            str(self.directory / "redis"),
            "--save",
            "",
            "--dir",
            str(self.directory),
        ]
        self._run("redis", "/bin/bash", "-c", 'exec -a redis-server "$0" "$@"', find_redis(), *redis)
        wait_for("PostgreSQL", lambda: self.run_sql("SELECT 1").strip() == "1", 60)
        wait_for("Redis", (self.directory / "redis").exists, 30)
        self.run_sql((EXAMPLES / "postgresql.sql").read_text(encoding="utf-8"))
        self.run_sql("CREATE TABLE plain (id bigserial PRIMARY KEY, pod text, entry text)")
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.stop()

    def run_sql(self, text: str) -> str:
        """Run statements; return "" if the server does not answer."""
        command = ["psql", "-h", str(self.directory), "-U", USER, "-At", "-v", "ON_ERROR_STOP=1"]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60).stdout

    def _run(self, name: str, *command: str) -> None:
        self._processes.append(Process(command, self.directory / f"{name}.log"))


class Sql:
    """One connection of psql, which stays open."""

    def __init__(self, directory: Path) -> None:
        command = ["psql", "-h", str(directory), "-U", USER, "-Atq"]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, text: str) -> str:
        """Return the error of a transaction, "" if it was committed."""
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.write(f"BEGIN;\n{text};\nCOMMIT;\n\\echo end\n")
        self._child.stdin.flush()
        lines = []
        while (line := self._child.stdout.readline().strip()) != "end":
            if not line:
                break
            lines.append(line)
        return next((line for line in lines if line.startswith("ERROR")), "")


class Redis:
    """One connection."""

    def __init__(self, directory: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(directory / "redis"))
        self._answers = self._socket.makefile("rb")

    def run(self, *words: str) -> str:
        """Return the first line of an answer; that of an error begins with `-`."""
        arguments = b"".join(b"$%d\r\n%s\r\n" % (len(one.encode()), one.encode()) for one in words)
        self._socket.sendall(b"*%d\r\n%s" % (len(words), arguments))
        return self._answers.readline().decode().strip()

    def list_items(self, name: str) -> list[str]:
        """Return a list, first in, first out."""
        count = int(self.run("LRANGE", name, "0", "-1").removeprefix("*"))
        # Each item is preceded by a line with its length.
        return [self._answers.readline().decode().strip() for _ in range(2 * count)][1::2]
