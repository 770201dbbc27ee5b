"""A pod: an elector of client-go, and work that writes to PostgreSQL and Redis while it leads.

    python -m lab.outside.pod SETTINGS

A unit of work that has begun is finished, as real work is, whatever becomes of the lease meanwhile.
"""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, convert

from lab.e2e.api_client import ApiClient
from lab.e2e.world import build_lease_path
from lab.outside.stores import EXAMPLES, Redis, Sql

UNIT: Final = 400
"""Writes of each kind in a unit of work."""


class Settings(Struct, frozen=True):
    """The settings of a pod."""

    elector: tuple[str, ...]
    port: int
    authority: str
    token: str
    namespace: str
    suffix: str
    name: str
    uid: str
    identity: str
    stores: str
    is_stamped: bool


def main(file: str) -> None:
    """Work until this process is ended."""
    settings = convert(json.loads(Path(file).read_text(encoding="utf-8")), Settings)
    leading = threading.Event()
    elector = subprocess.Popen(settings.elector, stdout=subprocess.PIPE, text=True)
    threading.Thread(target=_follow, args=(elector, leading), daemon=True).start()
    client = ApiClient(settings.port, Path(settings.authority), settings.name, token=settings.token)
    while True:
        leading.wait()
        number = _read_token(client, settings)
        if number:
            _work_unit(settings, number)
        else:
            time.sleep(0.05)


def _follow(elector: "subprocess.Popen[str]", leading: threading.Event) -> None:
    assert elector.stdout
    for line in elector.stdout:
        event = json.loads(line)["event"] if line.startswith("{") else ""
        if event == "started":
            leading.set()
        elif event == "stopped":
            leading.clear()


def _read_token(client: ApiClient, settings: Settings) -> str:
    """Return the fencing token, by a reader of the docs; "" while this pod does not lead."""
    reader: dict[str, Any] = {}
    name = "term" if settings.is_stamped else "revision"
    exec((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"), reader)
    lease = client.get(build_lease_path(settings.namespace, "operator"))
    own = (settings.suffix, settings.uid) if settings.is_stamped else (settings.identity,)
    try:
        return str(reader[name](lease, *own))
    except reader["NotLeadingError"]:
        return ""


def _work_unit(settings: Settings, term: str) -> None:
    stores = Path(settings.stores)
    sql, redis = Sql(stores), Redis(stores)
    script = (EXAMPLES / "redis.lua").read_text(encoding="utf-8")
    for number in range(UNIT):
        values = f"VALUES ('{settings.name}', '{number}')"
        answers = {
            "postgresql": sql.run(f"SET LOCAL lease.term = '{term}'; INSERT INTO journal (pod, entry) {values}"),
            "redis": redis.run("EVAL", script, "2", "term:shop/operator", "journal", term, settings.name),
        }
        sql.run(f"INSERT INTO plain (pod, entry) {values}")
        redis.run("RPUSH", "plain", settings.name)
        refused = {store: answer for store, answer in answers.items() if answer.startswith(("ERROR", "-"))}
        print(json.dumps({"at": time.time(), "term": term, "refused": refused}), flush=True)
        time.sleep(0.002)


if __name__ == "__main__":
    main(sys.argv[1])
