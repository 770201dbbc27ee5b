"""`lease-webhook policy schema`: the JSON Schema of policy files."""

import click

from webhook.cli.lazy_group import Command
from webhook.policy.json_schema import schema_text


@click.command(
    "schema",
    cls=Command,
    help="Prints the JSON Schema of policy files, so that an editor can complete and check them.",
    epilog="Example:\n  lease-webhook policy schema > policy.schema.json",
)
def command() -> int:
    """Print the schema."""
    print(schema_text(), end="")
    return 0
