"""The pages of docs/rules, made from the rules, the presets and the recorded reviews."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from tests.recordings import recordings
from tools.docs.fields_page import make_anchor
from tools.docs.pages import DOCS
from tools.docs.upstream import describe_upstream
from webhook.admission.policy.file import load
from webhook.admission.policy.schema import RULE_IDS
from webhook.admission.rules.fields import list_fields
from webhook.admission.rules.limits import describe_numbers
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import EXEMPTIBLE, RULES
from webhook.admission.rules.rule import Rule
from webhook.cli.rules import (
    PRESETS,
    describe_renewals,
    describe_repair,
    find_file,
    format_kinds,
    format_operations,
    is_command,
    list_all_rules,
)
from webhook.kubernetes.request import Resource
from webhook.server.reviewer import respond

FOLDER: Final = DOCS / "rules"
_MARK: Final = "<!-- Written by `make docs` from webhook/admission/rules. Do not edit. -->"
_INTRODUCTION: Final = """# Rules

One page for each rule: what it checks, why, who is affected, how to fix the write, how to relax the rule.
`lease-webhook rules ID` prints most of a page in a terminal.

`standard` and `strict` are [presets](../policy.md#presets).
`observe` denies nothing: what `strict` would deny becomes a warning and an audit annotation; the rest is as in
`standard`.
A rule with two thresholds applies its mode above the upper one; above the lower one it only warns.
A [stamp](../glossary.md#words) is the time that the API server writes into `metadata.managedFields` when a write
changes `renewTime`."""
_PARITY: Final = """## What kube-apiserver checks too

Field rules, at parity with kube-apiserver. In a current cluster the API server refuses such a write itself, before it
calls the webhook; the rules serve `check` and older API servers. Exceptions follow the API reference, and an API server
stores what they deny: `candidate-lease-name-format`, and in v1alpha1 `candidate-strategies-unique` and, in part,
`candidate-preferred-strategies`.
No exemption applies to them. A policy cannot set the mode of `object-types`; the cap `mode` lowers it like the
others."""
_ELECTION: Final = "## What kube-apiserver lets through"


def make_rule_pages() -> dict[str, str]:
    """Return the text of each page by file name."""
    listed = list_all_rules()
    each = {f"{rule.id}.md": "\n".join(make_page(rule)) + "\n" for rule in listed.values()}
    return {"README.md": "\n".join(make_index(listed.values())) + "\n", **each}


def make_index(rules: Iterable[Rule]) -> Iterator[str]:
    """Yield the lines of the page that lists all rules."""
    listed = list(rules)
    yield from (_MARK, _INTRODUCTION, "", _PARITY, "")
    yield from make_table(rule for rule in listed if is_parity(rule.id))
    yield from ("", _ELECTION, "")
    yield from make_table(rule for rule in listed if not is_parity(rule.id))


def make_table(rules: Iterable[Rule]) -> Iterator[str]:
    """Yield the lines of a table with a link to each page."""
    yield "| rule | on | text | standard | strict |"
    yield "|---|---|---|---|---|"
    for rule in rules:
        summary = rule.summary.replace("|", "\\|")
        cells = (f"[`{rule.id}`]({rule.id}.md)", format_kinds(rule), summary, *find_modes(rule.id))
        yield f"| {' | '.join(cells)} |"


def make_page(rule: Rule) -> Iterator[str]:
    """Yield the lines of the page of one rule."""
    yield from (_MARK, f"# {rule.id}", "", rule.summary)
    for paragraph in rule.details:
        yield from ("", paragraph)
    yield from ("", "| | |", "|---|---|", f"| evaluated on | {format_kinds(rule)}: {format_operations(rule)} |")
    both = zip(find_modes(rule.id), PRESETS, strict=True)
    yield f"| mode | {', '.join(f'`{mode}` in `{preset}`' for mode, preset in both)} |"
    if rule.limits:
        numbers = (f"`{number}`: {meaning}" for number, meaning in describe_numbers(rule.limits).items())
        yield f"| numbers | {'<br>'.join(numbers)} |"
    if describe_renewals(rule):
        plain = ", [plain ones](../renewals.md)" if "plain ones" in describe_renewals(rule) else ""
        yield f"| renewals | {describe_renewals(rule)} ([`Event.RENEWAL`](../glossary.md#the-three-renewals){plain}) |"
    if linked := link_fields(rule):
        yield f"| fields | {linked} |"
    yield f"| does the API server refuse it? | {describe_upstream(rule)} |"
    yield f"| source | {rule.texts.source} |"
    yield f"| code | `{find_file(rule)}` |"
    yield from ("", "## Why", "", rule.texts.why)
    yield from ("", "## Who is affected", "", rule.texts.who)
    if rule.id in find_texts():
        yield from ("", "What the writer sees (from a recorded review):", "", "```", find_texts()[rule.id], "```")
    yield from ("", "## How to fix", "", rule.texts.fix)
    if repair := describe_repair(rule):
        shown = ("```sh needs=cluster", repair, "```") if is_command(repair) else (repair,)
        yield from ("", "A stored object:", "", *shown)
    yield from ("", "## How to relax", "", *list_relaxations(rule.id))


def link_fields(rule: Rule) -> str:
    """Return the fields that a rule reads, each with a link to its row."""
    return ", ".join(f"[`{field.path}`](../fields.md#{make_anchor(field)})" for field in list_fields(rule))


def list_relaxations(rule: str) -> Iterator[str]:
    """Yield the possible changes of a rule by a policy."""
    if rule not in RULE_IDS:
        lowering = "[`observe`](../policy.md#presets) and the [kill switch](../operate.md#kill-switch)"
        yield f"A policy cannot set the mode of this rule. Only the cap `mode` lowers it, as {lowering} do."
        return
    yield "In the [policy file](../policy.md), for every lease:"
    yield from ("", "```yaml", "rules:", f"  {rule}: {{mode: {find_lower_mode(rule)}}}")
    for name, value in find_numbers(rule).items():
        yield f"  # {rule}: {{{name}: {value}}}  # the default"
    yield "```"
    yield from ("", "For some leases only:", "", "```yaml", "overrides:")
    yield from (
        "- namespaces: [legacy]",
        '  leases: ["batch-*"]',
        f"  rules: {{{rule}: {{mode: {find_lower_mode(rule)}}}}}",
        "```",
    )
    if Resource.LEASECANDIDATES in RULES[rule].resources:
        yield from ("", "A LeaseCandidate counts under the lease that it names, not under its own name.")
    if rule in EXEMPTIBLE:
        yield from ("", "For one writer, with an end:", "", "```yaml", "exempt:", "- service_accounts: [shop/deployer]")
        yield from (f"  rules: [{rule}]", "  owner: shop team", "  reason: why", "  until: 2027-01-31", "```")
    else:
        field_rule = "to a [field rule](../glossary.md#words)"
        why = field_rule if is_parity(rule) else "to this rule: it protects every reader of the object"
        yield from ("", f"No exemption applies {why}.")


def find_lower_mode(rule: str) -> str:
    """Return a mode below that of the strictest preset, and not above that of the default one."""
    default, *_, strictest = (Mode[word.upper()] for word in find_modes(rule))
    return min(Mode(strictest - 1), default).word if default else Mode(strictest - 1).word


def is_parity(rule: str) -> bool:
    """Return whether a rule repeats the API server's own validation."""
    return rule not in RULE_IDS or (rule in RULES and RULES[rule].parity)


def find_modes(rule: str) -> list[str]:
    """Return the mode in each of PRESETS."""
    found = (load(preset).default.modes for preset in PRESETS)
    return [each[rule].word if rule in each else "deny" for each in found]


def find_numbers(rule: str) -> dict[str, int]:
    """Return the numbers of a rule, with their defaults."""
    return load(PRESETS[0]).default.numbers(rule)


@cache
def find_texts() -> Mapping[str, str]:
    """Return for each rule with findings in the recordings the text that the first writer sees in strict."""
    policy = load("strict")
    found: dict[str, str] = {}
    for recording in recordings():
        verdict = respond(recording.body_without_exemption(), policy, recording.received).verdict
        if verdict is None:
            continue
        for cause in verdict.causes:
            named = re.search(r"\(lease webhook, rules? ([^)]*?)(?:, see [^)]*)?\)$", cause.message)
            for rule in named[1].split(", ") if named else ():
                found.setdefault(rule, f"{cause.field}: {cause.message}")
    for recording in recordings():
        verdict = respond(recording.body_without_exemption(), policy, recording.received).verdict
        for warning in verdict.warnings if verdict else ():
            found.setdefault(re.split(r"[ :,(]", warning, maxsplit=1)[0], f"Warning: {warning}")
    return found
