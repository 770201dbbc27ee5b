"""The log lines of gunicorn and of asyncio, in the same form and through the same handler as ours."""

import logging

from gunicorn.config import Config
from gunicorn.glogging import Logger

from webhook.server.logs import STDOUT


class GunicornLog(Logger):  # type: ignore[misc] # gunicorn has no types
    """gunicorn makes one of these in its master; workers inherit it by the fork."""

    def setup(self, cfg: Config) -> None:
        """Send everything to one handler; also called again on SIGHUP."""
        super().setup(cfg)
        for name in ("webhook.server", "gunicorn.error", "asyncio"):
            logger = logging.getLogger(name)
            logger.handlers = [STDOUT]
            # Theirs are about booting and closing; ours say what an operator asks.
            logger.setLevel(logging.INFO if name == "webhook.server" else logging.WARNING)
            logger.propagate = False
        logging.captureWarnings(capture=True)
        logging.getLogger("py.warnings").handlers = [STDOUT]
