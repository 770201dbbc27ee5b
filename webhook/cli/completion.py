"""`lease-webhook completion bash|zsh|fish`: completes commands, options, rules, presets and files.

`kubectl_complete-lease` answers kubectl's own completion, for `kubectl lease`:
https://pkg.go.dev/k8s.io/kubectl/pkg/cmd/plugin
"""

import sys

import click
from click.shell_completion import ShellComplete, get_completion_class

from webhook.cli.commands import COMPLETE, PROGRAM
from webhook.cli.lazy_group import Command

_EPILOG = """\
Examples:
  source <(lease-webhook completion bash)     # in ~/.bashrc; bash 4.4 or newer
  source <(lease-webhook completion zsh)      # in ~/.zshrc, after compinit
  lease-webhook completion fish > ~/.config/fish/completions/lease-webhook.fish
"""


@click.command(
    "completion",
    cls=Command,
    help="Prints a script that makes a shell complete commands, options, rules, presets and files.",
    epilog=_EPILOG,
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def command(shell: str) -> int:
    """Print the script for one shell."""
    completion = get_completion_class(shell)
    assert completion is not None
    source = completion(PROGRAM, {}, "lease-webhook", COMPLETE)
    print(source.source_template % source.source_vars())
    return 0


NO_FILES = ":4"
FILES = ":0"
"""What kubectl's completion reads from the last line: whether to complete files (cobra's ShellCompDirective)."""


def complete_for_kubectl() -> None:
    """The console script `kubectl_complete-lease`: its last argument is the word being typed."""
    *before, incomplete = sys.argv[1:] or [""]
    items = ShellComplete(PROGRAM, {}, "kubectl lease", COMPLETE).get_completions(before, incomplete)
    for item in items:
        if item.type == "plain":
            print(item.value, item.help or "", sep="\t")
    print(NO_FILES if items and all(item.type == "plain" for item in items) else FILES)
