"""`lease-webhook doctor`: says whether a webhook configuration is safe for the leases of a cluster."""

import datetime as dt
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import click
import msgspec

from webhook.admission.policy.file import PolicyFileError, load
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError
from webhook.analysis.claims.words import format_count
from webhook.analysis.inputs.cluster import NO_SUCH_KIND, Cluster, get_objects
from webhook.analysis.inputs.files import read_objects
from webhook.api_server.doctor.bindings import examine_bindings
from webhook.api_server.doctor.checks import Report, examine
from webhook.api_server.doctor.documents import LISTED_BESIDE, LISTED_KINDS, Documents, report_danger
from webhook.api_server.doctor.fences_and_stamps import (
    STAMP_LABEL,
    examine_fences,
    examine_stamps,
    find_labeled_namespaces,
)
from webhook.api_server.doctor.rules import examine_rules
from webhook.cli.absence import explain_emptiness
from webhook.cli.options import Command, complete_files, format_option, policy_option
from webhook.cli.reading import connection_options, print_unread_pipe, refuse_files, refuse_kubectl_options
from webhook.cli.terminal import Failure, encode_line, format_advice, indent, print_message, style, wrap_on_terminal
from webhook.findings import ReportFinding
from webhook.kubernetes.decoding_errors import explain_problem, split_path
from webhook.kubernetes.formats import MAX_NAME
from webhook.text.commands import quote_path
from webhook.text.quoting import escape, quote, truncate

_CONFIGURATIONS: Final = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
_MAX_NAMED: Final = 5
"""Namespaces that one line names."""

_DESCRIPTION: Final = """\
Reads webhook configurations and says, for each webhook that may be called for leases, what could go wrong and what to
change. Without --input, kubectl is run, with your own credentials. Nothing is changed, and no write is tried: whether
writes are reviewed is what `lease-webhook status` says.
"""
_EPILOG: Final = """\
Exit codes:
  0  safe
  1  something to change
  2  unreadable, or an input with nothing to examine

Examples:
  lease-webhook doctor
  lease-webhook doctor --policy policy.yaml     # and its policies
  kubectl kustomize deploy/overlays/self-signed |
    lease-webhook doctor --input -
"""


