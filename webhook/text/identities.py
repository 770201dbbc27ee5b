"""Identities as a person reads them: the random part of one of client-go is cut to its beginning.

client-go's electors call themselves `<host name>_<UUID>`: a few characters of the UUID tell the processes of a pod
apart, and all of them fill half a line.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

_KEPT: Final = 8
_UUID: Final = re.compile(r"(?<=_)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![\w-])")


def make_shortener(texts: Sequence[str]) -> Callable[[str], str]:
    """Return what cuts the random parts of identities in any of `texts`, or in a part of one.

    A cut one is not cut where another one in the texts looks the same then: whoever may write a lease can choose a
    name that begins like its holder's.
    """
    found = {uuid for text in texts for uuid in _UUID.findall(text)}
    beginnings = Counter(uuid[:_KEPT] for uuid in found)
    cut = {uuid: f"{uuid[:_KEPT]}..." for uuid in found if beginnings[uuid[:_KEPT]] == 1}
    cut = {uuid: short for uuid, short in cut.items() if not any(f"_{short}" in text for text in texts)}
    return lambda text: _UUID.sub(lambda match: cut.get(match[0], match[0]), text)
