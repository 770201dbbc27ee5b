"""`lease-webhook doctor`: says whether a webhook configuration is safe for the leases of a cluster."""

import datetime as dt
import sys
from collections.abc import Iterator, Sequence
from typing import Final

import click
import msgspec

from webhook.api.decoder_messages import located, reworded
from webhook.api.formats import LONGEST_NAME
from webhook.api.text import cut, escape
from webhook.cli import json_text, object_stream
from webhook.cli.arguments import files, format_option, policy_option, server
from webhook.cli.failure import Failure
from webhook.cli.lazy_group import Command
from webhook.cli.report_format import REPORTS, document
from webhook.cli.terminal import indent, paint_for
from webhook.doctor import configuration, fence_documents, fences, handshake, surroundings
from webhook.doctor.certificate import Served
from webhook.doctor.configuration import Configuration, Webhook
from webhook.doctor.diagnosis import Diagnosis
from webhook.doctor.documents import Document, webhook_configurations
from webhook.doctor.examine import Report, examine
from webhook.doctor.handshake import Unreachable
from webhook.policy.error import PolicyError
from webhook.policy.model import Policy
from webhook.policy.parse import parse
from webhook.policy_file import PolicyFileError, load
from webhook.reports.model import Finding, Location, Severity, Subject

_KINDS: Final = (*surroundings.KINDS, *fence_documents.KINDS)
SAFE: Final = 0
FINDINGS: Final = 1

_DESCRIPTION: Final = """\
Reads webhook configurations from a file or from the output of kubectl and says, for each webhook that may be called
for leases, what could go wrong and what to change. It needs no cluster and changes nothing.
"""
_EPILOG: Final = """\
Exit codes:
  0  safe
  1  something to change
  2  unreadable, or no webhook configuration in it

Examples:
  kubectl kustomize deploy/overlays/self-signed | lease-webhook doctor
  kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml |
    lease-webhook doctor
  lease-webhook doctor rendered.yaml --policy policy.yaml
  kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings -o yaml |
    lease-webhook doctor --policy policy.yaml     # and its fences; docs/fence.md says more
  lease-webhook doctor rendered.yaml --endpoint 127.0.0.1:8443     # and the certificate there
"""