@click.command("doctor", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("words", metavar="", nargs=-1)
@click.option("--input", "path", metavar="FILE|-", help="instead of kubectl", shell_complete=complete_files)
@policy_option("the policy that should be in force, or a preset's name", metavar="FILE")
@connection_options
@format_option()
def command(*, words: tuple[str, ...], path: str | None, policy: str | None, cluster: Cluster, output: str) -> int:
    _refuse(words, path, cluster)
    now = dt.datetime.now(dt.UTC)
    if path is None:
        print_unread_pipe()
    found = _read_cluster(cluster) if path is None else _read_input(path)
    has_fences = any(policy or one.is_of_a_fence for one in found.fence_objects)
    is_about_webhooks = bool(found.configurations or found.rule_policies)
    if path is not None and not (is_about_webhooks or found.refused or has_fences):
        raise Failure("no ValidatingWebhookConfiguration in it; see `lease-webhook doctor --help` for where to get one")
    reports = [Report(kind, "", (_report_malformed(error),)) for kind, error in found.refused]
    in_force = _find_policy(policy, found)
    reports += examine_fences(found, in_force.fences if in_force else (), quote_path(policy or "policy.yaml"))
    if path is None and in_force is None and found.namespaces:
        print_message("the policy in force was not found, so it was not examined; --policy names its file")
    with suppress(Failure):
        installed = _find_policy(None, found) if path is None and policy else None
        if installed and in_force and installed.digest != in_force.digest:
            print_message("the ConfigMap in the cluster has another policy, which was not examined")
    unlisted: Sequence[str] = ()
    microseconds = round(now.timestamp() * 1e6)
    if in_force is None:
        unlisted = find_labeled_namespaces(found)
    else:
        reports += examine_stamps(found, in_force, microseconds)
        if in_force.stamps and not found.shows_policies:
            print_message("no admission policies were found, so it is not known whether stamps are in force")
    # Without a file the policy is that of the webhook, and the rules that are policies may be those of another.
    reports += examine_rules(found, in_force if policy else None, quote_path(policy or "policy.yaml"), microseconds)
    reports += examine_bindings(found, in_force.fences if in_force else ())
    if path is None or is_about_webhooks:
        reports += examine(found, in_force, now)
    for note in filter(None, (report.note for report in reports)):
        print_message(note)
    if output == "json":
        _print_json(reports)
    else:
        _print(reports, is_of_a_cluster=path is None)
    _print_unlisted(unlisted, output)
    return 1 if any(report.findings for report in reports) else 0


def _refuse(words: Sequence[str], path: str | None, cluster: Cluster) -> None:
    if path is not None:
        refuse_kubectl_options(cluster, "--input")
    refuse_files(words)
    if words:
        raise click.UsageError(
            f"{quote(truncate(words[0], MAX_NAME))} is not expected: doctor examines the cluster, or --input"
        )


def _read_input(path: str) -> Documents:
    values = [*read_objects(path)]
    if not values:
        raise Failure(f"no ValidatingWebhookConfiguration is in the input{explain_emptiness([path])}")
    return Documents(values)


def _read_cluster(cluster: Cluster) -> Documents:
    values = get_objects(cluster, _CONFIGURATIONS, command=f"kubectl get {_CONFIGURATIONS} -o json")
    if isinstance(values, str):
        raise Failure(f"the configurations cannot be read: {values}")
    unread: list[str] = []
    places = sorted(Documents(values).namespaces)
    beside = [(kinds, f"--namespace={one}") for one in places for kinds in ("configmaps", *LISTED_BESIDE)]
    for kinds, *words in [*((kinds,) for kinds in LISTED_KINDS), *beside]:
        found = get_objects(cluster, kinds, *words)
        if not isinstance(found, str):
            values += found
        elif NO_SUCH_KIND not in found:
            print_message(f"{kinds} were not read: {found}")
            unread += (LISTED_KINDS | LISTED_BESIDE).get(kinds, ())
    return Documents(values, unread)


def _report_malformed(error: msgspec.ValidationError) -> ReportFinding:
    problem, path = split_path(error)
    return report_danger(
        "malformed",
        f"{path or 'the document'}: {explain_problem(problem) or problem}",
        "the API server rejects this document, and an existing configuration stays unchanged.",
        "correct the field; kubectl explain validatingwebhookconfiguration.webhooks lists them.",
    )


def _find_policy(name_or_path: str | None, found: Documents) -> Policy | None:
    """Return the named policy, else the one in the same documents as the configurations."""
    try:
        if name_or_path is not None:
            return load(name_or_path)
        text = found.find_policy_text(found.namespaces)
        return None if text is None else parse(text)
    except (PolicyFileError, PolicyError) as error:
        raise Failure(f"policy: {error}") from error


def _print_unlisted(labeled: Sequence[str], output: str) -> None:
    """Say what is not known of namespaces with stamps where the policy is not known."""
    if not labeled:
        return
    names = ", ".join(_shorten_name(name) for name in labeled[:_MAX_NAMED])
    names += f" and {len(labeled) - _MAX_NAMED} more" if len(labeled) > _MAX_NAMED else ""
    text = (
        f"not known: whether the policy lists under `stamps` what is labeled {STAMP_LABEL}=required ({names}); where it"
        " does not, a webhook only warns of a steal. --policy names its file"
    )
    if output == "json":
        print_message(text)
    else:
        print(wrap_on_terminal(text, 2))


def _print(reports: Sequence[Report], *, is_of_a_cluster: bool) -> None:
    for report in reports:
        if not report.findings:
            continue
        title = ", ".join(_shorten_name(one) for one in (report.subject, report.webhook) if one)
        print(style(title, bold=True))
        for finding in report.findings:
            print(f"  {style(finding.check, fg='red')}  {escape(truncate(finding.place, 200))}")
            print(indent(f"risk: {escape(finding.message)}", 6))
            print(format_advice("fix:", escape(finding.fix), 6, 6))
        print()
    entries = [report for report in reports if report.webhook]
    fenced = sum(1 for report in reports if report.is_fence)
    total = sum(len(report.findings) for report in reports)
    examined = f"{format_count(len(entries), 'webhook entry', 'webhook entries')} that leases can reach"
    examined = f"{format_count(fenced, 'fence')}, {examined}" if fenced else examined
    if total:
        print(f"{style('not safe', fg='red')}: {format_count(total, 'finding')}; {examined}")
        return
    names = ", ".join(_shorten_name(report.webhook) for report in entries)
    tried = "; no write was tried: `lease-webhook status` tries one" if is_of_a_cluster and entries else ""
    print(f"{style('safe', fg='green')}: {examined}{f' ({names})' if names else ''}{tried}")


def _print_json(reports: Sequence[Report]) -> None:
    is_safe = not any(report.findings for report in reports)
    entries = [
        {
            "configuration": report.subject,
            "webhook": report.webhook,
            "findings": [
                {"check": one.check, "place": one.place, "risk": one.message, "fix": one.fix} for one in report.findings
            ],
        }
        for report in reports
    ]
    print(encode_line({"safe": is_safe, "entries": entries}))


def _shorten_name(name: str) -> str:
    return escape(truncate(name, MAX_NAME))
