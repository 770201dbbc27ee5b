"""`lease-webhook why`: who leads, since when, why the leader changed, and what to do."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import click
from msgspec import to_builtins
from msgspec.structs import replace

from webhook.admission.policy.file import load
from webhook.analysis.audit.registry import OUTAGE
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account, make_account_of_state
from webhook.analysis.claims.claim import Advice, Claim
from webhook.analysis.claims.diagnosis import Blame
from webhook.analysis.claims.evidence.silent_holders.silences import MAX_OF_A_KIND
from webhook.analysis.claims.findings.headline import is_ongoing_silence, is_silence_in_headline, make_headline
from webhook.analysis.claims.findings.incidents import may_lack_thefts
from webhook.analysis.claims.findings.ongoing import describe_earlier, describe_end
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.advice_by_state.on_findings import LOSSES
from webhook.analysis.claims.presentation.advise import RISKS
from webhook.analysis.claims.presentation.happened import MAX_EVENTS, list_events, list_latest
from webhook.analysis.claims.presentation.text import Line, list_facts, quote_events
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.analysis.claims.words import format_count
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.stored_leases import Key
from webhook.analysis.inputs import cluster as clusters
from webhook.analysis.inputs.cluster import Cluster
from webhook.analysis.rights import Rights
from webhook.cli import reading
from webhook.cli.absence import choose_lease, name_source, refuse_absence, suggest_name
from webhook.cli.grants import WRITERS_HELP, format_rights, read_access, refuse_writers
from webhook.cli.lease_table import COLUMNS, SEVERITY_COLORS, STATE_COLORS, WIDE, format_heading, make_row
from webhook.cli.options import Command, format_option, parse_lease, parse_moment
from webhook.cli.progress import Progress
from webhook.cli.selection import Selection, selection_options
from webhook.cli.tables import print_table
from webhook.cli.terminal import Failure, encode_line, format_advice, indent, measure_width, print_message, style
from webhook.cli.watching import watch_all, watch_one
from webhook.findings import ORDER, ReportFinding, Severity
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND
from webhook.text import yaml_writer
from webhook.text.identities import make_shortener
from webhook.text.quoting import escape

_DESCRIPTION = """\
Shows who holds a lease and since when, when the API server saw the last renewal, how the holder changed, for how long
no one led, and whether the API server or the holder was the cause. Without a name it lists all leases.

The input is anything that shows leases: kubectl get -o json or yaml, a watch, the audit log of the API server (also
rotated and gzipped), reviews that the webhook captured. A watch or a log has a history; a dump shows only the present.
Without --input, kubectl is run with your own credentials.
"""

_EPILOG = """\
Examples:
  kubectl lease why shop/checkout
  kubectl lease why -w shop/checkout    # as it goes on
  kubectl get leases -A -o json --show-managed-fields |
    lease-webhook why --input -
  # watch for a while, stop it, then run the second command
  kubectl get leases -A -w -o json --output-watch-events \\
    --show-managed-fields > leases.json
  lease-webhook why shop/checkout --input leases.json
  lease-webhook why shop/checkout --input /var/log/kubernetes/audit

