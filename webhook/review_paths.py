"""The HTTP paths at which reviews are answered."""

import re
from typing import Final

VALIDATE: Final = "/validate"
REVIEW_PATH: Final = re.compile(r"/validate(-coordination-k8s-io-v[0-9]+((alpha|beta)[0-9]+)?-(lease|leasecandidate))?")
"""A short one, and controller-runtime's naming for each version and kind."""
