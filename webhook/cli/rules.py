"""`lease-webhook rules [ID]`: every rule with its mode in each preset, or one rule explained."""

import difflib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

import click
from msgspec import Struct
from msgspec.structs import asdict

from webhook.api.request import KIND_OF, Operation, Resource
from webhook.api.review import decode
from webhook.cli import json_text
from webhook.cli.arguments import format_option
from webhook.cli.failure import Failure
from webhook.cli.lazy_group import Command
from webhook.cli.terminal import indent, paint_for, table, width
from webhook.doctor import policy_fit
from webhook.policy.model import LeasePolicy
from webhook.policy.schema_types import RULE_IDS
from webhook.policy_file import load
from webhook.rules.election import guidance as election
from webhook.rules.events import Event
from webhook.rules.parity import guidance as parity
from webhook.rules.registry import OBJECT_TYPES, OFFLINE_RULES, RULES
from webhook.rules.rule import Guidance, Rule

PRESETS: Final = ("standard", "strict")
"""Those with modes of their own: observe warns where strict denies, and is standard elsewhere."""

GUIDANCE: Final[Mapping[str, Guidance]] = {**parity.GUIDANCE, **election.GUIDANCE}

_TYPES: Final = (
    "Every value must have the JSON type that the API says.\n\nA document of wrong types is read no further."
)


_NOT_SENT: Final = "; the shipped match condition keeps plain ones from the webhook, so {} has no effect on those"
_WITHOUT_EFFECT: Final = {
    policy_fit.AHEAD: _NOT_SENT.format(f"a deny_above_seconds below {policy_fit.SECONDS_NOT_SENT}"),
    policy_fit.BACKWARDS: _NOT_SENT.format("mode deny"),
}

EVERYWHERE: Final = "serve, check, replay"
OFFLINE: Final = "check, replay"
"""Which commands evaluate a rule."""


class Described(Struct, frozen=True):
    """A rule as it is described to people; `text` begins with its summary."""

    id: str
    kinds: str
    operations: str
    text: str
    source: str
    file: str
    renewals: str = ""
    runs: str = EVERYWHERE

    @property
    def summary(self) -> str:
        """The rule in one sentence."""
        return self.text.partition("\n")[0]


def _rule_ids(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in described() if name.startswith(incomplete)]


@click.command(
    "rules",
    cls=Command,
    help="Lists every rule, or explains one: what it says, why, and where it comes from.",
    epilog="Example:\n  lease-webhook rules takeover-before-expiry",
)
@click.argument("name", required=False, metavar="[ID]", shell_complete=_rule_ids)
@format_option("json prints one line per rule, markdown a table", ("text", "json", "markdown"))
def command(name: str | None, output: str) -> int:
    """Print the list or one rule."""
    chosen = None if name is None else _find(name)
    if output == "json":
        lines = [json_text.line(_as_json(rule)) for rule in ([chosen] if chosen else described().values())]
    elif chosen:
        lines = _explained(chosen)
    else:
        lines = markdown() if output == "markdown" else _listed()
    print("\n".join(lines))
    return 0


@cache
def described() -> dict[str, Described]:
    """Every rule that a verdict or a report may name."""
    found = [
        *map(_of_registry, RULES.values()),
        _without_rule(OBJECT_TYPES, _TYPES, "kubernetes/apimachinery pkg/runtime: the API server's own decoder"),
        *map(_of_set, OFFLINE_RULES.values()),
    ]
    return {rule.id: rule for rule in found}


def markdown() -> list[str]:
    """A table of all rules, as lines of Markdown."""
    head = ["| rule | on | summary | standard | strict |", "|---|---|---|---|---|"]
    cells = (
        (f"`{rule.id}`", _kinds(rule), rule.summary.replace("|", "\\|"), *_modes(rule.id))
        for rule in described().values()
    )
    return head + [f"| {' | '.join(row)} |" for row in cells]


def _kinds(rule: Described) -> str:
    return rule.kinds if rule.runs == EVERYWHERE else f"{rule.kinds}, in {rule.runs.replace(', ', ' and ')} only"


