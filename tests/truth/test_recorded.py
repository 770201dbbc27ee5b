"""What is claimed of incidents that were recorded on real API servers is true, by the same predicates."""

from collections.abc import Sequence

import pytest

from tests.truth.inputs import Kind
from tests.truth.recorded import FILES, evaluate_incident, history_of, names


def test_the_log_of_an_incident_shows_who_worked() -> None:
    """Nearly always one process works; the lease names it then."""
    assert sum(any(process.works for process in history_of(one).processes) for one in names()) > 40


def check(incidents: Sequence[str], kind: Kind, claims: int) -> None:
    """Assert that no claim about the incidents is false, and that there are more than so many."""
    incident_played = [(name, one) for name in incidents for one in evaluate_incident(name, kind)]
    assert [(name, one.claim) for name, one in incident_played if not one.is_true] == []
    assert len(incident_played) > claims


@pytest.mark.parametrize("kind", FILES)
def test_no_claim_about_every_eighth_recorded_incident_is_false(kind: Kind) -> None:
    check(names()[::8], kind, 30)


@pytest.mark.deep
@pytest.mark.parametrize("kind", FILES)
def test_no_claim_about_a_recorded_incident_is_false(kind: Kind) -> None:
    check(names(), kind, 250)