Exit codes: 0 the lease was found, 2 it was not, or nothing could be read.
"""

_MOMENT: Final = "A list has no history. To keep one from now on: lease-webhook record history (docs/record.md)"
FORMATS: Final = ("text", "wide", "json", "yaml", "name")
_ORDER: Final = "worst unless given; without it, json, yaml and name are sorted by name"
_HEADLINES: Final = frozenset(
    {"expired", "abandoned", "election-stalled", "not-taken-up", "heartbeat-silent", "object-types"}
)
"""Findings that the headline says."""
_OF_HOLDERS: Final = frozenset(
    {"lease-stolen", "lease-contended", "leader-lost", "foreign-release", "holder-removed", "lease-deleted"}
)
"""Findings of changes of the holder, of which only the latest `MAX_OF_A_KIND` changes are examined."""
_MAX_ALIKE: Final = 3
"""The findings of one kind that --verbose shows; all are in JSON."""
_LABEL: Final = 16
"""Columns of a label."""


@click.command("why", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@reading.lease_and_inputs
@click.option("--now", type=parse_moment, metavar="RFC3339", help="decide what has expired as of this time")
@reading.stamps_and_numbers_option
@reading.cluster_and_input_options
@selection_options(_ORDER)
@click.option("-w", "--watch", is_flag=True, help="show it in the terminal, drawn again each second")
@click.option("--writers", is_flag=True, help=f"for one lease: {WRITERS_HELP}")
@click.option("-v", "--verbose", is_flag=True, help="print every fact that is known, and the latest 16 events")
@format_option("wide: every column, in full; json: a line for each lease; name: NAMESPACE/NAME", FORMATS)
def command(
    *,
    leases: tuple[str, ...],
    inputs: tuple[str, ...],
    now: int | None,
    policy: str | None,
    cluster: Cluster,
    selection: Selection,
    watch: bool,
    writers: bool,
    verbose: bool,
    output: str,
) -> int:
    lease = reading.find_named_lease(leases)
    key = None if lease is None else parse_lease(lease, cluster.namespace)
    cluster = _narrow_cluster(cluster, key, selection)
    _refuse_verbose(is_of_all=verbose and key is None)
    if watch:
        if inputs or now is not None or writers or output != "text":
            raise click.UsageError("--watch shows a cluster as it is now: no --input, --now, --writers and --format")
        return _watch(cluster, key, selection, policy, verbose=verbose)
    if writers:
        refuse_writers(inputs, is_listed=key is None or output == "name")
    progress = Progress()
    histories = _read_history(inputs, cluster, policy, progress)
    as_of = _find_evaluation_time(histories, now, inputs)
    if key is None:
        _print_hidden_stamps(histories, None)
        _print_all(histories, reading.find_namespace(cluster), as_of, selection, output, progress)
        return progress.exit_code(0)
    history = _find_lease(histories, key, inputs, cluster, progress)
    _print_hidden_stamps(histories, history)
    for item in () if inputs else clusters.list_lease_events(cluster, history.namespace, history.name):
        histories.add(item)
    access = read_access(inputs, cluster, history.namespace) if writers else None
    rights = access.find_rights(history.namespace, history.name) if access else None
    account = make_account(histories, history, as_of.at, as_of.seen_until)
    _print_one(account, as_of, rights, output, verbose=verbose)
    return progress.exit_code(0)


def _refuse_verbose(*, is_of_all: bool) -> None:
    if is_of_all:
        raise click.UsageError("--verbose is for one lease: name it; --format wide shows every column for all leases")


def _watch(cluster: Cluster, key: Key | None, selection: Selection, policy: str | None, *, verbose: bool) -> int:
    """Show one lease, or all of them, until the command is ended."""
    if key is None:
        return watch_all(cluster, selection, policy, reading.find_namespace(cluster))
    return watch_one(cluster, key, policy, lambda one, as_of: [*_format_account(one, as_of, verbose=verbose)])


def _find_evaluation_time(histories: ClusterHistory, now: int | None, inputs: Sequence[str]) -> reading.EvaluationTime:
    """Return when the input is evaluated; the history is told if it may be a list that is older than its file."""
    bounds = histories.bounds
    bounds.is_over = reading.is_over(now, inputs, histories)
    as_of = reading.find_evaluation_time(now, inputs, bounds.until, bounds.shown)
    if inputs and now is None and bounds.until is None:
        times = (at for at, _ in histories.stored.list_last_renewals())
        bounds.may_be_older = reading.print_doubt_of_list(as_of, times)
    return as_of


def _print_one(
    account: Account, as_of: reading.EvaluationTime, rights: Rights | None, output: str, *, verbose: bool
) -> None:
    """Print one lease, and who may write it if that is known."""
    if output not in {"text", "wide"}:
        print(_format_for_program(account, output, rights))
        return
    print("\n".join(_format_account(account, as_of, verbose=verbose or output == "wide")))
    if rights:
        print(f"\n{style('Who may write it', bold=True)}")
        print("\n".join(format_rights(rights, account.history.namespace, account.history.name)))


def _format_for_program(account: Account, output: str, rights: Rights | None = None) -> str:
    """Return an account for a program."""
    if output == "name":
        return escape(f"{account.history.namespace}/{account.history.name}")
    document = make_account_json(account) | ({"rights": to_builtins(rights)} if rights else {})
    return encode_line(document) if output == "json" else yaml_writer.write_stream([document]).rstrip("\n")


def _narrow_cluster(cluster: Cluster, key: Key | None, selection: Selection) -> Cluster:
    """Return the cluster with the namespaces to look in: of one lease its own, whose leases it is compared with."""
    if key is None:
        return reading.widen_to_all_namespaces(cluster)
    if not selection.is_everything:
        raise click.UsageError("--state, --check and --selector are for the list of all leases")
    return cluster if cluster.all_namespaces else replace(cluster, namespace=key[0] or cluster.namespace)


def _read_history(inputs: Sequence[str], cluster: Cluster, policy: str | None, progress: Progress) -> ClusterHistory:
    in_force = load(policy) if policy else None
    histories = reading.make_cluster_history(in_force)
    progress.count = lambda: histories.lease_count
    for item in reading.read_for_history(inputs, cluster, policy, progress=progress):
        histories.add(item)
    if not histories.lease_count:
        raise refuse_absence("no lease", inputs, progress, cluster)
    return histories


def _print_hidden_stamps(histories: ClusterHistory, history: LeaseHistory | None) -> None:
    """Say that only holders' clocks date renewals, unless the one lease that is asked for is never renewed."""
    if histories.hides_stamps and (history is None or history.is_ever_renewed):
        print_message(reading.HIDDEN_STAMPS)


