"""What the next state of a lease does to its holder, from one renewal with one thing changed."""

from itertools import product
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from tests.factories import make_entry, to_bytes
from webhook.analysis.history.holders.transition import TRANSITIONS, After, Before, NextState, Transition
from webhook.analysis.inputs.items import Act, InputKind, Observation, Place
from webhook.kubernetes.managed_fields import list_entries
from webhook.kubernetes.objects import Lease, LeaseSpec

THEN, NOW = "2025-11-20T12:00:00.000000Z", "2025-11-20T12:00:02.000000Z"
HELD = LeaseSpec(holder_identity="a", renew_time=THEN)
RENEWED = LeaseSpec(holder_identity="a", renew_time=NOW)


def next_state(old: LeaseSpec | None, new: LeaseSpec, **changes: Any) -> NextState:
    lease, before = Lease(spec=new), None if old is None else Lease(spec=old)
    seen = Observation(
        place=Place("in"), input_kind=InputKind.WATCH, act=Act.UPDATED, kind="Lease", namespace="shop", name="db"
    )
    known = {"entries": (), "known": (), "at": 0, "moment": None, "writer": None, "is_gap": False, "is_new": False}
    return NextState(**{"seen": seen, "act": seen.act, "lease": lease, "before": before, **known, **changes})


FREE = LeaseSpec(holder_identity="", renew_time=THEN)
OTHER = LeaseSpec(holder_identity="b", renew_time=NOW)


@pytest.mark.parametrize(
    ("old", "new", "transition"),
    [
        pytest.param(HELD, RENEWED, Transition.RENEWAL, id="another renewTime"),
        pytest.param(HELD, HELD, Transition.NONE, id="the same state"),
        pytest.param(HELD, replace(HELD, renew_time=None), Transition.NONE, id="renewTime is gone"),
        pytest.param(HELD, replace(HELD, lease_duration_seconds=9), Transition.NONE, id="another duration"),
        pytest.param(FREE, replace(FREE, renew_time=NOW), Transition.NONE, id="renewTime of a free lease"),
        pytest.param(HELD, OTHER, Transition.TAKING, id="another holder"),
        pytest.param(HELD, FREE, Transition.RELEASE, id="an empty holder"),
        pytest.param(HELD, LeaseSpec(), Transition.RELEASE, id="no holder"),
        pytest.param(FREE, LeaseSpec(), Transition.NONE, id="no holder as before"),
        pytest.param(FREE, OTHER, Transition.CLAIM, id="a holder of a free lease"),
        pytest.param(LeaseSpec(), OTHER, Transition.CLAIM, id="a holder of an empty lease"),
        pytest.param(None, HELD, Transition.BEGINNING, id="no state before"),
        pytest.param(None, LeaseSpec(), Transition.BEGINNING, id="no state before, and no holder"),
    ],
)
def test_two_states_that_follow_each_other(old: LeaseSpec | None, new: LeaseSpec, transition: Transition) -> None:
    assert next_state(old, new).classify(is_released=False) is transition


@pytest.mark.parametrize("new", [RENEWED, OTHER, FREE])
def test_across_a_gap_nothing_is_concluded(new: LeaseSpec) -> None:
    assert next_state(HELD, new, is_gap=True).classify(is_released=False) is Transition.RESUMPTION


def test_every_two_states_have_a_transition() -> None:
    assert TRANSITIONS.keys() == set(product(Before, After))


@pytest.mark.parametrize(
    ("new", "transition"),
    [
        pytest.param(OTHER, Transition.CLAIM, id="another holder does not rob it"),
        pytest.param(RENEWED, Transition.RENEWAL, id="it renews"),
        pytest.param(HELD, Transition.NONE, id="nothing changes"),
        pytest.param(FREE, Transition.RELEASE, id="it is removed"),
    ],
)
def test_of_a_holder_that_is_still_named_after_its_release(new: LeaseSpec, transition: Transition) -> None:
    assert next_state(HELD, new).classify(is_released=True) is transition


def test_a_heartbeat_that_never_named_a_holder_is_renewed_by_its_writer() -> None:
    renewed = replace(FREE, renew_time=NOW)
    assert next_state(FREE, renewed, is_nameless=True).classify(is_released=False) is Transition.RENEWAL
    assert next_state(FREE, FREE, is_nameless=True).classify(is_released=False) is Transition.NONE


def test_the_manager_is_that_of_the_only_entry_that_changed() -> None:
    managers = [make_entry("holderIdentity", manager=name) for name in ("a", "b", "c")]
    first, second, third = list_entries(Raw(to_bytes(managers)))
    assert next_state(HELD, HELD, entries=(first, second), known=(first,)).only_changed_manager == "b"
    assert next_state(HELD, HELD, entries=(first, second, third), known=(first,)).only_changed_manager == ""
    assert next_state(HELD, HELD, entries=(first,), known=(first,)).only_changed_manager == ""
