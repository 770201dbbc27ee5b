"""deploy/try, the steps of docs/kind.md after the image is there: from nothing to a steal that is refused."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

from lab.cluster.world import ROOT, World
from lab.e2e.world import Row

SHOWN = {
    "the webhook is in force": "in force: the webhook refused",
    "`why` says who stopped": "checkout-a",
    "`why` says how the lease was lost": "leader-lost",
    "the steal is refused": "takeover-across-namespaces",
}


def try_script(world: World) -> Iterator[Row]:
    """Run the script as a person would; it needs a cluster without the webhook, and leaves one."""
    environment = {
        **os.environ,
        "PATH": f"{world.program.parent}:{os.environ['PATH']}",
        "KUBECONFIG": str(world.kubeconfig),
        "TRY_DIRECTORY": str(world.directory / "try"),
    }
    begin = time.monotonic()
    command = [str(ROOT / "deploy" / "try"), world.image]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    output = result.stdout + result.stderr
    print(output, file=sys.stderr)
    missing = [claim for claim, text in SHOWN.items() if text not in output]
    observation = (
        f"exit {result.returncode}, {seconds:.0f} s; {', '.join(missing) or 'every step shows what the page says'}"
    )
    yield Row(
        "deploy/try: apply, proof, a broken election, why, a steal", observation, not missing and result.returncode == 0
    )
    world.remove()
    for name in ("lease-demo", "lease-demo-thief"):
        world.kubectl.run("delete", "namespace", name, "--ignore-not-found", "--wait=false")
    world.kubectl.run("delete", "clusterrole", "lease-demo", "--ignore-not-found")
