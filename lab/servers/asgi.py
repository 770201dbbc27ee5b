"""The reviewer behind ASGI, for servers of a benchmark; it records nothing."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from webhook.admission.policy.file import load
from webhook.server.reviewer import Reviewer

Message = dict[str, Any]
REVIEWER: Final = Reviewer(load(None))


async def app(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """Answer a review."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body, is_more = b"", True
    while is_more:
        message = await receive()
        body += message.get("body", b"")
        is_more = message.get("more_body", False)
    media = dict(scope["headers"]).get(b"content-type", b"").decode("latin-1")
    environ = {"CONTENT_TYPE": media, "QUERY_STRING": scope["query_string"].decode("latin-1")}
    response = REVIEWER.review(body, environ)
    headers = [(b"content-type", response.content_type.encode()), (b"content-length", b"%d" % len(response.body))]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