def _find_lease(
    histories: ClusterHistory, wanted: Key, inputs: Sequence[str], cluster: Cluster, progress: Progress
) -> LeaseHistory:
    is_whole = inputs or cluster.all_namespaces or wanted[0]
    instead = "" if is_whole else "-A looks in all namespaces"
    try:
        chosen = choose_lease(*wanted, histories.names(), name_source(inputs, cluster), instead)
    except Failure as problem:
        raise progress.refuse(problem) from None
    return histories.get_history(chosen)


def _print_all(
    histories: ClusterHistory,
    namespace: str,
    as_of: reading.EvaluationTime,
    selection: Selection,
    output: str,
    progress: Progress,
) -> None:
    is_table, is_wide = output in {"text", "wide"}, output == "wide"
    # A table is sorted by its rows.
    known = histories.list_keys_unsorted() if is_table else histories.names()
    names = [key for key in known if namespace in ("", key[0])]
    if not names:
        hint = suggest_name(namespace, {space: space for space, _ in known})
        # Of a cluster, only this namespace was listed.
        raise progress.refuse(Failure(f"no lease of namespace {namespace} is in the input{hint}"))
    accounts = select_accounts(histories, progress.track(names, "leases"), as_of, selection, is_row=is_table)
    if not is_table:
        _write_all(accounts, selection, output)
        return
    rows = [make_row(account, is_wide=is_wide) for account in accounts]
    print(format_heading(rows) if selection.is_everything else f"{len(rows)} of {format_count(len(names), 'lease')}")
    columns = (*COLUMNS, *WIDE) if is_wide else COLUMNS
    if rows:
        print_table(columns, [row.cells for row in selection.sort(rows)], is_wide=is_wide)
    print(as_of.text)


def _write_all(accounts: Iterator[Account], selection: Selection, output: str) -> None:
    """Write leases for a program: in the order of their names, each as soon as it is known, or as it is asked for."""
    if selection.order in {"", "name"}:
        for account in accounts:
            print(_format_for_program(account, output))
        return
    rows, texts = [], {}
    for account in accounts:
        row = make_row(account)
        rows.append(row)
        texts[row.key] = _format_for_program(account, output)
    for row in selection.sort(rows):
        print(texts[row.key])


def select_accounts(
    histories: ClusterHistory,
    names: Iterable[Key],
    as_of: reading.EvaluationTime,
    selection: Selection,
    *,
    is_row: bool = False,
) -> Iterator[Account]:
    """Yield the accounts of those leases that are asked for; `is_row`: with no more than a row shows of them."""
    least = Severity.INFO if selection.checks else Severity.WARNING
    for key in names:
        account: Account | None = None
        if is_row and (state := histories.stored.get(key)):
            # A row shows no more of what only a list shows, which has no history.
            lease = state.object if isinstance(state.object, Lease) else None
            account = (
                make_account_of_state(histories, key, state, as_of.at, least) if selection.has_labels(lease) else None
            )
        else:
            history = histories.get_history(key)
            if selection.has_labels(history.lease):
                account = make_account(histories, history, as_of.at, as_of.seen_until)
        if account is not None and selection.includes(account):
            yield account


