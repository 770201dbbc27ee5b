"""The flow schemas for lease writes: electors come first, and others write the same leases one at a time."""

from tests.deploy.sources import DEPLOY, documents

LEVEL, ELECTORS, OTHERS = documents(DEPLOY / "lease-writes" / "flow.yaml")
PLACES = ("apiGroups", "resources", "namespaces")


def test_others_have_no_seat_and_borrow_none() -> None:
    assert LEVEL["spec"]["limited"] == {
        "nominalConcurrencyShares": 0,
        "lendablePercent": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"},
    }
    assert OTHERS["spec"]["priorityLevelConfiguration"] == {"name": LEVEL["metadata"]["name"]}


def test_electors_are_matched_before_the_others_and_after_those_of_kubernetes() -> None:
    assert 200 < ELECTORS["spec"]["matchingPrecedence"] < OTHERS["spec"]["matchingPrecedence"]
    assert ELECTORS["spec"]["priorityLevelConfiguration"] == {"name": "leader-election"}


def test_both_are_about_the_same_leases() -> None:
    (elect,), (write,) = (one["spec"]["rules"][0]["resourceRules"] for one in (ELECTORS, OTHERS))
    assert {name: elect[name] for name in PLACES} == {name: write[name] for name in PLACES}
    assert "get" not in write["verbs"]
    assert {"create", "update", "patch"} <= {*elect["verbs"]} & {*write["verbs"]}
