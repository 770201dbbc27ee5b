"""`make programs`: build the programs of the slower suites, so that none of them waits for a compiler.

`--first` builds only what `make e2e` on the newest and the oldest version needs, `--rest` what other suites need.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from lab.bench.toolchain import MissingError, build_go_program
from lab.cluster.programs import build_node_programs
from lab.e2e.definitions import WRITTEN, find_definitions
from lab.e2e.toolchain import (
    VERSIONS,
    MissingToolchainError,
    build,
    build_all_binaries,
    build_fence_program,
    build_promtool,
)
from lab.evidence.toolchain import build_field_manager
from lab.spec.__main__ import install_packages
from lab.torture.electors import build_languages, build_porcupine
from tools.rendered import chart

Program = Callable[[], object]

FIRST: Sequence[tuple[str, Program]] = (
    *((f"Kubernetes {version}", partial(build_all_binaries, version)) for version in (VERSIONS[0], VERSIONS[-1])),
    ("custom resource definitions", partial(find_definitions, *WRITTEN)),
    ("TLC and Z3", install_packages),
)
REST: Sequence[tuple[str, Program]] = (
    ("loader", partial(build_go_program, "loader")),
    ("controllers of torture", build_fence_program),
    ("porcupine", build_porcupine),
    ("electors in Java and Rust", build_languages),
    ("node", build_node_programs),
    ("field manager", build_field_manager),
    ("helm", chart.find_helm),
    ("registry", partial(build, Path(chart.__file__).parent / "go" / "registry", ".", "registry")),
    ("promtool", build_promtool),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build in this order. Print the programs that cannot be had here; the suite that needs one decides."""
    parser = argparse.ArgumentParser(prog="python -m lab.programs", description=__doc__)
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--rest", action="store_true")
    options = parser.parse_args(arguments)
    choices = [
        *(FIRST if options.first or not options.rest else ()),
        *(REST if options.rest or not options.first else ()),
    ]
    for name, program in choices:
        began = time.monotonic()
        try:
            program()
        except (MissingToolchainError, MissingError) as error:
            print(f"{name}: {error}", flush=True)
        else:
            print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
