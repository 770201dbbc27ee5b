"""The inspection of a certificate in a process of its own, whose library would stay in the memory of each worker."""

import os
import subprocess
import sys
from functools import lru_cache
from typing import Final

from msgspec import DecodeError, json

from webhook.certificates.files import Certificate, Inspection, InspectionRequest, Pair, Unusable
from webhook.server.logs import LOG

_INSPECTION_SECONDS: Final = 30  # it takes a tenth of one where the processor is not busy


def inspect_apart(pair: Pair, names: frozenset[str] = frozenset()) -> Certificate:
    """Inspect a pair in a process of its own, because cryptography would stay in memory with 9 MiB. Raises Unusable."""
    inspection = _inspect_apart(InspectionRequest(pair, names))
    if inspection.certificate is None:
        raise Unusable(inspection.unusable)
    return inspection.certificate


# A worker inherits what its master remembers. A pair that becomes valid is not inspected again, nor one that is refused
# for as long as it lies there.
@lru_cache(maxsize=1)
def _inspect_apart(request: InspectionRequest) -> Inspection:
    # It imports from where we do; -P: not from the working directory.
    command, paths = [sys.executable, "-P", "-m", "webhook.certificates.inspect"], os.pathsep.join(sys.path)
    try:
        done = subprocess.run(  # noqa: S603 - a module of our own
            command,
            input=json.encode(request),
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONPATH": paths},
            timeout=_INSPECTION_SECONDS,
        )
        return json.decode(done.stdout, type=Inspection)
    except (OSError, subprocess.SubprocessError, DecodeError) as error:
        # A limit on processes, say, or a Python that cannot be started in this way, must not cost a certificate.
        LOG.warning("the server itself inspects a certificate", extra={"fields": {"problem": str(error)}})
        from webhook.certificates.inspect import make_inspection  # noqa: PLC0415 - see above

        return make_inspection(request)
