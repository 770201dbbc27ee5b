"""Records without an API server's date are placed by the order in which writes were stored."""

import pytest

from tests.history.fake_server import SECOND, Elector, FakeServer, together
from tests.history.observing import cluster_of, merge_inputs
from tests.inputs.reading import read
from webhook.analysis.inputs.items import Observation


def delete_and_create_again(*others: Elector, server: FakeServer, db: Elector) -> tuple[int, bytes]:
    """Return when a lease is deleted between two tenures, and a watch without the stamps of shop/evil."""
    together(20, db, *others)
    server.delete("shop/db")
    deleted = server.now
    server.wait(1)
    db.take()
    together(20, db, *others)
    for _, _, lease in server.events:
        if lease["metadata"]["name"] == "evil":
            del lease["metadata"]["managedFields"]
    return deleted, server.watch()


@pytest.mark.parametrize("ahead", [-3600, 3600], ids=["behind", "ahead"])
@pytest.mark.parametrize("has_others", [True, False], ids=["beside others", "alone"])
def test_what_a_client_claims_in_its_own_lease_moves_no_deletion_of_another_one(ahead: float, has_others: bool) -> None:
    server = FakeServer()
    others = [server.elector("mail-0", "shop/mail")] if has_others else []
    evil = server.elector("evil", "shop/evil", ahead=ahead)
    deleted, watch = delete_and_create_again(evil, *others, server=server, db=server.elector("db-0", "shop/db"))
    first, _ = cluster_of(watch).leases["shop", "db"].tenures
    assert first.until is not None
    assert deleted - 2 * SECOND <= first.until <= deleted
    order = [one.name for one in merge_inputs([*read("in", [watch])]) if isinstance(one, Observation)]
    names = ["db", "evil", *(["mail"] if has_others else [])]
    assert [sorted(order[at : at + len(names)]) for at in (0, len(names))] == [names, names]
