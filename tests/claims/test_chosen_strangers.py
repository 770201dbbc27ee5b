"""A stranger that creates a LeaseCandidate under another pod's name, and is chosen, is named as the holder."""

from typing import Any

import pytest
from msgspec import Struct

from tests.claims.accounts import text
from tests.claims.test_candidates import candidate, event
from tests.claims.test_coordinated import chooses, explain_server, start_coordinated, writes
from tests.history.fake_server import FakeServer
from tests.history.observing import advise

STRANGER = "system:serviceaccount:shop:log-shipper"
INTRUSION = "If shop/log-shipper has no business there, this is an intrusion"


class Chosen(Struct, frozen=True):
    """Create candidate b_1, have it chosen, and renew the lease."""

    user: str = STRANGER
    pod: str = "log-shipper-x"
    is_chosen: bool = True
    is_still_held: bool = True

    def play(self) -> FakeServer:
        server, _ = start_coordinated()
        event(server, "create", candidate(emulationVersion="0.1.0"), 201, self.user)
        renewal: dict[str, Any] = {"strategy": "OldestEmulationVersion"}
        own = server.elector("b", "shop/db", user=self.user, pod=self.pod)
        writes(server, preferredHolder="b_1")
        server.wait(17)
        if self.is_chosen:
            chooses(server, "b_1")
        else:
            own.take(**renewal)
        for _ in own.ticks(20):
            own.renew(**renewal)
        if not self.is_still_held:
            writes(server, holderIdentity="")
        return server


def test_the_account_that_created_the_candidate_which_was_chosen_is_said_and_what_to_do_if_it_is_an_intruder() -> None:
    found = explain_server(Chosen().play())
    assert 'LeaseCandidate db-1 was created with emulationVersion "0.1.0" by shop/log-shipper' in text(found)
    assert "shop/db, shop/log-shipper; shop/log-shipper from pod log-shipper-x renews it now, as b_1" in text(found)
    assert advise(found) == (
        f"An API server chose its LeaseCandidate. {INTRUSION}: take its rights away, keep its pod as evidence, and "
        "delete the candidate. To see all of them: kubectl -n shop get leasecandidates -o yaml"
    )


@pytest.mark.parametrize(
    "chosen",
    [
        Chosen(user="system:serviceaccount:shop:db"),
        Chosen(pod="b"),
        Chosen(is_chosen=False),
        Chosen(is_still_held=False),
        Chosen(user="mallory", pod=""),
    ],
    ids=[
        "a replica of the same account",
        "a pod that bears the name",
        "one that took the lease itself",
        "one that holds it no more",
        "one without a pod",
    ],
)
def test_who_need_not_have_been_chosen_under_the_name_of_another_is_not_suspected(chosen: Chosen) -> None:
    found = explain_server(chosen.play())
    assert "intrusion" not in advise(found)
    assert "renews it now, as" not in text(found)
