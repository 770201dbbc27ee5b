"""The pages' tables about the server are those of the code."""

import datetime as dt
import re

import click
from prometheus_client.parser import text_string_to_metric_families

from tools.docs.pages import DOCS, find_section, find_table
from webhook.admission.policy.file import load
from webhook.certificates.files import Certificate
from webhook.cli.serve import command
from webhook.kubernetes.review_size import MAX_TOKENS
from webhook.server.metrics import Metrics
from webhook.server.settings import Guards, Options

FLAGS = find_section(DOCS / "settings.md", "Flags of serve")
GUARDS = find_section(DOCS / "settings.md", "Guards")


def serve_options() -> dict[str, click.Parameter]:
    return {option.opts[-1]: option for option in command.params}


def test_flags_and_defaults_of_serve() -> None:
    written = {row[0].strip("`").split()[0]: row[1].strip("`") for row in find_table(FLAGS, "flag")}
    built_in = {
        "--policy": "standard",
        "--docs-url": "none",
        "--capture": "off",
        "--client-ca": "off",
        "--client-name": "off",
        "--no-audit-lines": "logged",
    }
    assert written == {flag: built_in.get(flag) or str(one.default) for flag, one in serve_options().items()}


def test_metrics_and_labels() -> None:
    rows = find_table(find_section(DOCS / "operate.md", "Metrics"), "metric")
    written = {row[0].strip("`"): re.findall(r"`(\w+)`", row[1]) for row in rows}
    metrics = Metrics()
    metrics.show_policy(load(None))
    now = dt.datetime.now(dt.UTC)
    metrics.show_certificate(Certificate(frozenset(), now, now))
    exposed = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        if family.name.endswith("_created"):
            continue  # the library's own, which a server with several workers does not have
        name = f"{family.name}_total" if family.type == "counter" else family.name
        exposed[name] = {label for sample in family.samples for label in sample.labels} - {"le"}
    assert {name: set(labels) for name, labels in written.items()} == exposed


def test_the_guards_of_the_page_are_those_of_the_code() -> None:
    guards = Guards()
    expected = {
        "TLS handshake": f"{guards.handshake_seconds} s",
        "a whole request, however slowly it arrives": f"{guards.request_seconds} s",
        "idle time after the handshake or a response": f"{guards.keep_alive_seconds} s",
        "head of a request": f"{guards.max_head // 1024} KiB",
        "body": f"{guards.max_body // 2**20} MiB",
        "values of a review (strings, commas and opening brackets)": f"{2 * MAX_TOKENS:,}",
        "bodies being received, for each worker": f"{guards.max_bytes_in_flight // 2**20} MiB",
        "connections, for each worker": str(guards.max_connections),
        "a changed certificate": f"read within {Options().certificate_poll_seconds} s",
    }
    rows = {row[0]: row[1] for row in find_table(GUARDS, "guard")}
    assert {name: rows.get(name) for name in expected} == expected
