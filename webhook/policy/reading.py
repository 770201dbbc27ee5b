"""From the values in a policy file to its typed document: all that one key says by itself is checked here."""

import msgspec

from webhook.policy.error import PolicyError
from webhook.policy.messages import complaint
from webhook.policy.schema_types import PolicyDocument
from webhook.policy.yaml_text import Value


def typed(value: Value) -> PolicyDocument:
    """What a file says; raises PolicyError for the first thing that no policy file may say."""
    try:
        return msgspec.convert(value, PolicyDocument)
    except msgspec.ValidationError as error:
        raise PolicyError(*complaint(str(error))) from error
