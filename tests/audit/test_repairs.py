"""Our own strict preset admits each repair of a frozen lease, whoever runs it."""

import json
import re
from typing import Final

import pytest

from tests.factories import NOW, Tweak, changed, make_lease, make_review, put, to_bytes
from tests.history.test_status import status_after
from tests.rules.findings import by_user
from webhook.admission.evaluate import evaluate
from webhook.admission.policy.file import load
from webhook.analysis.audit.repairs import make_repair_command
from webhook.analysis.history.status import LeaseState
from webhook.kubernetes.review import decode
from webhook.kubernetes.times import SECOND, format_micro_time
from webhook.text.commands import fill_in

_PATCH: Final = re.compile(r"-p\s+'(.*)'$")
_DATE: Final = re.compile(r"'\$\(date [^)]*\)'")
_LATER: Final = NOW + 10 * SECOND


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put("spec.leaseDurationSeconds", 2**31 - 1), id="an absurd duration"),
        pytest.param(put("spec.leaseTransitions", 2**31 - 1), id="a count at its maximum"),
        pytest.param(put("spec.renewTime", "2035-11-20T12:00:00.000000Z"), id="a time far ahead"),
        pytest.param(put("spec.renewTime", "10000-01-01T00:59:59.999999Z"), id="a time that clients cannot read"),
    ],
)
def test_a_repair_is_admitted_and_repairs(tweak: Tweak) -> None:
    block = status_after(tweak, after=10).block
    assert block is not None
    repair = make_repair_command(block)
    assert fill_in(repair, "shop", "db").startswith("kubectl -n shop patch lease db ")
    match = _PATCH.search(repair)
    assert match is not None
    spec = json.loads(_DATE.sub(format_micro_time(_LATER), match[1]))["spec"]
    repairs = [put(f"spec.{name}", value) for name, value in spec.items()]
    review = changed(make_review(old=make_lease(tweak), new=make_lease(tweak, *repairs)), by_user("alice"))
    assert evaluate(decode(to_bytes(review)), load("strict"), _LATER).allowed
    assert status_after(tweak, *repairs, after=10).state is LeaseState.LIVE


def test_a_repair_of_renew_time_writes_the_present_one() -> None:
    block = status_after(put("spec.renewTime", "2035-11-20T12:00:00.000000Z")).block
    assert block is not None
    assert "$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)" in make_repair_command(block)
