"""A lease beside a held one that has its name elsewhere, or the number of another run in its name."""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import View, follow_log, follow_metadata, follow_watch
from webhook.analysis.claims.assemble import make_account

DB = "shop/db"


def hold(other: str, *, view: View = follow_log, before: float = 0, after: float = 20, lasts: float = 40) -> str:
    """Return the text about shop/db; another lease is created `before` it, and renewed until `after` seconds."""
    server = FakeServer()
    if before:
        server.elector("db-5", other).lead(2)
        server.wait(before)
    first, second = server.elector("db-0", DB), server.elector("db-5", other)
    first.lead(20)
    together(after, first, second)
    together(lasts, first)
    return text(account(view(server), server.now))


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (follow_watch, "is held too, by db-5_1, and was renewed at 11:07:20Z\n"),
        (follow_log, "is held too, by db-5_1, and was renewed at 11:07:20Z\n"),
        (follow_metadata, "is written too, by db-5, the last time at 11:07:20Z\n"),
    ],
    ids=["a watch", "a log", "a log without objects"],
)
def test_a_lease_of_the_same_name_that_came_meanwhile_is_told_of(view: View, said: str) -> None:
    assert f"Like it: mail/db, created at 11:07:00Z, {said}" in hold("mail/db", view=view, lasts=4)


@pytest.mark.parametrize(
    "said",
    [
        hold("mail/db", before=1200, lasts=4),
        hold("mail/db", lasts=120),
        hold("mail/db", view=follow_metadata, lasts=120),
        hold("mail/db", after=0, lasts=4),
        hold("mail/other", lasts=4),
        hold("shop/other", lasts=4),
    ],
    ids=[
        "it was there before",
        "it has expired",
        "it is written no more",
        "it was not renewed",
        "it has another name",
        "another lease of the namespace",
    ],
)
def test_other_leases_are_not_told_of(said: str) -> None:
    assert "Like it" not in said


@pytest.mark.parametrize(
    ("name", "other", "is_told"),
    [
        ("import-29932152", "import-29932151", True),
        ("import-29932152-lock", "import-29932151-lock", True),
        ("import-29932152", "import-2993215x", False),
        ("import-29932152", "export-29932151", False),
        ("import-29932152-a", "import-29932151-b", False),
        ("import-29932152", "import-299321510", False),
        ("shard-2", "shard-1", False),
    ],
    ids=[
        "another run",
        "and more after it",
        "no number",
        "another job",
        "another end",
        "another length",
        "a shard",
    ],
)
def test_the_lease_of_another_run_is_told_of(name: str, other: str, *, is_told: bool) -> None:
    server = FakeServer()
    together(20, server.elector("b-0", f"shop/{other}"), server.elector("a-0", f"shop/{name}"))
    histories = follow_log(server)
    said = text(make_account(histories, histories.leases["shop", name], server.now))
    assert (f"Like it: shop/{other} is held too, by b-0_1, and was renewed at 11:07:00Z\n" in said) is is_told


def test_of_several_alike_the_one_that_was_renewed_last_is_named_and_the_others_are_counted() -> None:
    server = FakeServer()
    db, *others = (server.elector(f"db-{number}", f"{place}/db") for number, place in enumerate(("shop", "a", "b")))
    db.lead(20)
    together(20, db, *others)
    server.wait(1)
    others[1].renew()
    said = text(account(follow_log(server), server.now))
    assert (
        "Like it: b/db, created at 11:07:00Z, is held too, by db-2_1, and was renewed at 11:07:21Z; and 1 more\n"
        in said
    )


def count_runs(number: int) -> str:
    """Return the text about a lease among those of other runs."""
    server = FakeServer()
    electors = [server.elector(f"a-{one}", f"shop/import-{299_000 + one}") for one in range(number)]
    for one in electors:
        one.take()
    server.wait(2)
    for one in electors:
        one.renew()
    histories = follow_log(server)
    return text(make_account(histories, histories.leases["shop", "import-299000"], server.now))


@pytest.mark.parametrize(
    ("number", "more"),
    [(2, ""), (3, "; and 1 more"), (199, "; and 197 more"), (200, "; and at least 198 more")],
    ids=["one", "two", "as many as are compared", "more"],
)
def test_the_leases_of_other_runs_are_counted(number: int, more: str) -> None:
    assert f", and was renewed at 11:06:42Z{more}\n" in count_runs(number)


@pytest.mark.parametrize("lease", ["kube-node-lease/db", "shop/db"], ids=["of a node", "released"])
def test_a_lease_that_no_one_may_take_or_no_one_holds_has_none_like_it(lease: str) -> None:
    server = FakeServer()
    db, other = server.elector("db-0", lease), server.elector("db-5", "mail/db")
    together(20, db, other)
    if lease == DB:
        db.release()
    together(4, other)
    histories = follow_log(server)
    history = histories.leases[lease.split("/", maxsplit=1)[0], "db"]
    assert make_account(histories, history, server.now).surroundings.alike is None


def test_a_lease_of_the_same_name_that_was_released_is_not_told_of() -> None:
    server = FakeServer()
    db, other = server.elector("db-0", DB), server.elector("db-5", "mail/db")
    together(20, db, other)
    other.release()
    assert "Like it" not in text(account(follow_log(server), server.now))


@pytest.mark.parametrize(("view", "by"), [(follow_watch, ""), (follow_log, " by jane")], ids=["a watch", "a log"])
def test_a_lease_of_the_same_name_into_which_holders_are_written_is_told_of(view: View, by: str) -> None:
    server = FakeServer()
    first = server.elector("db-0", DB)
    first.lead(20)
    for number in range(4):
        server.elector(f"x-{number}", "mail/db", user="jane", pod="").take()
        together(8, first)
    said = text(account(view(server), server.now))
    written = "had another holder written in 3 times, the last time at 11:07:24Z with x-3_1"
    assert f"Like it: mail/db, created at 11:07:00Z, {written}{by}\n" in said
