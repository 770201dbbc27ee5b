"""`lease-webhook completion bash|zsh|fish`: print what completes commands, options, rules, presets and files."""

import click
from click.shell_completion import get_completion_class

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
    help="Prints a script with which a shell completes commands, options, rules, presets and files.",
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