def _as_json(rule: Described) -> dict[str, Any]:
    return {
        "id": rule.id,
        "kinds": rule.kinds.split(", "),
        "operations": rule.operations.split(", "),
        "commands": rule.runs.split(", "),
        "modes": dict(zip(PRESETS, _modes(rule.id), strict=True)),
        "numbers": _limits(rule.id),
        "summary": rule.summary,
        "text": " ".join(rule.text.split()),
        "source": rule.source,
        **asdict(GUIDANCE[rule.id]),
    }


def _listed() -> list[str]:
    rows = [(rule.id, *_modes(rule.id), rule.summary) for rule in described().values()]
    note = "observe denies nothing: what strict would deny becomes a warning; the rest is as in standard."
    return [*table([("rule", *PRESETS, "summary"), *rows], by=0, columns=width()), "", *indent(note, 0).splitlines()]


def _explained(rule: Described) -> list[str]:
    paint = paint_for(sys.stdout)
    modes = ", ".join(f"{mode} in {preset}" for mode, preset in zip(_modes(rule.id), PRESETS, strict=True))
    facts = [("on", f"{rule.kinds}: {rule.operations}"), ("runs in", rule.runs), ("mode", modes)]
    facts += [("numbers", text) for text in [_numbers(rule.id)] if text]
    facts += [("renewals", rule.renewals)] if rule.renewals else []
    if rule.id in RULE_IDS:
        facts.append(("change it", f"in a policy file: rules: {{{rule.id}: {{mode: warn}}}}"))
    lines = [
        paint.bold(rule.id),
        indent(rule.summary, 2),
        "",
        *table([*facts, ("source", rule.source), ("file", rule.file)], columns=width()),
    ]
    for paragraph in filter(None, rule.text.partition("\n")[2].strip().split("\n\n")):
        lines += ["", indent(" ".join(paragraph.split()), 2)]
    guidance = GUIDANCE[rule.id]
    for title, text in (("Why", guidance.why), ("Who is affected", guidance.who), ("How to fix", guidance.fix)):
        lines += ["", indent(paint.bold(title), 2), indent(text, 4)]
    return lines


def _find(name: str) -> Described:
    if name in described():
        return described()[name]
    near = difflib.get_close_matches(name, described(), n=1)
    hint = f"did you mean {near[0]}?" if near else "`lease-webhook rules` lists them"
    raise Failure(f'there is no rule "{name}"; {hint}')


def _of_registry(rule: Rule) -> Described:
    text = inspect.cleandoc(rule.check.__doc__ or "")
    return Described(
        id=rule.id,
        kinds=", ".join(kind for resource, kind in KIND_OF.items() if resource in rule.resources),
        operations=", ".join(operation for operation in Operation if operation in rule.operations),
        text=text,
        source=rule.source,
        file=_file_of(rule.check),
        renewals=_renewals(rule),
    )


def _renewals(rule: Rule) -> str:
    if Resource.LEASES not in rule.resources or Operation.UPDATE not in rule.operations:
        return ""
    if Event.RENEWAL not in rule.events:
        return "not evaluated on a renewal"
    return f"evaluated on renewals too{_WITHOUT_EFFECT.get(rule.id, '')}"


def _without_rule(name: str, text: str, source: str) -> Described:
    operations = ", ".join((Operation.CREATE, Operation.UPDATE, Operation.DELETE))
    return Described(name, ", ".join(KIND_OF.values()), operations, text, source, _file_of(decode))


def _of_set(rule: Rule) -> Described:
    """A rule about a set of stored candidates: its docstring names its arguments."""
    text = inspect.cleandoc(rule.check.__doc__ or "").partition("\n\nArgs:")[0]
    kind = KIND_OF[Resource.LEASECANDIDATES]
    return Described(rule.id, kind, "a set of stored candidates", text, rule.source, _file_of(rule.check), runs=OFFLINE)


def _file_of(check: Callable[..., Any]) -> str:
    return f"{check.__module__.replace('.', '/')}.py"


def _modes(rule: str) -> Iterator[str]:
    for preset in PRESETS:
        modes = _policy(preset).modes
        yield modes[rule].word if rule in modes else "deny"


def _numbers(rule: str) -> str:
    return ", ".join(f"{name}: {value}" for name, value in _limits(rule).items())


def _limits(rule: str) -> dict[str, Any]:
    numbers = getattr(_policy(PRESETS[0]).limits, rule.replace("-", "_"), None)
    return asdict(numbers) if numbers else {}


@cache
def _policy(preset: str) -> LeasePolicy:
    return load(preset).default
