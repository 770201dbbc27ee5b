"""`lease-webhook rules [ID]`: every rule with its mode in each preset, or one rule explained."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Any, Final

import click

from webhook.admission.policy.file import load
from webhook.admission.policy.model import LeasePolicy
from webhook.admission.policy.schema import RULE_IDS
from webhook.admission.rules.change import Event
from webhook.admission.rules.fields import list_fields
from webhook.admission.rules.limits import describe_numbers
from webhook.admission.rules.registry import ALL_RULES, RULES
from webhook.admission.rules.rule import Rule
from webhook.api_server.rule_policies import is_refused_upstream
from webhook.cli.checking.problems import NOT_RULES
from webhook.cli.options import Command
from webhook.cli.reference import entry_options, find_entry, format_section, print_json
from webhook.cli.terminal import encode_line, format_table, indent, measure_width, style
from webhook.kubernetes.request import KIND_OF, Operation, Resource
from webhook.text.commands import fill_in

PRESETS: Final = ("standard", "strict")
"""The presets with modes of their own: observe warns where strict denies, and is standard elsewhere."""

REFUSED_UPSTREAM: Final = "a current API server refuses the same before it calls a webhook: the rule serves `check`"

_WIDE: Final = 100
"""Columns of a terminal on which a summary stands next to the modes: on fewer it would be a column of three words."""
_LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")
"""A link of Markdown in a text that is also a page."""
_NOT_SENT: Final = "; the shipped match condition keeps plain ones from the webhook, so {} has no effect on those"


def format_kinds(rule: Rule) -> str:
    return ", ".join(kind for resource, kind in KIND_OF.items() if resource in rule.resources)


def format_operations(rule: Rule) -> str:
    return ", ".join(operation for operation in Operation if operation in rule.operations)


def find_file(rule: Rule) -> str:
    return f"{rule.check.__module__.replace('.', '/')}.py"


def describe_renewals(rule: Rule) -> str:
    """Return a note about renewals, "" if the rule is not about updates of leases."""
    if Resource.LEASES not in rule.resources or Operation.UPDATE not in rule.operations:
        return ""
    if Event.RENEWAL not in rule.events:
        return "not evaluated on a renewal"
    setting = rule.without_effect
    return f"evaluated on renewals too{_NOT_SENT.format(setting) if setting else ''}"


def describe_repair(rule: Rule) -> str:
    """Return how to fix a stored object, a command or a sentence; "" if one alone cannot break the rule."""
    repair = fill_in(rule.repair, "NAMESPACE", "NAME")
    return repair if not repair or is_command(repair) else f"{repair[0].upper()}{repair[1:]}."


def is_command(repair: str) -> bool:
    """Return whether a repair is a command, and no sentence."""
    return repair.startswith("kubectl ")


def list_all_rules() -> dict[str, Rule]:
    """Return every rule that a verdict or a report may name."""
    return ALL_RULES


@click.command(
    "rules",
    cls=Command,
    help="Lists every rule, or explains one: what it says, why, and where it comes from.",
    epilog="Example:\n  lease-webhook rules takeover-before-expiry",
)
@entry_options("rule", list_all_rules)
def command(name: str | None, output: str) -> int:
    if name in NOT_RULES:
        text = f"{NOT_RULES[name]} `check` reports it, whatever the policy says."
        print(encode_line({"id": name, "summary": text}) if output == "json" else f"{style(name, bold=True)}\n  {text}")
        return 0
    chosen = None if name is None else find_entry(list_all_rules(), name, "rule")
    if output == "json":
        print_json([chosen] if chosen else list_all_rules().values(), make_rule_json)
    else:
        print("\n".join(_explain(chosen) if chosen else _list_all()))
    return 0


def make_rule_json(rule: Rule) -> dict[str, Any]:
    """Return a rule with its texts as a JSON object."""
    return {
        "id": rule.id,
        "kinds": format_kinds(rule).split(", "),
        "operations": format_operations(rule).split(", "),
        "modes": dict(zip(PRESETS, _find_modes(rule.id), strict=True)),
        "numbers": _find_limits(rule.id),
        "fields": [field.path for field in list_fields(rule)],
        "summary": rule.summary,
        "text": " ".join((rule.summary, *rule.details)),
        "source": rule.texts.source,
        "why": rule.texts.why,
        "who": rule.texts.who,
        "fix": rule.texts.fix,
        "stored": describe_repair(rule),
    }


def _list_all() -> list[str]:
    rows = [(one.id, *_find_modes(one.id), one.summary) for one in list_all_rules().values()]
    note = "observe denies nothing: what strict would deny becomes a warning; the rest is as in standard."
    lines = list(format_table([("rule", *PRESETS, "summary"), *rows], by=0, columns=measure_width()))
    if measure_width() < _WIDE:
        head, *modes = format_table([("rule", *PRESETS), *(row[:-1] for row in rows)], by=0)
        below = (indent(row[-1], 2) for row in rows)
        lines = [head, *chain.from_iterable(zip(modes, below, strict=True))]
    return [
        *lines,
        "",
        *indent(note, 0).splitlines(),
    ]


def _explain(rule: Rule) -> list[str]:
    modes = ", ".join(f"{mode} in {preset}" for mode, preset in zip(_find_modes(rule.id), PRESETS, strict=True))
    facts = [("on", f"{format_kinds(rule)}: {format_operations(rule)}"), ("mode", modes)]
    if rule.limits is not None:
        numbers = describe_numbers(rule.limits).items()
        facts.append(("numbers", "; ".join(f"{number} ({meaning})" for number, meaning in numbers)))
    facts += [("renewals", note)] if (note := describe_renewals(rule)) else []
    facts += [("fields", ", ".join(field.path for field in list_fields(rule)))] if rule in RULES.values() else []
    facts += [("upstream", REFUSED_UPSTREAM)] if is_refused_upstream(rule) else []
    if rule.id in RULE_IDS:
        facts.append(("change it", f"in a policy file: rules: {{{rule.id}: {{mode: warn}}}}"))
    lines = [
        style(rule.id, bold=True),
        indent(rule.summary, 2),
        "",
        *format_table([*facts, ("source", rule.texts.source), ("file", find_file(rule))], columns=measure_width()),
    ]
    for paragraph in rule.details:
        lines += ["", indent(_drop_links(paragraph), 2)]
    sections = {"Why": rule.texts.why, "Who is affected": rule.texts.who, "How to fix": rule.texts.fix}
    for title, text in sections.items():
        lines += format_section(title, _drop_links(text))
    if repair := describe_repair(rule):
        lines += format_section("How to fix a stored object", repair, is_command=is_command(repair))
    return lines


def _drop_links(text: str) -> str:
    """Return a text with the words of its links alone: a terminal opens none."""
    return _LINK.sub(r"\1", text)


def _find_modes(rule: str) -> Iterator[str]:
    for preset in PRESETS:
        modes = _load_policy(preset).modes
        yield modes[rule].word if rule in modes else "deny"


def _find_limits(rule: str) -> dict[str, Any]:
    return _load_policy(PRESETS[0]).numbers(rule)


@cache
def _load_policy(preset: str) -> LeasePolicy:
    return load(preset).default
