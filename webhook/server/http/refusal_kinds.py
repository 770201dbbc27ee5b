"""The kinds of refused requests: the values of the label `class` of lease_webhook_malformed."""

from collections.abc import Mapping
from typing import Final

BODY: Final = "body"
OTHER: Final = "other"

OF_CONNECTION: Final[Mapping[int, str]] = {
    400: "framing",
    401: "client",
    403: "client",
    405: "method",
    408: "slow",
    413: "body-size",
    417: "expectation",
    431: "head-size",
    500: "bug",
}
"""By the status with which the port itself refuses a request; 503 is counted as shed."""

OF_APPLICATION: Final[Mapping[int, str]] = {404: "path", 405: "method", 413: "body-size"}
"""By the status with which the Flask application refuses a request; OTHER for any other status."""

OF_REVIEW: Final[Mapping[int, str]] = {413: "body-size", 415: "media-type"}
"""By the status of the response to a body that cannot be decoded as a review; BODY for any other status."""

ALL: Final = tuple(dict.fromkeys((*OF_CONNECTION.values(), *OF_APPLICATION.values(), *OF_REVIEW.values(), BODY, OTHER)))
"""Each kind once."""
