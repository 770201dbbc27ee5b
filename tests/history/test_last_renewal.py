"""The writer of the last known write of a holder of which no renewal was seen: its own process, or another."""

import pytest

from tests.history.test_succession import SECOND, log
from webhook.analysis.history.holders.beginning import Beginning
from webhook.analysis.history.holders.processes import HolderProcesses
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import Writer

OWN = Writer(user="system:serviceaccount:shop:db", pod="db-0", uid="1")
OTHER = Writer(user="system:serviceaccount:shop:db", pod="db-1", uid="2")


@pytest.mark.parametrize(
    ("own", "writer", "is_own"),
    [(None, OTHER, True), (OWN, None, True), (OWN, OWN, True), (OWN, OTHER, False)],
    ids=["of an unknown process", "by an unknown writer", "by its own", "by another one"],
)
def test_a_write_before_any_renewal(own: Writer | None, writer: Writer | None, is_own: bool) -> None:
    processes, taken = HolderProcesses("db-0_1"), log(1)
    processes.own = own
    written = Write(at=taken.at, writer=writer)
    tenure = Tenure(processes, SECOND, Handover.CLAIMED, SECOND, beginning=Beginning(taken), last_extension=written)
    assert tenure.is_renewed_last_by_own is is_own
