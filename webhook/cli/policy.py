"""`lease-webhook policy`: whether a policy file is good, what applies to a lease and why, and the JSON Schema."""

import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

import click
from msgspec import UNSET, Struct, to_builtins

from webhook.api.text import escape
from webhook.cli.options import Command, files, format_option, policies
from webhook.cli.terminal import Failure, indent, json_line, style, table
from webhook.policy.explain import (
    BUILT_IN,
    PRESET,
    SettingSource,
    applying_to,
    conditions_text,
    explain,
    notes,
    operations_text,
    scope_text,
    subjects_text,
)
from webhook.policy.model import Policy
from webhook.policy.parse import EXEMPT_GROUPS, EXEMPT_USERS
from webhook.policy.schema import ANYWHERE, MODE, Exemption, LeaseBinding, json_schema_text, settings_of, until_of
from webhook.policy_file import DEFAULT_PRESET, PolicyFileError, load
from webhook.rules.registry import RULES
from webhook.rules.rule import Mode

_NONE: Final = "  none"


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
    numbers = (len(one) for one in (document.exempt, document.overrides, document.bindings, policy.fences))
    names = ("exemptions", "overrides", "bindings", "fences")
    counts = [f"{name}: {number}" for name, number in zip(names, numbers, strict=True) if number]
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
    print(json_schema_text(), end="")
    return 0


@click.command(
    "show",
    cls=Command,
    help="Shows the mode and the numbers of every rule, and the layer that set each: the preset, `rules`, or one "
    "of the `overrides`. Without --namespace and --lease: what applies everywhere.",
    epilog="Example:\n  lease-webhook policy show policy.yaml --namespace shop --lease checkout",
)
@click.argument("file", required=False, metavar="[NAME|FILE]", shell_complete=policies)
@click.option("--namespace", default="", metavar="N", help="for leases of this namespace")
@click.option("--lease", default="", metavar="L", help="for the lease, or candidate, of this name")
@format_option()
def show(file: str | None, namespace: str, lease: str, output: str) -> int:
    policy = load(file)
    if output == "json":
        print(json_line(_shown(policy, namespace, lease)))
        return 0
    print(style(escape(file or DEFAULT_PRESET), bold=True), _summary(policy), _scope(namespace, lease), sep="\n")
    explained = list(explain(policy, namespace, lease))
    for title, parity in (("What the API server checks too", True), ("What the API server lets through", False)):
        settings = [one for one in explained if _is_parity(one.rule) is parity]
        _print(title, _settings(settings, policy.mode))
    _print("Overrides", _overrides(policy, namespace, lease))
    _print("Identity bindings", _bindings(policy, namespace, lease))
    now = time.time_ns() // 1000
    _print("Exempt from what the API server lets through", _exemptions(policy, namespace, lease, now))
    return 0


def _shown(policy: Policy, namespace: str, lease: str) -> dict[str, Any]:
    """Return all that `show` prints, with the entries of the file as the file spells them."""
    document = policy.document
    return _head(policy) | {
        "namespace": namespace,
        "lease": lease,
        "settings": [
            {
                "rule": one.rule,
                "name": one.name,
                "value": Mode(one.value).word if one.name == MODE else one.value,
                "layer": one.layer,
            }
            for one in explain(policy, namespace, lease)
        ],
        "overrides": _as_spelled(applying_to(document.overrides, namespace, lease)),
        "bindings": _as_spelled(_bindings_of(policy, namespace, lease)),
        "exempt": _as_spelled(applying_to(document.exempt, namespace, lease)),
    }


def _as_spelled(entries: Iterable[tuple[int, Struct]]) -> list[dict[str, Any]]:
    return [{"position": position, **to_builtins(entry)} for position, entry in entries]


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


def _overrides(policy: Policy, namespace: str, lease: str) -> list[str]:
    rows = [
        (
            f"overrides[{position}]",
            escape(" ".join([scope_text(override), *filter(None, [operations_text(override)])])),
            ", ".join(dict.fromkeys(rule for rule, _ in settings_of(override.rules))),
        )
        for position, override in applying_to(policy.document.overrides, namespace, lease)
    ]
    return table(rows) or [_NONE]


def _bindings(policy: Policy, namespace: str, lease: str) -> list[str]:
    rows = [
        (f"bindings[{position}]", escape(f"{binding.namespace}/{binding.lease}"), escape(_binding(binding)))
        for position, binding in _bindings_of(policy, namespace, lease)
    ]
    return table(rows) or [f"{_NONE}: whoever has the rights may write as any holder"]


def _bindings_of(policy: Policy, namespace: str, lease: str) -> Iterator[tuple[int, LeaseBinding]]:
    for position, binding in enumerate(policy.document.bindings):
        if namespace in ("", binding.namespace) and lease in ("", binding.lease):
            yield position, binding


def _binding(binding: LeaseBinding) -> str:
    pod = "; a token without a pod is refused" if binding.require_pod else ""
    return f"{', '.join(binding.writers)} as {' or '.join(binding.holder)}{pod}"


def _exemptions(policy: Policy, namespace: str, lease: str, now: int) -> Iterator[str]:
    always = ", ".join([*EXEMPT_USERS, *(f"group {group}" for group in EXEMPT_GROUPS)])
    rows, details = [("always", f"{ANYWHERE}/{ANYWHERE}", always)], [[""]]
    for position, exemption in applying_to(policy.document.exempt, namespace, lease):
        rows.append((f"exempt[{position}]", escape(scope_text(exemption)), escape(subjects_text(exemption))))
        reason = f"{exemption.reason} ({exemption.owner}{_until(exemption, now)})"
        details.append([escape(conditions_text(exemption)), escape(reason)])
    for line, texts in zip(table(rows), details, strict=True):
        yield line
        yield from (indent(text, 6) for text in texts if text)


def _until(exemption: Exemption, now: int) -> str:
    if exemption.until is UNSET:
        return ""
    return f", {'ended with' if until_of(exemption) <= now else 'until'} {exemption.until}"


def _print(title: str, lines: Iterable[str]) -> None:
    print(f"\n{style(title, bold=True)}")
    for line in lines:
        print(line)


def _is_parity(rule: str) -> bool:
    return rule in RULES and RULES[rule].parity
