"""The texts of denials, measured on all recorded reviews."""

from statistics import median

from tests.recordings import recordings
from webhook.admission.policy.file import load
from webhook.server.reviewer import respond


def test_half_of_the_denials_say_it_in_200_characters() -> None:
    """Up to the sender, who is named at the end: a terminal shows that much in two lines."""
    replies = (respond(one.body_without_exemption(), load("strict"), one.received) for one in recordings())
    messages = {reply.verdict.message for reply in replies if reply.verdict and not reply.verdict.allowed}
    assert len(messages) > 30
    assert median(message.index(" (lease webhook, rule") for message in messages) <= 200
