"""`timeline --serve`: the page live, at an address of this computer that no one else can guess."""

import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from webhook.cli.options import endpoint
from webhook.cli.reading import observed
from webhook.cli.terminal import Failure, print_message
from webhook.inputs.cluster import Cluster
from webhook.live.feed import Feed
from webhook.live.server import LiveServer
from webhook.live.watch import LiveWatch

DEFAULT_ADDRESS: Final = "127.0.0.1:0"
"""A free port."""
TOKEN_BYTES: Final = 24
_ENDING: Final = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_AWAKE_EVERY: Final = 1.0
"""Seconds. A signal that comes just before a sleep begins does not end it: Python acts on it when the sleep is over."""


def serve(paths: Sequence[str], cluster: Cluster, address: str) -> int:
    """Serve what the paths, or kubectl, show at HOST:PORT until Ctrl-C or a signal that ends programs."""
    host, _ = endpoint(address)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    feed = Feed(", ".join(paths) or "kubectl get leases --watch")
    with _listening(address) as listener:
        port = listener.getsockname()[1]
        server = LiveServer(listener, feed, token, [host, "localhost"])
        watch = None if paths else LiveWatch(feed, cluster)
        shown = f"[{host}]" if ":" in host else host
        threading.Thread(target=server.serve_forever, name="page", daemon=True).start()
        try:
            for number in _ENDING:
                signal.signal(number, signal.default_int_handler)
            if watch:
                watch.start()
            else:
                threading.Thread(target=_read, args=(feed, paths), name="input", daemon=True).start()
            print(f"http://{shown}:{port}/{token}/", flush=True)
            print_message("Ctrl-C ends it")
            while True:
                time.sleep(_AWAKE_EVERY)
        except KeyboardInterrupt:
            feed.end("lease-webhook has ended.")
        finally:
            # The end takes some seconds at most; a second signal in it would leave a kubectl behind.
            for number in _ENDING:
                signal.signal(number, signal.SIG_IGN)
            if watch:
                watch.stop()
            server.shutdown()
    return 0


def _listening(address: str) -> socket.socket:
    host, port = endpoint(address)
    try:
        if not ip_address(socket.gethostbyname(host) if ":" not in host else host).is_loopback:
            shown = "is not this computer alone: whoever knows the address can read the leases, unencrypted"
            print_message(f"{host} {shown}")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except socket.gaierror as error:
        raise Failure(f"{address} cannot be bound: {error.strerror}") from error
    except OSError as error:
        # create_server puts the address into the text once more.
        raise Failure(f"{address} cannot be bound: {os.strerror(error.errno or 0)}") from error


def _read(feed: Feed, paths: Sequence[str]) -> None:
    for item in observed(paths):
        feed.observe(item)
    feed.stand_still("The input has ended.")
