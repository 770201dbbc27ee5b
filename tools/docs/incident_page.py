"""The page docs/incidents.md: each recorded incident, and the answer of `why`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from tests.incidents import AUDIT_LOG, BOTH, METADATA, SOURCES, THREE, WATCH, Incident, incidents
from tools.docs.pages import DOCS
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.advise import advise
from webhook.analysis.claims.words import format_bound
from webhook.findings import Severity
from webhook.kubernetes.times import format_length
from webhook.text.quoting import escape

PAGE: Final = DOCS / "incidents.md"
_WIDTH: Final = 110
_HEADINGS: Final = {WATCH: "From a watch", AUDIT_LOG: "From the audit log"}
_HEAD: Final = """<!-- Written by `make docs` from tests/data/incidents. Do not edit. -->
# Incidents, and what `why` says about them

Each incident was played on a real API server ({recorded}), with the default times of client-go: 15 s, 10 s and 2 s.
The electors are client-go's, with two exceptions: in clock-behind the leader, whose clock is wrong, is that of
kubernetes_asyncio, and the follower that takes its lease is a few lines of the test that compare renewTime with their
own clock, under the same field manager (`OpenAPI-Generator`). The jobs that steal a lease are requests of the test too.
The column "truth" has how long no one led, or two led, by what each elector reported. The other columns have what
`lease-webhook why` says: from a [watch and from an audit log](why.md) recorded meanwhile, from both together, from the
log as three API servers write it ("the same" as the audit log), and from the log at level Metadata. That level has no
objects, so `why` cannot know who holds a lease; it says who wrote it, and for how long neither of two writers did:
[log leases at RequestResponse](why.md#the-audit-policy).
Each input also contains three other leases, which were renewed all the time unless the API server was unavailable.
`make record-incidents` plays and records all of them again in three minutes; the tests compare what `why` says with
the truth.

A time without a leader is given as "up to", because it is counted from the last renewal: a leader that lost only its
connection to the API server leads until its attempts have failed for its deadline, 12 s after its last renewal by
default. In a coordinated election the API server names the holder, which starts to lead at its next attempt.
"""
_NOTHING: Final = "nothing is wrong"
_MEASURED: Final = Path("tests/data/measured-incidents")
_LAST: Final = "1.34.10"
_MEASURED_TEXT: Final = """## What it says of incidents that it had not seen

For {number} further incidents (`tests/data/measured-incidents`), the claims that are right and those that would be
wrong were written down before `why` was asked. {last} of them were recorded on Kubernetes {version} to be asked about
once, after the code was done: from a watch, an audit log, three logs, watch and log together, the log at level
Metadata, a dump with managedFields and one without. 122 of the 133 answers were right, 11 said that it is not known,
all of them at level Metadata, and none was wrong. Two times without a leader were above their stated bounds, by 0.6 s
and by 3 s; that was corrected. The tests ask all of them in every form, in any order and with duplicates, and fail for
one wrong claim.
"""
_OPERATORS: Final = Path("tests/data/operator-incidents")
_READINGS: Final = Path("tests/data/first-readings.json")
_READINGS_TEXT: Final = """## How its texts read beside the truth

{number} incidents of operators (`tests/data/operator-incidents`) were recorded on API servers 1.37.1 and 1.31.4, with
what happened, what the recording shows, and what would be wrong to say. Those of the table were recorded by somebody
who knew neither the code nor the documents. Strict readers then read what `why` says from the log, the watch and
both, plain and with `--verbose`, before they read the truth. They rated each by its worst sentence: it is **clean**
if every sentence is true, or says what the input does not show; **misleading** if none is false, but somebody on call
may conclude or do something wrong, or the main fact that the input shows is not said; **false** if any sentence
contradicts the truth. Each set was read once, before the code was changed by what the readers found; since then tests
have what must be said of it, and never. So take what `why` says as the beginning of an investigation: most of what
misleads has its cause in requests that are not about leases.

| recorded | incidents | texts | clean | misleading | false |
|---|---|---|---|---|---|
{rows}
"""
_CAUSES: Final = Path("tests/data/causes.json")
_MAX_CAUSES: Final = 4
"""So many causes are named in a cell of the table."""
_CAUSES_HEAD: Final = """## Which causes it names

`make causes` induces each cause for twenty leases, with times, moments and lengths by chance: two client-go electors
per lease, up to 44 leases side by side on one API server (1.37.1), beside {witnesses} that are renewed throughout. What
concerns every lease, the last two rows, was induced five times for four leases each. The table has the
[causes](claims.md#the-causes) that `why` then names, several if its input does not exclude all but one of them; "wrong"
stands beside an answer that lacks the cause.

This was measured {circumstances}.

A watch does not show what was refused or conflicted: of a loss that concerns one lease, its process, its API server
and every kind of refusal are left there. At level Metadata the log does not show who holds a lease, so no cause is
named."""


def make_page() -> str:
    """Return the whole page."""
    found = incidents()
    rows = [
        "| incident | truth | from a watch | from the audit log | from both | from three logs | at level Metadata |",
        "|---|---|---|---|---|---|---|",
        *(_make_row(one) for one in found),
    ]
    sections = ("\n".join(_write_section(one)) for one in found)
    head = _HEAD.format(recorded=_describe_recording(found))
    return "\n".join([head, *rows, "", _describe_measured(), _describe_readings(), *_list_causes(), "", *sections])


def _describe_recording(found: Iterable[Incident]) -> str:
    """Return `kube-apiserver v1.37.1, 2026-11-22`, of each version and day."""
    both = {(one.truth["kubernetes"], one.truth["begins"][:10]) for one in found}
    return "; ".join(f"kube-apiserver {version}, {day}" for version, day in sorted(both))


def _describe_measured() -> str:
    versions = [json.loads(path.read_text())["api_server"] for path in sorted(_MEASURED.glob("*/truth.json"))]
    return _MEASURED_TEXT.format(number=len(versions), last=versions.count(f"v{_LAST}"), version=_LAST)


def _describe_readings() -> str:
    rows = []
    for reading in json.loads(_READINGS.read_text()):
        numbers = [reading[judgment] for judgment in ("clean", "misleading", "false")]
        shares = (f"{number} ({number / sum(numbers):.0%})" for number in numbers)
        rows.append(f"| {reading['recorded']} | {reading['incidents']} | {sum(numbers)} | {' | '.join(shares)} |")
    number = sum(1 for path in _OPERATORS.iterdir() if path.is_dir())
    return _READINGS_TEXT.format(number=number, rows="\n".join(rows))


def _list_causes() -> Iterator[str]:
    """Yield the table of the causes that were named, by the cause that was induced."""
    measured = json.loads(_CAUSES.read_text())
    cells = measured.pop("cells")
    yield f"{_CAUSES_HEAD.format(**measured)}\n"
    yield "| cause | from the audit log | from a watch | from an audit log at level Metadata |"
    yield "|---|---|---|---|"
    for cause in dict.fromkeys(cell["cause"] for cell in cells):
        answers = (
            "; ".join(_format_answer(cell) for cell in cells if (cell["cause"], cell["source"]) == (cause, source))
            for source in ("log", "watch", "metadata")
        )
        yield f"| {cause} | {' | '.join(answers)} |"


def _format_answer(cell: Mapping[str, Any]) -> str:
    """Return ``11 `stopped` or `api-server` (its own rate limit)``, or how many causes are left if that is many."""
    causes = [f"`{cause}`" for cause in cell["causes"]]
    names = " or ".join(causes) or "no cause"
    if len(causes) > _MAX_CAUSES:
        names = f"one of {len(causes)}"
    hint = " (its own rate limit)" if cell["names_limit"] else ""
    return f"{cell['number']} {names}{hint}{' (wrong)' if cell['is_wrong'] else ''}"


def _make_row(incident: Incident) -> str:
    cells = [f"[{incident.name}](#{incident.name})", _format_times(incident.truth), *_make_cells(incident)]
    return f"| {' | '.join(cells)} |"


def _make_cells(incident: Incident) -> Iterator[str]:
    """Yield the answer for each input; the answers for both and three files match the log's unless they differ."""
    logged = _summarize(incident.account(AUDIT_LOG))
    yield from (_summarize(incident.account(WATCH)), logged)
    for source in (BOTH, THREE, METADATA):
        said = _summarize(incident.account(source))
        if source == METADATA:
            yield said.replace(_NOTHING, "not known")
        else:
            yield "the same" if said == logged else said


def _format_times(truth: dict[str, Any]) -> str:
    said = [f"no one led for {gap['seconds']:.1f} s" for gap in truth["leaderless"]]
    said += [f"two led for {both['seconds']:.1f} s" for both in truth["two_led"]]
    return ", ".join(said) or "one leader throughout"


def _summarize(account: Account) -> str:
    worrying = [one for one in make_account_json(account)["findings"] if one["severity"] != "info"]
    said = [f"`{one['check']}` ({one['cause']})" for one in worrying]
    history = account.history
    if any(one["check"] == "renewal-late" for one in worrying):
        said.append(f"no renewal for {format_length(history.renewals.longest)}")
    if history.leaderless:
        unwritten = f"neither of two wrote it for {format_length(history.leaderless)}"
        said.append(f"no leader for {format_bound(history.leaderless)}" if history.lease else unwritten)
    return "; ".join(said) or _NOTHING


def _write_section(incident: Incident) -> Iterator[str]:
    yield f"## {incident.name}\n"
    yield f"{incident.truth['title']}\n"
    events = [(done["at"], done["what"]) for done in incident.truth["done"]]
    for led in incident.truth["led"]:
        events.append((led["from"], f"{led['holder']} leads"))
        if led["until"] and led["ended"] not in {"killed", "paused"}:
            events.append((led["until"], f"{led['holder']} no longer leads"))
    for at, what in sorted(events):
        yield f"- {at[11:21]} {what}"
    yield ""
    for source in SOURCES:
        yield f"{_HEADINGS[source]}:\n"
        yield from _quote_account(incident.account(source))


def _quote_account(account: Account) -> Iterator[str]:
    worrying = [one for one in account.findings if one.severity is not Severity.INFO]
    yield "```"
    if not worrying:
        yield "nothing is wrong"
    for incident in worrying:
        yield from wrap(f"{incident.check}: {escape(incident.message)}", _WIDTH, break_long_words=False)
    advice = advise(account)
    yield from wrap(f"What to do: {escape(advice.sentence)}", _WIDTH, break_long_words=False)
    if advice.command:
        yield f"  {escape(advice.command)}"
    yield "```\n"
