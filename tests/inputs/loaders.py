"""The parsers of YAML: libyaml's, where PyYAML has it, and the one in Python."""

from typing import Final

import pytest
import yaml

LOADERS: Final = [
    pytest.param(getattr(yaml, name), id=parser)
    for name, parser in (("CSafeLoader", "libyaml"), ("SafeLoader", "Python"))
    if hasattr(yaml, name)
]
