"""The texts that a denied reader compares with are those of the rules."""

from tests.factories import NOW, make_lease, make_review, put, to_bytes
from tests.rules.findings import RIVAL, by_user, take, update, written
from tools.docs.pages import DOCS, find_blocks
from webhook.admission.evaluate import evaluate
from webhook.admission.policy.file import load
from webhook.browser.kubectl import format_as_kubectl
from webhook.kubernetes.review import decode
from webhook.kubernetes.times import SECOND

ABSURD = make_review(
    put("request.name", "db"),
    new=make_lease(put("metadata.name", "db"), put("spec.leaseDurationSeconds", 2_147_483_647)),
)
STEAL = update(
    written(take(RIVAL), put("spec.leaseTransitions", 6), at="2025-11-20T12:00:04Z"), review=[by_user("dev")]
)


def test_texts_of_kubectl() -> None:
    blocks = [block.text.strip() for block in find_blocks(DOCS / "denied.md")]
    for review, preset in ((ABSURD, "standard"), (STEAL, "strict")):
        request = decode(to_bytes(review))
        assert format_as_kubectl(evaluate(request, load(preset), NOW + 4 * SECOND), request) in blocks
