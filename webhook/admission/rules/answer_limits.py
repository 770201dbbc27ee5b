"""How much an answer says: what a verdict keeps, and what of it a client can be shown.

They bound one list after another, each a part of the one before: findings, causes of a denial, sentences of its
message. A number changed here alone may be without effect, because the next one cuts first.
"""

from typing import Final

MAX_FINDINGS: Final = 50
"""Findings that a verdict carries, and that one rule makes: an object may have hundreds of thousands of wrong items."""

MAX_CAUSE_BYTES: Final = 24 * 1024
"""Bytes of JSON of all causes of a denial, one for each fact; the whole response stays below 64 KiB.

kubectl prints the causes of a 422, and the message of a 403.
"""

MAX_MESSAGE_SENTENCES: Final = 10
"""Causes that the message of a denial repeats as sentences, for clients that show no causes."""

MAX_MESSAGE_BYTES: Final = 12 * 1024
"""Bytes of JSON that these sentences take."""

MAX_WARNING_CHARACTERS: Final = 256
"""Characters to which the API server cuts warnings that exceed a budget: `pkg/endpoints/filters/warning.go`."""

MAX_WARNINGS_CHARACTERS: Final = 4096
"""Characters of all warnings of a request; kube-apiserver drops what goes beyond."""
