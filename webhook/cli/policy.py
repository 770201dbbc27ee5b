"""`lease-webhook policy`: whether a policy file is good, what applies to a lease and why, and the JSON Schema."""

import json
import sys
import time
from collections.abc import Iterable, Sequence
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Final

import click
from msgspec import UNSET, Struct, to_builtins

from webhook.admission.policy.explain import SettingSource, explain, find_applying, list_oddities
from webhook.admission.policy.file import DEFAULT_PRESET, LARGEST, PolicyFileError, load, load_text
from webhook.admission.policy.model import Policy
from webhook.admission.policy.schema import ANYWHERE, MODE, PLAIN_SETTINGS, PRESETS, find_end
from webhook.admission.rules.mode import Mode
from webhook.analysis.inputs.items import STANDARD_INPUT
from webhook.cli.options import (
    Command,
    complete_policies,
    format_option,
    parse_lease_name,
    refuse_two_namespaces,
)
from webhook.cli.terminal import Failure, encode_line, format_table, measure_width, style
from webhook.text.quoting import escape

_STANDARD_INPUT: Final = "standard input"
_ENDED: Final = " (ended: it exempts nobody)"


@click.command(
    "check",
    cls=Command,
    help="Checks policy files, or standard input (-), as `serve` does when it starts, and notes what is valid but odd: "
    "exemptions that have ended or soon will, bindings that deny nothing. A preset's name is the preset.",
    epilog="""\
Exit codes:
  0  good          2  refused

Examples:
  lease-webhook policy check policy.yaml
  kubectl -n lease-webhook get configmap lease-webhook-policy \\
    -o go-template='{{index .data "policy.yaml"}}' |
    lease-webhook policy check -
""",
)
@click.argument("paths", nargs=-1, required=True, metavar="NAME|FILE...", shell_complete=complete_policies)
@format_option("json prints one line per file")
def check(paths: tuple[str, ...], output: str) -> int:
    refused = []
    for path in paths:
        try:
            policy = load_text(_read_standard_input(), _STANDARD_INPUT) if path == STANDARD_INPUT else load(path)
            _print_check(path, policy, output)
        except PolicyFileError as error:
            refused.append(str(error))
    if refused:
        raise Failure("; ".join(refused))
    return 0


def _read_standard_input() -> bytes:
    return sys.stdin.buffer.read(LARGEST + 1)


