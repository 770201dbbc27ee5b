"""What is written reads back, document by document, without aliases."""

import yaml

from webhook.yaml_writer import stream

SHARED = {"b": "1", "a": ["yes", "two\nlines\n"]}


def test_documents_read_back_in_their_order() -> None:
    text = stream([{"z": SHARED, "y": SHARED}, {"x": "long " * 1000}])
    assert list(yaml.safe_load_all(text)) == [{"z": SHARED, "y": SHARED}, {"x": "long " * 1000}]
    assert text.startswith("---\nz:\n  b: '1'\n  a:\n  - 'yes'\n  - |\n    two\n")
    assert "&" not in text
