"""Claims about the lease shop/db of a fake server, and their words."""

from collections.abc import Callable

from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import LEASE, advise
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.happened import list_events
from webhook.analysis.claims.presentation.text import list_facts
from webhook.analysis.history.follow import ClusterHistory


def account(histories: ClusterHistory, now: int) -> Account:
    """Return the account of the lease at a moment."""
    return make_account(histories, histories.leases[LEASE], now)


def text(account: Account) -> str:
    """Return what `why` prints of it, a line for each statement."""
    lines = [
        make_headline(account),
        *(f"{line.label}: {line.text}" for part in (list_facts(account), list_events(account)) for line in part),
    ]
    return "\n".join(
        [*lines, *(f"{found.check}: {found.message}" for found in account.findings), f"ADVICE {advise(account)}"]
    )


def shop() -> tuple[FakeServer, list]:  # type: ignore[type-arg]
    """A server with the electors of three leases of one namespace."""
    server = FakeServer()
    return server, [server.elector(f"{lease}-0", f"shop/{lease}") for lease in ("db", "mail", "cart")]


def taken_after_tries(attempt: Callable[[FakeServer, Elector], object], *, times: int = 30) -> FakeServer:
    """A server on which db-1 takes the lease of db-0 after it tried something every 2 s, by default for a minute."""
    server, (db, *others) = shop()
    db.ask()
    successor = server.elector("db-1", "shop/db")
    together(20, db, *others)
    for _ in range(times):
        together(2, *others)
        attempt(server, successor)
    successor.take()
    return server
