"""The texts of denials, measured on all that the stored outputs of commands hold."""

import gzip
import json
from statistics import median

from lab.outputs.__main__ import STORED


def test_half_of_the_denials_say_it_in_200_characters() -> None:
    """Up to the sender, who is named at the end: a terminal shows that much in two lines."""
    messages = {
        verdict["message"]
        for line in gzip.decompress(STORED.read_bytes()).splitlines()
        for text in json.loads(line)["out"].splitlines()
        if text.startswith('{"source"')
        and text.endswith("}")
        and not (verdict := json.loads(text)).get("allowed", True)
    }
    assert len(messages) > 30
    assert median(message.index(" (lease webhook, rule") for message in messages) <= 200
