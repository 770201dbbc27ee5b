"""A policy file, from its text to the policy that it describes: YAML, types, layers."""

from webhook.policy import yaml_text
from webhook.policy.compiler import compiled
from webhook.policy.convert import converted
from webhook.policy.error import PolicyError
from webhook.policy.model import Policy


def parse(text: str) -> Policy:
    """The policy that a file describes.

    Raises:
        PolicyError: the text is not a policy; no other error is raised, whatever the text is.

    """
    value = yaml_text.read(text)
    try:
        return compiled(converted(value))
    except PolicyError as error:
        raise PolicyError(error.problem, error.path, yaml_text.line_of(text, error.path)) from error
