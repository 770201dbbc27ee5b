"""Middleware (WSGI) of a service that only the newest term may call: requests carry the header `Lease-Term`."""

import threading


class NewestTermOnly:
    """Refuses with 412 whatever comes with an older term than the newest so far, or without one.

    The newest term lives as long as this process. A service with several processes, or whose work outlives it, keeps
    the term where it keeps its data, in one transaction with each change, as in postgresql.sql.
    """

    def __init__(self, service) -> None:
        self._service, self._newest, self._lock = service, "", threading.Lock()

    def __call__(self, environ, start_response):
        term = environ.get("HTTP_LEASE_TERM", "")
        # One request at a time: a request of an older term is never in the service while that of a newer one begins.
        with self._lock:
            if len(term) != 18 or not term.isdecimal() or term < self._newest:
                start_response("412 Precondition Failed", [("Content-Type", "text/plain")])
                return [f"term {term} has ended, known is {self._newest}\n".encode()]
            self._newest = term
            return list(self._service(environ, start_response))
