"""When a write was stored, by what dates it and what is known before it."""

from tests.history.fake_server import SECOND, START, FakeServer
from tests.inputs.reading import read
from webhook.analysis.history.visibility.bounds import Bounds
from webhook.analysis.history.visibility.dating import KnownState, estimate_write
from webhook.analysis.history.write import Dating, Write
from webhook.analysis.inputs.items import Observation


def test_a_stamp_of_before_what_a_log_has_is_of_an_earlier_write() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").take()
    (seen,) = [one for one in read("watch", [server.watch()]) if isinstance(one, Observation)]
    at = START + 20 * SECOND
    known = KnownState(None, (), at, Write(at, at, at, Dating.LOG), "log", is_held=True)
    write = estimate_write(seen, known, Bounds())
    assert (write.dating, write.at, write.earliest, write.latest) == (Dating.ORDER, at, at, None)
