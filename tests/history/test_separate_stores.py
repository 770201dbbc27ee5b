"""Series of writes in logs of stores that are not one: what is remembered of them is bounded."""

from tests.history.fake_server import FakeServer
from tests.inputs.reading import read
from webhook.analysis.history.visibility.separate_stores import SeparateStores, Series
from webhook.analysis.inputs.items import Act, Observation


def hear(stores: SeparateStores, server: FakeServer, path: str) -> None:
    for item in read(path, [server.audit_log()]):
        if isinstance(item, Observation) and item.act in {Act.CREATED, Act.UPDATED}:
            stores.hear(item)


def lead(seconds: float, revision: int = 100) -> FakeServer:
    server = FakeServer(revision=revision)
    server.elector("db-0", "shop/db").lead(seconds)
    return server


def test_of_many_logs_the_first_ones_are_compared() -> None:
    stores, early = SeparateStores(), SeparateStores()
    for number in range(8):
        hear(stores, lead(60, revision=1000 * number), f"log-{number}")
    for path in ("log-8", "log-9"):
        hear(stores, lead(60, revision=20_000), path)
    hear(early, lead(60), "log-8")
    assert stores.found is None
    assert "log-8" in repr(early)
    assert "log-8" not in repr(stores)


def test_of_many_writes_the_latest_ones_are_compared() -> None:
    stores = SeparateStores()
    hear(stores, lead(3000), "log")
    (series,) = stores._series.values()
    assert isinstance(series, Series)
    assert 500 <= len(series.revisions) <= 1000
    assert series.revisions[-1] == 1601
