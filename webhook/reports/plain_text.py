"""Text that clients chose, escaped for reports."""

from webhook.api.text import escape


def escape_lines(text: str) -> str:
    """The text with every control, invisible and unpaired character as an escape, but with its line breaks.

    What is left is legal in XML 1.0 (https://www.w3.org/TR/xml/#charsets) and in JSON of any reader.
    """
    return "\n".join(map(escape, text.split("\n")))
