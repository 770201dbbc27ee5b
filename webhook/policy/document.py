"""A policy file, from its text to the policy that it describes."""

from webhook.policy import yaml_text
from webhook.policy.compiler import compiled
from webhook.policy.error import PolicyError
from webhook.policy.model import Policy
from webhook.policy.reading import typed


def parse(text: str) -> Policy:
    """The policy that a file describes.

    Raises PolicyError, and nothing else, for every text that describes none.
    """
    source = yaml_text.read(text)
    try:
        return compiled(typed(source.value))
    except PolicyError as error:
        raise PolicyError(error.problem, error.path, source.line(error.path)) from error
