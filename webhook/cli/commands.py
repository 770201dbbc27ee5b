"""The commands of `lease-webhook`, and how one of them is run.

A command is a module with a `command`, listed here with its summary. The lists are in the order of `--help`.
"""

import io
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from webhook.api.text import escape
from webhook.cli.lazy_group import SETTINGS, Lazy, LazyGroup

POLICY: Final = LazyGroup(
    "policy",
    {
        "check": Lazy("webhook.cli.policy_check", "check policy files"),
        "show": Lazy("webhook.cli.policy_show", "show the modes and numbers that apply to a lease, and why"),
        "schema": Lazy("webhook.cli.policy_schema", "print the JSON Schema of policy files, for editors"),
    },
    "check or show policy files",
    help="A policy file says how strict the rules are, for whom, and who may write which lease.",
)

SUGGEST: Final = LazyGroup(
    "suggest",
    {
        "bindings": Lazy(
            "webhook.cli.suggest_bindings", "print bindings: who may write which lease, from what was seen"
        ),
        "rbac": Lazy("webhook.cli.suggest_rbac", "print the smallest Roles for what was seen"),
        "exemptions": Lazy("webhook.cli.suggest_exemptions", "print the narrowest exemptions for what was denied"),
        "fence": Lazy("webhook.cli.suggest_fence", "print a fence for the resources of an operator"),
    },
    "propose roles and parts of a policy file",
    help="Reads what happened in a cluster, or its roles, and prints a proposal with the evidence. Nothing is applied.",
)

EXPORT: Final = LazyGroup(
    "export",
    {"fence": Lazy("webhook.cli.export_fence", "print policies that let only the holder of a lease write")},
    "print objects for the API server",
    help="Prints objects for the API server. Nothing is applied: read them, then pipe them to kubectl.",
)

PROGRAM: Final = LazyGroup(
    "lease-webhook",
    {
        "serve": Lazy("webhook.cli.serve", "answer the API server over TLS"),
        "check": Lazy("webhook.cli.check", "evaluate files: reviews and manifests"),
        "replay": Lazy("webhook.cli.replay", "evaluate recorded reviews again; compare two policies"),
        "test": Lazy("webhook.cli.test", "compare verdicts with the expected ones in test files"),
        "make-review": Lazy("webhook.cli.make_review", "make an AdmissionReview from manifests and a user"),
        "rules": Lazy("webhook.cli.rules", "list the rules, or explain one"),
        "policy": POLICY,
        "suggest": SUGGEST,
        "export": EXPORT,
        "install": Lazy("webhook.cli.install", "print the objects of an installation"),
        "certs": Lazy("webhook.cli.certs", "make, renew or check certificates"),
        "audit": Lazy("webhook.cli.audit", "find what is wrong with stored leases"),
        "why": Lazy("webhook.cli.why", "show who leads, and why the leader changed"),
        "timeline": Lazy("webhook.cli.timeline", "draw who held which lease when"),
        "doctor": Lazy("webhook.cli.doctor", "check whether webhook configurations are safe for leases"),
        "completion": Lazy("webhook.cli.completion", "print the shell completion of this program"),
    },
    "",
    context_settings=SETTINGS,
    help="Validates Kubernetes Leases and LeaseCandidates, as an admission webhook and in files and pipelines, and "
    "shows what happened to them.",
    epilog="""\
Exit codes:
  0  good          1  something is denied, or needs attention
  2  wrong usage, or something could not be read

lease-webhook COMMAND --help explains one command.
Color only on a terminal; NO_COLOR turns it off.
""",
)
click.version_option(package_name="lease-webhook", prog_name="lease-webhook", message="%(prog)s %(version)s")(PROGRAM)

COMPLETE: Final = "_LEASE_WEBHOOK_COMPLETE"
"""The environment variable through which the shell requests completions; click defines its values."""


def run(argv: Sequence[str], name: str) -> int:
    """Run one command and return its exit code; `argv` is without the program's name, which is `name`."""
    _never_fail_to_print()
    try:
        if instruction := os.environ.get(COMPLETE):
            from click.shell_completion import shell_complete  # noqa: PLC0415 - for the shell only

            return shell_complete(PROGRAM, {}, name, COMPLETE, instruction)
        with PROGRAM.make_context(name, [*argv]) as context:
            code: int = PROGRAM.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as without_arguments:
        print(without_arguments.format_message(), file=sys.stderr)
        return without_arguments.exit_code
    except click.ClickException as problem:
        return _complain(problem, name)
    finally:
        # If the output cannot be written, the exit code must not be that of a success.
        sys.stdout.flush()
    return code


def _complain(problem: click.ClickException, name: str) -> int:
    """Print on standard error why a command cannot continue; gives the exit code."""
    command = problem.ctx.command_path if isinstance(problem, click.UsageError) and problem.ctx else ""
    text = problem.format_message()
    if isinstance(problem, click.NoSuchOption | click.NoSuchCommand) and problem.possibilities:
        text = f"{problem.message} Did you mean {problem.possibilities[0]}?"
    hint = f" (see {command} --help)" if command else ""
    print(escape(" ".join(f"{command or name}: {text}{hint}".split())), file=sys.stderr)
    return problem.exit_code


def _never_fail_to_print() -> None:
    """A terminal that cannot show a character gets its escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