def _format_account(account: Account, as_of: reading.EvaluationTime, *, verbose: bool) -> Iterator[str]:
    """Yield the state, the facts, what happened, what is wrong, what to do."""
    history = account.history
    headline, facts, advice = (
        make_headline(account),
        list(list_facts(account, verbose=verbose)),
        advise_with_urgency(account),
    )
    events = list(list_events(account, MAX_EVENTS) if verbose else list_latest(account))
    quoted = list(quote_events(account)) if verbose or history.is_list_only else []
    texts = [headline, advice.sentence, *(one.text for one in (*facts, *events, *quoted))]
    clean = escape if verbose else _make_cleaner([*texts, *(one.message for one in account.findings)])
    title = style(escape(f"{history.namespace}/{history.name}"), bold=True)
    state = style(account.state.value, fg=STATE_COLORS[account.state])
    yield indent(f"{title}  {state}: {clean(headline)}", 0, hanging=2)
    status = account.status
    asked = "" if account.unshown_duration is None else " (asked for; what was stored is not shown)"
    lasts = [f"duration {status.duration} s{asked}"] if status and status.duration is not None else []
    yield style("; ".join([as_of.text, *lasts, *([] if verbose else ["--verbose: more"])]), dim=True)
    yield from _format_part("", facts, clean)
    yield from _format_part("What happened", events, clean)
    yield from _format_part("What Events say (clients write them; they are kept for an hour)", quoted, clean)
    yield from _format_findings(account, advice, clean, verbose=verbose, said={one.text for one in facts})
    yield ""
    yield style(indent(clean(advice.sentence), 0), bold=True)
    if advice.command:
        yield format_advice("", escape(advice.command), 2, 2)
    if (verbose and not _is_known_refusal(account)) or _is_worth_a_note(account):
        yield from _format_risks(account, clean)
    if history.is_list_only:
        yield ""
        yield indent(_MOMENT, 0)


def _make_cleaner(texts: Sequence[str]) -> Callable[[str], str]:
    """Return what makes any of these texts fit for a terminal, with the random parts of identities cut."""
    shorten = make_shortener(texts)
    return lambda text: escape(shorten(text))


def _format_part(head: str, lines: Sequence[Line], clean: Callable[[str], str]) -> Iterator[str]:
    if lines:
        yield ""
        yield from [style(head, bold=True)] if head else []
        yield from _format_lines(lines, clean, 2 if head else 0)


def _format_findings(
    account: Account, advice: Advice, clean: Callable[[str], str], *, verbose: bool, said: AbstractSet[str]
) -> Iterator[str]:
    """Yield what is wrong: the latest findings of each kind; without `verbose` one, and none that the headline says.

    What the `advice` says, which is shown below, is not shown twice; `said` are sentences that need not be repeated.
    """
    is_silence_said = is_silence_in_headline(account)
    loud = (one for one in account.findings if one.severity is not Severity.INFO)
    worrying = [one for one in loud if one.check not in RISKS]
    if not verbose:
        block = account.status.block if account.status else None
        worrying = [one for one in worrying if not _is_in_headline(one) and not (block and block.rule == one.check)]
    found_of: dict[str, list[ReportFinding]] = {}
    for finding in worrying:
        found_of.setdefault(finding.check, []).append(finding)
    for *earlier, finding in _split_latest(found_of.values(), _MAX_ALIKE if verbose else 1):
        severity = style(finding.severity.value, fg=SEVERITY_COLORS[finding.severity])
        is_full = len(found_of[finding.check]) >= MAX_OF_A_KIND
        is_cut = account.history.changes > MAX_OF_A_KIND if finding.check in _OF_HOLDERS else is_full
        if finding.check == "lease-stolen":
            is_cut = may_lack_thefts(account.history)
        before = describe_earlier(earlier, account.now, is_cut=is_cut)
        marks = "; ".join(filter(None, (describe_end(finding, account.now), before)))
        yield ""
        marked = clean(f" ({marks})") if marks else ""
        yield indent(f"{severity}  {finding.check}{marked}", 0, hanging=2)
        message = finding.message if verbose else _shorten(finding, said, is_silence_said=is_silence_said)
        yield indent(clean(message), 2)
        if verbose and finding.fix != advice.command and not advice.sentence.endswith(f": {finding.fix}."):
            yield from _format_fix(finding)