def _print_check(path: str, policy: Policy, output: str) -> None:
    odd = [*_note_file_of_a_preset(path), *list_oddities(policy, time.time_ns() // 1000)]
    if output == "json":
        print(encode_line(_describe_head(policy) | {"file": path, "good": True, "notes": odd}))
        return
    name = _STANDARD_INPUT if path == STANDARD_INPUT else escape(path)
    print(f"{name}: {style('good', fg='green')}, {_summarize(policy)}")
    for note in odd:
        print(f"  {style('note', fg='yellow')}: {escape(note)}")


def _note_file_of_a_preset(path: str) -> Sequence[str]:
    """Return what was not read, if a file has the name of a preset."""
    return [f"this is the preset; the file of that name is ./{path}"] if path in PRESETS and Path(path).exists() else []


def _summarize(policy: Policy) -> str:
    cap = "everything allowed (mode: off)" if policy.mode is Mode.OFF else f"rules in mode {policy.mode.word} at most"
    shown = {name: value for name, value in _find_plain_settings(policy).items() if value not in {"", None}}
    rest = "".join(f", {name} {escape(str(value))}" for name, value in shown.items())
    return f"preset {policy.preset}, hash {policy.digest}, {cap}{rest}"


def _describe_head(policy: Policy) -> dict[str, Any]:
    head = {"preset": policy.preset, "hash": policy.digest, "mode": policy.mode.word}
    return head | _find_plain_settings(policy)


def _find_plain_settings(policy: Policy) -> dict[str, Any]:
    """Return what the file sets besides preset and mode; None, or "" for the first of them, for what it does not."""
    values = {name: getattr(policy.document, name) for name in PLAIN_SETTINGS if name not in {"preset", "mode"}}
    return {name: None if value is UNSET else value for name, value in values.items()} | {"docs_url": policy.docs_url}


@click.command(
    "schema",
    cls=Command,
    help="Prints the JSON Schema of policy files, so that an editor can complete and check them.",
    epilog="Example:\n  lease-webhook policy schema > policy.schema.json",
)
def schema() -> int:
    print(package_files("webhook.admission.policy").joinpath("policy.schema.json").read_text("utf-8"), end="")
    return 0


@click.command(
    "show",
    cls=Command,
    help="Shows the mode and the numbers of every rule, and the layer that set each: the preset, `rules`, or one "
    "of the `overrides`. A candidate counts under the lease that it names. Without a lease and --namespace: what "
    "applies everywhere.",
    epilog="Example:\n  lease-webhook policy show policy.yaml shop/checkout",
)
@click.argument("file", required=False, metavar="[NAME|FILE]", shell_complete=complete_policies)
@click.argument("named", default="", metavar="[NAMESPACE/NAME]")
@click.option("--namespace", default="", metavar="N", help="for leases of this namespace")
@format_option()
def show(file: str | None, named: str, namespace: str, output: str) -> int:
    policy = load(file)
    lease = ""
    if named:
        refuse_two_namespaces(named, namespace)
        namespace, lease = parse_lease_name(named, f"{named} must be NAMESPACE/NAME")
    settings = list(explain(policy, namespace, lease))
    document = policy.document
    bindings = enumerate(document.bindings)
    applying: dict[str, Iterable[tuple[int, Struct]]] = {
        "overrides": find_applying(document.overrides, namespace, lease),
        "bindings": (one for one in bindings if namespace in ("", one[1].namespace) and lease in ("", one[1].lease)),
        "exempt": find_applying(document.exempt, namespace, lease),
    }
    entries = {name: [{"position": at, **to_builtins(one)} for at, one in found] for name, found in applying.items()}
    now = time.time_ns() // 1000
    ended = {at for at, one in find_applying(document.exempt, namespace, lease) if find_end(one) <= now}
    for entry in entries["exempt"]:
        entry["ended"] = entry["position"] in ended
    if output == "json":
        values = [_make_json(one) for one in settings]
        print(
            encode_line(_describe_head(policy) | {"namespace": namespace, "lease": lease, "settings": values} | entries)
        )
        return 0
    scope = f"for lease {escape(namespace or ANYWHERE)}/{escape(lease or ANYWHERE)}"
    print(style(escape(file or DEFAULT_PRESET), bold=True), _summarize(policy), scope, "", sep="\n")
    print("\n".join(format_table([_make_row(one, policy.mode) for one in settings], by=0)))
    # ASCII, so that no text controls a terminal.
    rows = [(f"{name}[{one.pop('position')}]", _spell(one)) for name, found in entries.items() for one in found]
    if rows:
        print("\nWhat the file says of it", *format_table(rows, columns=measure_width()), sep="\n")
    return 0


def _make_json(setting: SettingSource) -> dict[str, Any]:
    value = Mode(setting.value).word if setting.name == MODE else setting.value
    return {**to_builtins(setting), "value": value}


def _spell(entry: dict[str, Any]) -> str:
    told = {key: value for key, value in entry.items() if value and key != "ended"}
    text = ", ".join(f"{key}: {json.dumps(value)}" for key, value in told.items())
    return f"{text}{_ENDED}" if entry.get("ended") else text


def _make_row(setting: SettingSource, cap: Mode) -> tuple[str, str, str]:
    layer = f"{setting.layer} on {', '.join(setting.operations)}" if setting.operations else setting.layer
    if setting.name != MODE:
        return f"  {setting.name}", str(setting.value), layer
    mode = Mode(setting.value)
    capped = min(mode, cap)
    return setting.rule, f"{capped.word} (would deny)" if Mode.OFF < capped < mode is Mode.DENY else capped.word, layer
