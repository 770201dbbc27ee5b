"""`lease-webhook policy`: whether a policy file is good, what applies to a lease and why, and the JSON Schema."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files as package_files
from typing import Any, Final

import click
from msgspec import Struct, to_builtins

from webhook.api.text import escape
from webhook.cli.options import Command, files, format_option, namespaced, policies
from webhook.cli.terminal import Failure, json_line, style, table, width
from webhook.policy.explain import BUILT_IN, PRESET, SettingSource, applying_to, explain, notes
from webhook.policy.model import Policy
from webhook.policy.parse import EXEMPT_GROUPS, EXEMPT_USERS
from webhook.policy.schema import ANYWHERE, MODE, Exemption, until_of
from webhook.policy_file import DEFAULT_PRESET, PolicyFileError, load
from webhook.rules.registry import RULES
from webhook.rules.rule import Mode

_Entries = Sequence[tuple[int, Struct]]
"""Entries of a policy file, with their positions in it."""
_TITLES: Final = {
    "overrides": "Overrides",
    "bindings": "Identity bindings",
    "exempt": "Exempt from what the API server lets through",
}
_NONE: Final = {"overrides": "  none", "bindings": "  none: whoever has the rights may write as any holder"}
_ALWAYS_EXEMPT: Final = [("always", ", ".join([*EXEMPT_USERS, *(f"group {group}" for group in EXEMPT_GROUPS)]))]


@click.command(
    "check",
    cls=Command,
    help="Checks policy files as `serve` does when it starts, and notes what is valid but odd: exemptions that have "
    "ended or soon will, modes that change nothing.",
    epilog="""\
Exit codes:
  0  good          2  refused

Example:
  lease-webhook policy check policy.yaml