@click.command("doctor", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("file", default="-", metavar="[FILE]", shell_complete=files)
@policy_option("the policy that should be in force, or a preset's name", metavar="FILE")
@click.option("--endpoint", type=server, metavar="HOST:PORT", help="a running webhook to check as well")
@format_option("json prints one line", ("text", "json", *REPORTS))
def command(*, file: str, policy: str | None, endpoint: tuple[str, int] | None, output: str) -> int:
    """Examine one text; raises Failure."""
    now = dt.datetime.now(dt.UTC)
    found = list(_objects(file))
    around = fence_documents.fence_documents(found)
    configurations, reports = _configurations(
        found, required=not (around.has_own_fences or (policy and around.has_fences))
    )
    in_force = _policy(policy, found, configurations)
    reports += fences.examine_fences(around, in_force.fences if in_force else ())

    def served_at(webhook: Webhook) -> Served | None:
        if endpoint is None:
            return surroundings.served_in(found, webhook)
        host, port = endpoint
        return handshake.inspect_endpoint(host, port, webhook.client_config)

    labels = surroundings.namespace_labels(found)
    unreachable: Unreachable | None = None
    try:
        examined = list(examine(configurations, served_at, in_force, now, labels)) if configurations else []
    except Unreachable as problem:
        # The configuration can be wrong as well, and may be the reason why the endpoint does not answer.
        unreachable = problem
        examined = list(examine(configurations, lambda one: surroundings.served_in(found, one), in_force, now, labels))
    choices = [choice for one in configurations for choice in one.choices]
    reports += examined
    if output in REPORTS:
        print(document("doctor", [_subject(file, report) for report in reports], output))
        code = FINDINGS if any(report.diagnoses for report in reports) else SAFE
    else:
        code = (_print_json if output == "json" else _print)(reports, choices)
    if unreachable:
        raise Failure(str(unreachable)) from unreachable
    return code


def _configurations(found: Sequence[Document], *, required: bool) -> tuple[list[Configuration], list[Report]]:
    """The configurations, and a report for each document that the API server would refuse."""
    documents = webhook_configurations(found)
    if not documents and required:
        raise Failure("no ValidatingWebhookConfiguration in it; see `lease-webhook doctor --help` for where to get one")
    configurations: list[Configuration] = []
    refused: list[Report] = []
    for one in documents:
        try:
            configurations.append(configuration.read(one))
        except msgspec.ValidationError as error:
            refused.append(Report(str(one.get("kind")), "", (_malformed(error),)))
    return configurations, refused


def _malformed(error: msgspec.ValidationError) -> Diagnosis:
    problem, path = located(error)
    return Diagnosis(
        "malformed",
        f"{path or 'the document'}: {reworded(problem) or problem}",
        "the API server rejects this document, and an existing configuration stays unchanged.",
        "correct the field; kubectl explain validatingwebhookconfiguration.webhooks lists them.",
    )


def _policy(
    name_or_path: str | None, found: Sequence[Document], configurations: Sequence[Configuration]
) -> Policy | None:
    """The named policy, else the one in the same documents as the configurations."""
    try:
        if name_or_path is not None:
            return load(name_or_path)
        webhooks = (webhook for one in configurations for webhook in one.webhooks or ())
        services = (webhook.client_config.service for webhook in webhooks)
        text = surroundings.policy_text(found, (service.namespace for service in services if service))
        return None if text is None else parse(text)
    except (PolicyFileError, PolicyError) as error:
        raise Failure(f"policy: {error}") from error


def _print(reports: Sequence[Report], choices: Sequence[str]) -> int:
    paint = paint_for(sys.stdout)
    for report in reports:
        if not report.diagnoses:
            continue
        print(paint.bold(_title(report)))
        for diagnosis in report.diagnoses:
            print(f"  {paint.red(diagnosis.check)}  {escape(cut(diagnosis.place, 200))}")
            print(indent(f"risk: {escape(diagnosis.risk)}", 6))
            print(indent(f"change: {escape(diagnosis.cure)}", 6))
        print()
    entries = [report for report in reports if report.webhook]
    fenced = sum(report.is_fence for report in reports)
    total = sum(len(report.diagnoses) for report in reports)
    examined = f"{_count(len(entries), 'webhook entry', 'webhook entries')} that leases can reach"
    if fenced:
        examined = f"{_count(fenced, 'fence', 'fences')}, {examined}"
    if total:
        print(f"{paint.red('not safe')}: {_count(total, 'finding', 'findings')}; {examined}")
        return FINDINGS
    names = ", ".join(_name(report.webhook) for report in entries)
    print(f"{paint.green('safe')}: {examined}{f' ({names})' if names else ''}")
    for choice in choices:
        print(f"chosen: {escape(choice)} reviewed")
    return SAFE


def _print_json(reports: Sequence[Report], choices: Sequence[str]) -> int:
    is_safe = not any(report.diagnoses for report in reports)
    entries = [
        {
            "configuration": report.subject,
            "webhook": report.webhook,
            "findings": [
                {"check": one.check, "place": one.place, "risk": one.risk, "change": one.cure}
                for one in report.diagnoses
            ],
        }
        for report in reports
    ]
    print(json_text.line({"safe": is_safe, "entries": entries, "chosen": choices}))
    return SAFE if is_safe else FINDINGS


def _subject(file: str, report: Report) -> Subject:
    diagnoses = (
        Finding(one.check, Severity.ERROR, f"{cut(one.place, 200)}: {one.risk}", one.cure) for one in report.diagnoses
    )
    return Subject(_title(report), Location(file), tuple(diagnoses))


def _title(report: Report) -> str:
    return ", ".join(_name(one) for one in (report.subject, report.webhook) if one)


def _name(name: str) -> str:
    return escape(cut(name, LONGEST_NAME))


def _count(number: int, singular: str, plural: str) -> str:
    return f"{number} {singular if number == 1 else plural}"


def _objects(path: str) -> Iterator[Document]:
    """What the examination needs of a file; raises Failure."""
    return (one for one in object_stream.read(path) if one.get("kind") in _KINDS or "serverVersion" in one)
