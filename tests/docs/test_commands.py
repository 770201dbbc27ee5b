"""Every block of commands is run here, or says in its first line what it needs that is not here: sh needs=cluster.

Those that are run see what a reader would have: files of the names in the text, and a kubectl that lists leases. Of the
others the shell's grammar, our own options, targets of make and paths are examined.
"""

import contextlib
import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tools.docs.commands import can_run_here
from tools.docs.pages import ROOT, Block, extract_prose, find_blocks, find_examples, find_pages
from webhook.cli.commands import PROGRAM

NEEDS = {
    "cluster": "pods or objects of a cluster; `make cluster` and `make e2e` run the important ones",
    "docker": "docker and a registry",
    "duckdb": "duckdb; `make fleet` runs the same files",
    "gunicorn": "a server that goes on; tests/server/test_wsgi.py starts it",
    "jq": "jq",
    "kind": "kind and docker; `make cluster` runs the script that it calls",
    "kustomize": "kustomize, which `make manifests` builds",
    "npm": "npm and node; `make page` builds the page and opens it",
    "minutes": "longer than a test may take, or goes on until Ctrl-C",
    "release": "files of a release",
}
COMMAND = re.compile(
    r"^(?:\$ )?(?:(?:\.venv/bin/)?lease-webhook|kubectl|helm|make|docker|kind|git|curl|jq|sudo|\./deploy)\b",
    re.MULTILINE,
)
INLINE = re.compile(r"`((?:(?:\.venv/bin/)?lease-webhook|kubectl lease) [^`]+)`")
KUBECTL = """\
#!/bin/sh
# A kubectl with the plugin, which lists what was recorded; every other verb needs a cluster.
case "$*" in
lease*) shift && exec kubectl-lease "$@" ;;
*validatingwebhook*) cat configuration.yaml ;;
get*lease*) cat listed.json ;;
*) echo "kubectl $*: this test has no cluster" >&2 && exit 9 ;;
esac
"""
DATA = ROOT / "tests" / "data"
INCIDENT = DATA / "incidents" / "leader-killed"


PAGES = [page for page in find_pages() if "tests" not in page.relative_to(ROOT).parts]
SHELL = [
    pytest.param(block, id=f"{page.name}: {block.text.splitlines()[0][:60]}")
    for page in PAGES
    for block in find_blocks(page)
    if block.language == "sh"
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_block_of_commands_says_so_and_what_it_needs(page: Path) -> None:
    commands_here = {one.text for one in find_examples(page) if can_run_here(one)}
    for block in find_blocks(page):
        if COMMAND.search(block.text):
            assert block.language in {"sh", "console", "yaml"}, f"not said to be commands: {block.text}"
        assert set(block.needs) <= set(NEEDS)
        if block.language == "console" and not block.needs:
            commands = {f"$ {text}" for text in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]}
            assert commands <= commands_here, "this is not run: add needs=cluster"


def shop(file: Path) -> str:
    """An input of the incident, in which the lease is the one of the pages, at the time of the pages."""
    text = gzip.decompress(file.read_bytes()).decode()
    text = text.replace('"namespace":"payments"', '"namespace":"shop"').replace(
        '"name":"payments"', '"name":"checkout"'
    )
    return text.replace("T04:12", "T12:02").replace("T04:13", "T12:03")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that the pages name, a kubectl, and our program."""
    pages = tmp_path_factory.mktemp("pages")
    for folder in ("bin", "history", "audit/prod-1"):
        (pages / folder).mkdir(parents=True)
    for file in ("listed.json", "leases.json", "dump.json", "history/1.jsonl"):
        (pages / file).write_text(shop(INCIDENT / "leases.json.gz"))
    for file in ("audit.log", "audit/prod-1/audit.jsonl"):
        (pages / file).write_text(shop(INCIDENT / "audit.log.gz"))
    shutil.copyfile(ROOT / "docs" / "examples" / "standard.yaml", pages / "policy.yaml")
    shutil.copyfile(DATA / "doctor" / "safe-as-shipped.yaml", pages / "configuration.yaml")
    kubectl = pages / "bin" / "kubectl"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    return pages


@pytest.mark.slow
@pytest.mark.parametrize("block", [case for case in SHELL if not case.values[0].needs])  # type: ignore[union-attr]
def test_commands_that_need_nothing_run(block: Block, here: Path) -> None:
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{here}/bin:{programs}:{os.environ['PATH']}", "COLUMNS": "100"}
    # Exit code 1 is an answer: a finding, a refusal.
    script = f"set -u -o pipefail\ntrap 'code=$?; [ $code -le 1 ] || exit $code' ERR\n{block.text}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=here, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode <= 1, done.stderr


@pytest.mark.parametrize("block", [case for case in SHELL if case.values[0].needs])  # type: ignore[union-attr]
def test_commands_that_need_more_are_well_formed(block: Block) -> None:
    done = subprocess.run(["bash", "-n", "-c", block.text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in commands(block.text):
        while words and re.fullmatch(r"[A-Z_]+=.*|sudo", words[0]):
            words.pop(0)
        if words[:1] == ["make"]:
            assert {word for word in words[1:] if "=" not in word} <= targets
        if words[:2] == ["kubectl", "lease"] or words[:1] in (["lease-webhook"], [".venv/bin/lease-webhook"]):
            parsed(words[2:] if words[0] == "kubectl" else words[1:])
        for word in words:
            if re.match(r"(\./)?(deploy|docs|tests)/(?!lease-webhook$)", word):
                assert (ROOT / word).exists(), word


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_command_in_a_sentence_is_one_of_ours(page: Path) -> None:
    for text in INLINE.findall(extract_prose(page)):
        (words, *_) = commands(text)
        if not re.search(r" [A-Z]{4,}\b|\.\.\.", text):
            # A sentence may name a command without what it needs.
            with contextlib.suppress(click.MissingParameter, click.exceptions.Exit, click.exceptions.NoArgsIsHelpError):
                parsed(words[2:] if words[0] == "kubectl" else words[1:])


def commands(text: str) -> Iterator[list[str]]:
    """The simple commands of a script, without comments, here-documents and redirections."""
    text = re.sub(r"<<'EOF'.*?^EOF$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"(^|\s)# .*$", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";|&<>\n")
    lexer.whitespace = " \t"
    lexer.whitespace_split = True
    words: list[str] = []
    is_target = False
    for token in [*lexer, ";"]:
        if token in {"<", ">", ">>"}:
            is_target = True
        elif set(token) <= set(";|&\n"):
            yield words
            words = []
        elif not is_target:
            words.append(token)
        else:
            is_target = False


def parsed(words: list[str]) -> None:
    """Parse a command line of ours, which raises if an option, a command or an argument is wrong."""
    context = PROGRAM.make_context("lease-webhook", [*words])
    command: click.Command = PROGRAM
    while isinstance(command, click.Group):
        name, chosen, words = command.resolve_command(context, words)
        assert chosen
        command = chosen
        context = command.make_context(name, [*words], parent=context)


def test_the_list_of_targets_fits_a_terminal_and_leaves_nothing_out() -> None:
    printed = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert max(len(line) for line in printed.splitlines()) <= 80
    listed = re.findall(r"^([a-z0-9-]+):.*?## (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert printed.split() == [word for name, text in sorted(listed) for word in ("make", name, *text.split())]
