"""TCP forwarders: for a Service, or to cut clients off, to end their connections, to hold single streams."""

import itertools
import socket
import threading
import time
from contextlib import suppress
from typing import Self

CHUNK = 65536


class Forwarder:
    """A forwarder of each new connection to one of the backends that are `routed` then. A context manager."""

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

    def wait(self) -> None:
        """Block until received data, or the end, may be passed on."""

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            backends = self.routed
            try:
                backend = socket.create_connection(("127.0.0.1", backends[next(self._turn) % len(backends)]))
            except ConnectionRefusedError:
                client.close()
                continue
            for source, target in ((client, backend), (backend, client)):
                threading.Thread(target=self._copy, args=(source, target), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        """Copy one direction. An end or an error on one side ends that direction on the other."""
        try:
            while data := source.recv(CHUNK):
                self.wait()
                target.sendall(data)
            self.wait()
            target.shutdown(socket.SHUT_WR)
        except OSError:
            for end in (source, target):
                end.close()


class Partition(Forwarder):
    """A forwarder to one port; while `cut` nothing passes in either direction, and nothing is closed.

    `delay` is the number of seconds that are added in each direction.
    """

    def __init__(self, backend: int) -> None:
        super().__init__(backend)
        self.delay = 0.0
        self._open = threading.Event()
        self._open.set()

    def __exit__(self, *_: object) -> None:
        self._open.set()
        super().__exit__()

    def cut(self) -> None:
        """Hold everything back from now on."""
        self._open.clear()

    def heal(self) -> None:
        """Deliver what was held back, late, as a network does."""
        self._open.set()

    def wait(self) -> None:
        """Block until the connection is not cut, and for the delay."""
        self._open.wait()
        time.sleep(self.delay)


class Interruption(Forwarder):
    """A forwarder to one port until `interrupt`: then its connections end, and new ones end at once."""

    def __init__(self, backend: int) -> None:
        super().__init__(backend)
        self._ends: list[socket.socket] = []

    def interrupt(self) -> None:
        """End everything."""
        self.routed = (0,)
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        self._ends += [source, target]
        super()._copy(source, target)


class HeldStreams(Forwarder):
    """A forwarder to one port; while it is held, connections on which a client has sent `marker` pass nothing.

    In front of etcd the marker is the prefix of a resource: then the watch of an API server on it is late.
    """

    def __init__(self, backend: int, marker: bytes) -> None:
        super().__init__(backend)
        self._marker = marker
        self._marked: set[socket.socket] = set()
        self._flowing = threading.Event()
        self._flowing.set()

    def __exit__(self, *_: object) -> None:
        self._flowing.set()
        super().__exit__()

    def hold(self) -> None:
        """Hold the marked connections, and those that are marked later, from now on."""
        self._flowing.clear()

    def release(self) -> None:
        """Deliver what was held."""
        self._flowing.set()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(CHUNK):
                if source in self._marked:
                    self._flowing.wait()
                elif self._marker in data:
                    self._marked |= {source, target}
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            for end in (source, target):
                end.close()
