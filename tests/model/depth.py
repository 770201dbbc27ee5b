"""How far the searches go: `make test` keeps to what takes seconds, `make model` asks for more."""

import os
from typing import Final

MORE: Final = int(os.environ.get("LEASE_MODEL_DEPTH", "0"))
"""Steps beyond the usual depth of every search."""