def _shorten(finding: ReportFinding, said: AbstractSet[str], *, is_silence_said: bool) -> str:
    """Return the text of a finding, without what the headline, or a fact, says before it."""
    if not isinstance(finding, Claim) or not finding.why:
        return finding.message
    if is_silence_said and is_ongoing_silence(finding):
        return finding.why
    return finding.message.replace(finding.why, "Why: as above.") if finding.why in said else finding.message


def _is_in_headline(finding: ReportFinding) -> bool:
    """Return whether the headline says a finding; it does not say what is over."""
    return finding.check in _HEADLINES and not (isinstance(finding, Claim) and finding.is_over)


def _is_worth_a_note(account: Account) -> bool:
    """Return whether what may happen one day is worth a note beside what did: not if that is worse, or another thing.

    With the numbers that a note gives, a lease outlasts a short outage, and not a long one.
    """
    loud = [one for one in account.findings if one.severity is not Severity.INFO and one.check not in RISKS]
    if _is_known_refusal(account):
        return False
    return all(one.check == "taken-late" or (one.check in LOSSES and _is_short(one)) for one in loud)


def _is_known_refusal(account: Account) -> bool:
    """Return whether a holder was silent as its writes were refused: no numbers would have helped it."""
    losses = (one for one in account.findings if isinstance(one, Claim) and one.check in LOSSES)
    return any(one.cause == Blame.REFUSED for one in losses)


def _is_short(finding: ReportFinding) -> bool:
    """Return whether a holder was silent for no longer than an outage for which a note gives numbers."""
    start, end = (finding.arguments.get(key) for key in ("from", "to")) if isinstance(finding, Claim) else (None, None)
    return isinstance(start, int) and isinstance(end, int) and end - start <= OUTAGE * SECOND


def _format_risks(account: Account, clean: Callable[[str], str]) -> Iterator[str]:
    """Yield what may cost a leader its lease one day, below what to do now: it is nothing that happened."""
    for finding in account.findings:
        if finding.check in RISKS and finding.severity is not Severity.INFO:
            yield ""
            yield indent(f"note  {finding.check}", 0, hanging=2)
            yield indent(clean(finding.message), 2)
            yield from _format_fix(finding)


def _format_fix(finding: ReportFinding) -> Iterator[str]:
    """Yield what to do about a finding: a command alone does not say what it presumes, as that a holder is a pod."""
    sentence = finding.advice if isinstance(finding, Claim) else ""
    if sentence:
        yield indent(f"-> {escape(sentence)}", 2, hanging=5)
    if finding.fix:
        yield format_advice("" if sentence else "->", escape(finding.fix), 5 if sentence else 2, 5)


def _split_latest(groups: Iterable[list[ReportFinding]], most: int) -> Iterator[list[ReportFinding]]:
    """Yield the latest findings of each kind, and the latest of its worst ones, each alone.

    The first one comes after the earlier ones of its kind, the others after those in between that are left out.
    """
    for group in groups:
        first = max(0, len(group) - most)
        worst_severity = min((one.severity for one in group), key=ORDER.__getitem__)
        worst = max(number for number, one in enumerate(group) if one.severity is worst_severity)
        if worst < first:
            yield group[: worst + 1]
            yield group[worst + 1 : first + 1]
        else:
            yield group[: first + 1]
        yield from ([one] for one in group[first + 1 :])


def _format_lines(lines: Iterable[Line], clean: Callable[[str], str], by: int = 0) -> Iterator[str]:
    for line in lines:
        wrapped = indent(clean(line.text), 0, measure_width() - _LABEL - by).split("\n")
        for number, text in enumerate(wrapped):
            label = line.label if number == 0 else ""
            yield f"{' ' * by}{label:<{_LABEL - 1}} {text}".rstrip()
