"""JSON that nests to thousands of levels, which no encoder takes and no decoder gives back: its deep place is one text.

`"<deep 5000>"` stands for 5000 objects of one key `f:a` in each other.
"""

import json
import re
from typing import Any, Final

_DEEP: Final = re.compile(r'"<deep (\d+)>"')
_CHAIN: Final = re.compile(r'((?:\{"f:a":){20,})\{\}(\}+)')
_OPENING: Final = '{"f:a":'


def encode(document: Any) -> bytes:
    """The document as JSON, its deep places written out."""
    return written_out(json.dumps(document, separators=(",", ":")).encode())


def written_out(text: bytes) -> bytes:
    """The same JSON with its deep places written out."""
    return _DEEP.sub(lambda match: _chain(int(match[1])), text.decode()).encode() if b'"<deep ' in text else text


def decode(text: bytes) -> Any:
    """The reverse of `encode`: long chains become one text each."""
    return json.loads(_CHAIN.sub(_shortened, text.decode()))


def _chain(levels: int) -> str:
    return _OPENING * levels + "{}" + "}" * levels


def _shortened(match: re.Match[str]) -> str:
    levels = len(match[1]) // len(_OPENING)
    return f'"<deep {levels}>"' + match[2][levels:]
