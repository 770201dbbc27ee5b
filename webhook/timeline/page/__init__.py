"""A timeline as one HTML page that needs nothing else: no network, no other file."""

from webhook.timeline.page.html import content_security_policy, render

__all__ = ["content_security_policy", "render"]
