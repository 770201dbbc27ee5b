"""Reviews: any bytes get a verdict that an API server accepts, or a 4xx; the form of the JSON changes nothing."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.acceptance import Response, accept, is_plain
from tests.recordings import recordings
from tests.review_rows import WHEN
from webhook.admission.policy.file import load
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.server.reviewer import ReviewResponse, respond

POLICIES: Final = tuple(load(name) for name in ("observe", "standard", "strict"))
OFF: Final = parse("apiVersion: lease-webhook/v1\nmode: off\n")
DATA: Final = Path(__file__).parents[1] / "data"
SHOP: Final = load(str(DATA / "policies" / "shop.yaml"))
"""A policy with entries of every kind."""
_MAX_SEED: Final = 20_000
_REFUSALS: Final = {400, 413, 415}


def check(body: bytes) -> None:
    """Evaluate a body under each policy; raises AssertionError for a law that does not hold."""
    responses = assert_answered(body)
    if rewritten := rewrite(body):
        for policy, response in zip(POLICIES, responses, strict=True):
            again = respond(rewritten, policy, WHEN)
            # Of several fields of wrong types the first is named, so only the decision is the same then.
            texts = (b"", b"") if _has_wrong_types(response) else (response.body, again.body)
            decisions = (response.status, _code(response), texts[0]), (again.status, _code(again), texts[1])
            assert decisions[0] == decisions[1], f"by its form alone: {response.body!r}, {again.body!r}"


def seeds() -> Iterator[bytes]:
    """Yield recorded reviews of each client and kind of write, and one of each kind of defect."""
    seen = set()
    for recording in recordings():
        kind = recording.client, recording.file.split("-")[1]
        if kind not in seen and len(recording.body) <= _MAX_SEED:
            seen.add(kind)
            yield recording.body
    for path in sorted((DATA / "reviews").glob("*.json")):
        yield from map(str.encode, path.read_text().splitlines()[:1])


def assert_answered(body: bytes) -> Sequence[ReviewResponse]:
    """Return the responses under POLICIES, after every check of a response by itself and of one against another."""
    responses = [assert_response(body, policy) for policy in (*POLICIES, SHOP)][: len(POLICIES)]
    assert respond(body, POLICIES[1], WHEN).body == responses[1].body, "the same review, another response"
    off = respond(body, OFF, WHEN)
    answers = [_answer_of(response) for response in responses]
    assert len({response.status for response in responses}) == 1, "the policy decides whether a body is a review"
    observed, standard, strict = answers
    if observed is None or standard is None or strict is None:
        return responses
    assert (answer := _answer_of(off)), "the kill switch refuses a body that is a review"
    assert answer.allowed, "the kill switch denies"
    # Of a key that stands twice in one object, which no API server writes, the kill switch may read the first one.
    assert answer.uid == standard.uid or not rewrite(body), "the kill switch answers another request"
    assert observed.allowed or _code(responses[0]) == 400, "observe denies"
    assert standard.allowed or not strict.allowed, "standard denies what strict allows"
    return responses


def assert_response(body: bytes, policy: Policy) -> ReviewResponse:
    """Return the response to a body under a policy, which kube-apiserver accepts, or which is one line with a 4xx."""
    response = respond(body, policy, WHEN)
    if response.status == 200:
        assert response.request
        accept(response.body, response.request.uid, response.request.api_version)
    else:
        assert response.status in _REFUSALS
        assert response.verdict is None
        assert len(response.body) < 1000
        assert is_plain(response.body.decode().removesuffix("\n"))
    return response


def rewrite(body: bytes) -> bytes:
    """Return the same JSON with other white space and its keys in reverse; b"" where a value could change by that."""
    try:
        value = json.loads(
            body.decode(),
            object_pairs_hook=_reverse,
            parse_float=_refuse,
            parse_constant=_refuse,
            parse_int=_whole,
        )
        return json.dumps(value, indent=1).encode()
    except (ValueError, RecursionError):
        return b""


def _answer_of(response: ReviewResponse) -> Response | None:
    if response.status != 200:
        return None
    assert response.request
    return accept(response.body, response.request.uid, response.request.api_version)


def _code(response: ReviewResponse) -> int:
    """Return the code of a verdict, else that of HTTP."""
    return response.verdict.code if response.verdict else response.status


def _has_wrong_types(response: ReviewResponse) -> bool:
    return bool(response.request and (response.request.contradiction or response.request.object_errors))


def _reverse(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(reversed(pairs))
    if len(members) < len(pairs):
        raise ValueError("of a repeated key one value counts")
    return members


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} may be written in another way")


def _whole(text: str) -> int:
    return int(text) if text != "-0" else int(_refuse(text))