""",
)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", shell_complete=files)
@format_option("json prints one line per file")
def check(paths: tuple[str, ...], output: str) -> int:
    refused = []
    for path in paths:
        try:
            _print_check(path, load(path), output)
        except PolicyFileError as error:
            refused.append(str(error))
    if refused:
        raise Failure("; ".join(refused))
    return 0


def _print_check(path: str, policy: Policy, output: str) -> None:
    odd = notes(policy, time.time_ns() // 1000)
    if output == "json":
        print(json_line(_head(policy) | {"file": path, "good": True, "notes": odd}))
        return
    document = policy.document
    numbers = {
        "exemptions": len(document.exempt),
        "overrides": len(document.overrides),
        "bindings": len(document.bindings),
        "fences": len(policy.fences),
        "namespaces with stamps": len(policy.stamps),
    }
    counts = [f"{name}: {number}" for name, number in numbers.items() if number]
    print(f"{escape(path)}: {style('good', fg='green')}, {', '.join([_summary(policy), *counts])}")
    for note in odd:
        print(f"  {style('note', fg='yellow')}: {escape(note)}")


def _summary(policy: Policy) -> str:
    cap = "everything allowed (mode: off)" if policy.mode is Mode.OFF else f"mode {policy.mode.word}"
    docs = f", docs_url {escape(policy.docs_url)}" if policy.docs_url else ""
    return f"preset {policy.preset}, hash {policy.digest}, {cap}, without_stamps {policy.document.without_stamps}{docs}"


def _head(policy: Policy) -> dict[str, Any]:
    return {
        "preset": policy.preset,
        "hash": policy.digest,
        "mode": policy.mode.word,
        "without_stamps": policy.document.without_stamps,
        "docs_url": policy.docs_url,
    }


@click.command(
    "schema",
    cls=Command,
    help="Prints the JSON Schema of policy files, so that an editor can complete and check them.",
    epilog="Example:\n  lease-webhook policy schema > policy.schema.json",
)
def schema() -> int:
    print(package_files("webhook.policy").joinpath("policy.schema.json").read_text("utf-8"), end="")
    return 0


@click.command(
    "show",
    cls=Command,
    help="Shows the mode and the numbers of every rule, and the layer that set each: the preset, `rules`, or one "
    "of the `overrides`. Without a lease and --namespace: what applies everywhere.",
    epilog="Example:\n  lease-webhook policy show policy.yaml shop/checkout",
)
@click.argument("file", required=False, metavar="[NAME|FILE]", shell_complete=policies)
@click.argument("named", default="", metavar="[NAMESPACE/NAME]")
@click.option("--namespace", default="", metavar="N", help="for leases of this namespace")
@click.option("--lease", default="", hidden=True)
@format_option()
def show(file: str | None, named: str, namespace: str, lease: str, output: str) -> int:
    policy = load(file)
    if name := named or (lease if "/" in lease else ""):
        namespace, lease = namespaced(name, f"{name} must be NAMESPACE/NAME")
    entries = _entries_for(policy, namespace, lease)
    if output == "json":
        print(json_line(_shown(policy, namespace, lease, entries)))
        return 0
    print(style(escape(file or DEFAULT_PRESET), bold=True), _summary(policy), _scope(namespace, lease), sep="\n")
    explained = list(explain(policy, namespace, lease))
    for title, parity in (("What the API server checks too", True), ("What the API server lets through", False)):
        settings = [one for one in explained if RULES[one.rule].parity is parity]
        _print(title, _settings(settings, policy.mode))
    for name, title in _TITLES.items():
        always = _ALWAYS_EXEMPT if name == "exempt" else []
        _print(title, [*table([*always, *_rows(name, entries[name])], columns=width())] or [_NONE[name]])
    return 0


def _entries_for(policy: Policy, namespace: str, lease: str) -> dict[str, _Entries]:
    """Return the entries of a file that apply to a lease, by their key in the file; "" matches any."""
    document = policy.document
    bindings = enumerate(document.bindings)
    return {
        "overrides": list(applying_to(document.overrides, namespace, lease)),
        "bindings": [
            (position, one)
            for position, one in bindings
            if namespace in ("", one.namespace) and lease in ("", one.lease)
        ],
        "exempt": list(applying_to(document.exempt, namespace, lease)),
    }


def _shown(policy: Policy, namespace: str, lease: str, entries: Mapping[str, _Entries]) -> dict[str, Any]:
    """Return all that `show` prints, with the entries of the file as the file spells them."""
    settings = [
        {
            "rule": one.rule,
            "name": one.name,
            "value": Mode(one.value).word if one.name == MODE else one.value,
            "layer": one.layer,
            "operations": list(one.operations),
        }
        for one in explain(policy, namespace, lease)
    ]
    spelled = {
        name: [{"position": position, **to_builtins(entry)} for position, entry in found]
        for name, found in entries.items()
    }
    return _head(policy) | {"namespace": namespace, "lease": lease, "settings": settings} | spelled


def _rows(name: str, entries: _Entries) -> Iterator[tuple[str, str]]:
    """Yield each entry as the file spells it, a key on each line. ASCII, so that no text controls a terminal."""
    now = time.time_ns() // 1000
    for position, entry in entries:
        head = f"{name}[{position}]"
        for key, value in to_builtins(entry).items():
            if value:
                has_ended = key == "until" and isinstance(entry, Exemption) and until_of(entry) <= now
                yield head, f"{key}: {json.dumps(value)}{' (ended)' if has_ended else ''}"
                head = ""


def _scope(namespace: str, lease: str) -> str:
    if namespace or lease:
        return f"for lease {escape(namespace or ANYWHERE)}/{escape(lease or ANYWHERE)}"
    return "for every lease that no override names"


def _settings(explained: Iterable[SettingSource], cap: Mode) -> Iterator[str]:
    shown = list(explained)
    for one, line in zip(shown, table([_row(one, cap) for one in shown]), strict=True):
        if one.layer not in (PRESET, BUILT_IN):
            yield style(line, bold=True)
        elif one.name != MODE or one.value == Mode.OFF:
            yield style(line, dim=True)
        else:
            yield line


def _row(one: SettingSource, cap: Mode) -> tuple[str, str, str]:
    layer = f"{one.layer} on {', '.join(one.operations)}" if one.operations else one.layer
    if one.name != MODE:
        return f"  {one.name}", str(one.value), layer
    mode = Mode(one.value)
    capped = min(mode, cap)
    return one.rule, f"{capped.word} (would deny)" if Mode.OFF < capped < mode is Mode.DENY else capped.word, layer


def _print(title: str, lines: Iterable[str]) -> None:
    print(f"\n{style(title, bold=True)}")
    for line in lines:
        print(line)
