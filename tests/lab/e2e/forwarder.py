"""A TCP forwarder that stands for a Service: each new connection goes to one of the backends routed at that moment."""

import itertools
import socket
import threading
from typing import Self

CHUNK = 65536


class Forwarder:
    """Forwards connections from its own port; `routed` may change at any time. A context manager."""

    def __init__(self, *backends: int) -> None:
        self.routed: tuple[int, ...] = backends
        self._turn = itertools.count()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, name="forwarder", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Shutting down wakes the thread that accepts; closing alone would not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            routed = self.routed
            backend = socket.create_connection(("127.0.0.1", routed[next(self._turn) % len(routed)]))
            for source, target in ((client, backend), (backend, client)):
                threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copy one direction. An end or an error on one side ends that direction on the other."""
    try:
        while data := source.recv(CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            end.close()
