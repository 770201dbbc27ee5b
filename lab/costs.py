"""The cost of the commands for large inputs, beside their bars: `python -m lab.costs`, two minutes.

Times are those of the processor, so that other work on the machine counts little; the start of the program is taken off
where two sizes are compared. Exit code 1 if a bar is missed.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import yaml

from lab.child_cost import Cost, measure_cost
from tests.factories import make_lease, put

FEW: Final = 200
MANY: Final = 20_000
HELM: Final = 2_000

MAX_PER_DOCUMENT: Final = 2.2
"""Cost of one of MANY documents, against that of one of FEW."""
MAX_HELM_SECONDS: Final = 2.0
MAX_LIST_MEBIBYTES: Final = 250
CONFIGURATION: Final = Path(__file__).parents[1] / "tests" / "data" / "doctor" / "safe-as-shipped.yaml"
"""A configuration in which `doctor` finds nothing: it exits with 0 unless it rejects the input that follows."""

_CONFIG_MAP: Final = """\
# Source: chart/templates/config-map-{0}.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: config-map-{0}
  labels:
    app.kubernetes.io/name: shop
    app.kubernetes.io/managed-by: Helm
data:
  number: "{0}"
  application.conf: |
    timeout = 5
    retries = 3
"""


def make_documents(count: int) -> Iterator[str]:
    """Yield leases as separate documents."""
    template = _make_template()
    for number in range(count):
        yield f"---\n{template.replace('checkout', f'checkout-{number}')}"


def make_list(count: int) -> Iterator[str]:
    """Yield leases in a List, with the keys in the order of kubectl."""
    template = "- " + _make_template().strip().replace("\n", "\n  ") + "\n"
    yield "apiVersion: v1\nitems:\n"
    for number in range(count):
        yield template.replace("checkout", f"checkout-{number}")
    yield "kind: List\nmetadata:\n  resourceVersion: ''\n"


def make_helm_output(count: int) -> Iterator[str]:
    """Yield the output of Helm: nothing to evaluate."""
    for number in range(count):
        yield f"---\n{_CONFIG_MAP.format(number)}"


def _make_template() -> str:
    return yaml.safe_dump(make_lease(put("metadata.labels", {"app": "checkout"})))


def measure(folder: Path, command: str, content: Callable[[int], Iterator[str]], count: int) -> Cost:
    """Run one command on generated input. Raises RuntimeError if it refuses the input, which would be cheap."""
    path = folder / "input.yaml"
    words = [sys.executable, "-m", "webhook", command]
    with path.open("w") as file:
        if command == "doctor":
            file.write(f"{CONFIGURATION.read_text().rstrip()}\n---\n")
            words.append("--input")
        else:
            words += ["--require", str(0 if content is make_helm_output else count)]
        file.writelines(content(count))
    return measure_cost([*words, str(path)], statuses=(0,))


def main() -> int:
    """Measure everything and print a table."""
    argparse.ArgumentParser(prog="python -m lab.costs", description=__doc__.partition("\n")[0]).parse_args()
    rows: list[tuple[str, str, str, bool]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for command in ("check", "doctor"):
            start = min(measure(folder, command, make_documents, 1).seconds for _ in range(3))
            few = min(measure(folder, command, make_documents, FEW).seconds for _ in range(3)) - start
            many = measure(folder, command, make_documents, MANY)
            ratio = ((many.seconds - start) / MANY) / (few / FEW)
            what = f"{command}: one of {MANY} Leases, against one of {FEW}"
            rows.append((what, f"{ratio:.2f} x", f"{MAX_PER_DOCUMENT} x", ratio <= MAX_PER_DOCUMENT))
            helm = measure(folder, command, make_helm_output, HELM).seconds
            what = f"{command}: {HELM} ConfigMaps of a Helm rendering"
            rows.append((what, f"{helm:.2f} s", f"{MAX_HELM_SECONDS} s", helm <= MAX_HELM_SECONDS))
            held = measure(folder, command, make_list, MANY).mebibytes
            what = f"{command}: {MANY} Leases in one List"
            rows.append((what, f"{held:.0f} MiB", f"{MAX_LIST_MEBIBYTES} MiB", held <= MAX_LIST_MEBIBYTES))
    print("| input | measured | at most |\n|---|---|---|")
    for what, figure, most, is_good in rows:
        print(f"| {what} | {figure}{'' if is_good else ' (missed)'} | {most} |")
    return 0 if all(is_good for *_, is_good in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
