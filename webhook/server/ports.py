"""Whether another program listens on an address of ours."""

import errno
import socket

from webhook.server.settings import Options


def in_use(options: Options) -> str:
    """Which of the addresses is in use and which option changes it, or ""; asks the kernel now."""
    for flag, address in (("--bind", options.bind), ("--health-bind", options.health_bind)):
        host, _, port = address.rpartition(":")
        if port != "0" and _is_taken(host.strip("[]"), int(port)):
            return f"{address} is in use by another program; choose another address with {flag}"
    return ""


def _is_taken(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False
