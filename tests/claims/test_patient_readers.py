"""A replica that keeps reading an expired lease and does not take it: another API server may see renewals."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import View, follow_both, follow_log
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.presentation.text import list_facts
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.cli.main import main
from webhook.kubernetes.times import format_time

HIDDEN = "pod db-1 reads it and does not take it: it may be renewed through an API server whose log is missing"


class Shop:
    """A holder of shop/db that ends in the log, one that reads the lease, and another lease that is renewed."""

    def __init__(self, user: str = "system:serviceaccount:shop:db", *, ahead: float = 0, strategy: str = "") -> None:
        self.server = FakeServer()
        self.holder = self.server.elector("db-0", "shop/db", ahead=ahead)
        self.reader = self.server.elector("db-1", "shop/db", user=user)
        self.mail = self.server.elector("mail-0", "shop/mail")
        self.holder.take()
        self.mail.take()
        for _ in self.go_on(40):
            self.holder.renew(**({"strategy": strategy} if strategy else {}))
            self.reader.ask()

    def go_on(self, seconds: int) -> Iterator[None]:
        """Let time pass, in which the other lease is renewed."""
        for _ in self.mail.ticks(seconds):
            self.mail.renew()
            yield

    def read(self, seconds: int) -> None:
        for _ in self.go_on(seconds):
            self.reader.ask()

    def wait(self, seconds: int) -> None:
        for _ in self.go_on(seconds):
            pass

    def explain(self, view: View = follow_log) -> Account:
        return account(view(self.server), self.server.now)


def test_a_lease_that_one_reads_and_does_not_take_has_expired_as_far_as_the_log_shows() -> None:
    shop = Shop()
    shop.read(60)
    answer = shop.explain()
    output = text(answer)
    assert output.startswith(f"as far as the log shows, db-0_1 has not renewed it for 1 min 0 s; but {HIDDEN}")
    assert not [one for one in answer.findings if one.check == "expired"]
    assert "Can be taken" not in [one.label for one in list_facts(answer, verbose=True)]
    assert not [one for one in find_claims(answer) if one.check == "expired"]
    assert "For most of that time the log has no answered request for the lease from its pod" not in output
    advice = advise_with_urgency(answer)
    assert advice.sentence.startswith("See whether it is renewed now. If so, collect the logs of all API servers")
    assert "see why pod db-1 does not take it" in advice.sentence
    assert advice.command == "kubectl -n shop get lease db --watch"


@pytest.mark.parametrize("is_read_to_the_end", [True, False], ids=["read to the end", "not read"])
def test_audit_reports_no_expiry_that_one_who_reads_it_contradicts(
    is_read_to_the_end: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = Shop()
    (shop.read if is_read_to_the_end else shop.wait)(60)
    log = tmp_path / "audit.log"
    log.write_bytes(shop.server.audit_log())
    main(["audit", "--input", str(log), "--now", format_time(shop.server.now)])
    assert ("no longer renews it" in capsys.readouterr().out) is not is_read_to_the_end


def _stop(shop: Shop) -> None:
    """The reader falls silent."""
    shop.read(40)
    shop.wait(20)


def _read_for_less_than_a_duration(shop: Shop) -> None:
    shop.read(28)


def _read_at_the_end(shop: Shop) -> None:
    shop.wait(54)
    shop.read(6)


def _try_in_vain(shop: Shop) -> None:
    for _ in shop.go_on(60):
        shop.reader.fail(409, "conflict")
        shop.reader.ask()


def _read_in_vain(shop: Shop) -> None:
    for _ in shop.go_on(60):
        shop.reader.fail(403, "forbidden", verb="get")


@pytest.mark.parametrize(
    "deed",
    [
        pytest.param(_stop, id="it falls silent"),
        pytest.param(_read_for_less_than_a_duration, id="it has not waited for a duration"),
        pytest.param(_read_at_the_end, id="it begins only at the end"),
        pytest.param(_try_in_vain, id="it tries to take it, in vain"),
        pytest.param(_read_in_vain, id="its reads are refused"),
    ],
)
def test_a_reader_that_could_not_have_taken_it_says_nothing(deed: Callable[[Shop], None]) -> None:
    shop = Shop()
    deed(shop)
    answer = shop.explain()
    assert HIDDEN not in text(answer)
    assert [one for one in answer.findings if one.check == "expired"]
    assert advise_with_urgency(answer).sentence.startswith(("Act now", "No other can take"))


def test_a_reader_of_another_account_would_not_take_it() -> None:
    shop = Shop("system:serviceaccount:monitoring:exporter")
    shop.read(60)
    assert HIDDEN not in text(shop.explain())


def test_a_reader_may_wait_until_a_renew_time_that_is_ahead_is_past() -> None:
    shop = Shop(ahead=90)
    shop.read(60)
    assert HIDDEN not in text(shop.explain())


def test_a_reader_may_wait_for_a_renew_time_that_nothing_dates() -> None:
    shop = Shop(ahead=90)
    shop.read(60)
    for event in shop.server.log:
        for stored in (event["responseObject"], event.get("requestObject")):
            (stored or {}).get("metadata", {}).pop("managedFields", None)
    assert HIDDEN not in text(shop.explain())


def test_a_candidate_waits_until_an_api_server_chooses_it() -> None:
    shop = Shop(strategy="OldestEmulationVersion")
    shop.read(60)
    assert HIDDEN not in text(shop.explain())


def test_a_watch_shows_the_writes_of_every_api_server() -> None:
    shop = Shop()
    shop.read(60)
    answer = shop.explain(follow_both)
    assert HIDDEN not in text(answer)
    assert [one for one in answer.findings if one.check == "expired"]


def test_every_output_doubts_since_when_it_can_be_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = Shop()
    shop.read(60)
    log = tmp_path / "audit.log"
    log.write_bytes(shop.server.audit_log())
    words = ["--input", str(log), "--now", format_time(shop.server.now)]
    outputs = []
    for options in ([], ["shop/db", "--verbose"], ["shop/db", "--format", "json"]):
        main(["why", *options, *words])
        outputs.append(capsys.readouterr().out)
    table, explanation, document = outputs
    (row,) = (line for line in table.splitlines() if line.startswith("shop/db"))
    assert row.split()[-1] != "now"
    assert "Can be taken" not in explanation
    assert json.loads(document)["takeable_at"] is None


@pytest.mark.parametrize(
    ("is_shown", "query", "is_doubtful"),
    [(True, "", False), (True, "?resourceVersion=0", True), (False, "", True)],
    ids=["by etcd", "from memory", "without what it shows"],
)
def test_a_reader_that_is_shown_the_last_renewal_shows_that_no_other_followed(
    is_shown: bool, query: str, is_doubtful: bool
) -> None:
    shop = Shop()
    for _ in shop.go_on(60):
        shop.reader.ask(is_shown=is_shown)
        shop.server.log[-1]["requestURI"] += query
    answer = shop.explain()
    assert (HIDDEN in text(answer)) is is_doubtful
    assert bool([one for one in answer.findings if one.check == "expired"]) is not is_doubtful
