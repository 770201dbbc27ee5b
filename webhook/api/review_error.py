"""Why a body gets an HTTP error instead of a verdict."""

from typing import Final

LONGEST_UID: Final = 256


class ReviewError(Exception):
    """The body is not a review that can be answered.

    `status` is the HTTP status, `text` one plain line; `user` is the writer of a body that no API server sends.
    """

    def __init__(self, status: int, text: str, user: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.user = user


def not_a_review() -> ReviewError:
    """The error for JSON that is something else."""
    return ReviewError(400, "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1")


def checked_uid(uid: object) -> str:
    """The uid of a request, which the response must repeat.

    Raises:
        ReviewError: it is missing, not a string, or longer than LONGEST_UID.

    """
    if not isinstance(uid, str) or not uid:
        raise ReviewError(400, "the request has no uid")
    if len(uid) > LONGEST_UID:
        raise ReviewError(400, f"the uid of the request is longer than {LONGEST_UID} characters")
    return uid
