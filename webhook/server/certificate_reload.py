"""Certificates of the reviews' port that change at run time: each newer good pair is served from then on."""

import datetime as dt
import os
import ssl
from functools import partial
from pathlib import Path
from typing import Final

from webhook.certificates.files import (
    LEAF_CERTIFICATE,
    LEAF_KEY,
    Certificate,
    Pair,
    Unusable,
    read_pair,
    read_pem,
)
from webhook.server.certificate_inspection import inspect_apart
from webhook.server.tls_context import make_context, require_clients_of

WARN_BEFORE_EXPIRY: Final = dt.timedelta(hours=24)


class CertificateReloader:
    """The serving certificate, replaced by each newer good one in the directory.

    A candidate is inspected and loaded into a new context before it is used: a live context is never touched, because a
    pair that does not match destroys the key inside one. The last good pair is also in `memory`, so that a worker which
    starts while the directory is broken has something to serve.
    """

    def __init__(
        self,
        directory: Path,
        memory: Path,
        client_ca: str = "",
        *,
        chain: str = LEAF_CERTIFICATE,
        key: str = LEAF_KEY,
    ) -> None:
        """Take the files `chain` and `key` of a directory, and its ca.crt if there is one."""
        self._read = partial(read_pair, directory, chain, key)
        self._memory = memory
        self._last_good = memory / "last-good.pem"
        self._client_ca = client_ca
        self._tried: tuple[Pair, bytes] | None = None
        self._context: ssl.SSLContext | None = None
        self.current: Certificate | None = None
        self.error = ""
        """Why the newest files are refused; "" if they are in use."""

    def start(self) -> None:
        """Load what is in the directory, else the last good pair; raises Unusable if nothing can serve.

        A pair that loads but has problems (it expired, say) serves all the same, and readiness says so: a process that
        refused to start would come back later than one that waits for better files.
        """
        self.poll()
        if self._context is None and self._last_good.exists():
            pem = self._last_good.read_bytes()
            self._context = make_context(self._last_good, self._read_client_ca())
            self.current = inspect_apart(Pair(chain=pem, key=pem)).check_dates(_now())
        if self._context is None and self._tried is not None:
            self._serve(*self._tried, inspect_apart(self._tried[0]).check_dates(_now()))
        if self._context is None:
            raise Unusable(self.error)

    def poll(self) -> str | None:
        """Read the directory once; "success" if a better pair serves now, "failure" if an error is new, else None."""
        before = self.error
        try:
            tried = self._read(), self._read_client_ca()
            # What was refused may have become valid, or the memory may have room again.
            if tried == self._tried and not before:
                return None
            # Unset until it has been inspected: start() serves a pair with problems, but none that cannot be used.
            self._tried = None
            pair, client_ca = tried
            names = self.current.service_names if self.current else frozenset[str]()
            certificate = inspect_apart(pair, names).check_dates(_now())
            self._tried = tried
            if not certificate.problems:
                self._serve(pair, client_ca, certificate)
            self.error = "; ".join(certificate.problems)
        except (Unusable, ssl.SSLError, OSError) as error:
            self.error = str(error)
        if not self.error:
            return "success"
        return "failure" if self.error != before else None

    @property
    def has_good_pair(self) -> bool:
        """Whether API servers accept the certificate that is served now."""
        return self.current is not None and not self.current.problems and _now() < self.current.not_after

    def list_reasons(self) -> list[str]:
        """Return why this server should get no traffic because of its certificate; empty when it may."""
        if self.current is None:
            return ["certificate: none"]
        if _now() >= self.current.not_after and not self.current.problems:
            return [f"certificate: expired at {self.current.not_after:%FT%TZ}"]
        return [f"certificate: {problem}" for problem in self.current.problems]

    def list_warnings(self) -> list[str]:
        """Return what an operator must fix soon, though API servers still trust the certificate."""
        if self.current is None or self.current.problems:
            return []
        warnings = [f"certificate: {self.error}; the last good one is served"] if self.error else []
        if self.expires_soon():
            warnings.append(f"certificate: expires at {self.current.not_after:%FT%TZ}, in less than 24 hours")
        return warnings

    def expires_soon(self) -> bool:
        """Return whether the serving certificate has less than WARN_BEFORE_EXPIRY left."""
        return self.current is not None and _now() >= self.current.not_after - WARN_BEFORE_EXPIRY

    def make_listener_context(self) -> ssl.SSLContext:
        """Return a context that only selects: each handshake gets the newest good pair, with SNI and without."""
        if self._context is None:
            raise Unusable("no certificate is loaded")
        listening = self._context

        def select(connection: ssl.SSLObject, _name: str | None, _listening: ssl.SSLContext) -> None:
            if self._context is not None:
                connection.context = self._context

        listening.sni_callback = select
        return listening

    def _serve(self, pair: Pair, client_ca: bytes, certificate: Certificate) -> None:
        """Build a context from exactly these bytes; raises ssl.SSLError and leaves everything as it was."""
        content = pair.key + b"\n" + pair.chain
        if self._last_good.exists() and self._last_good.read_bytes() == content:
            # Another worker has written it. A worker must start on a full disk, or gunicorn ends all of them.
            self._context = make_context(self._last_good, client_ca)
            self.current = certificate
            return
        candidate = self._memory / f"candidate-{os.getpid()}.pem"
        try:
            with open(candidate, "wb", opener=partial(os.open, mode=0o600)) as file:
                file.write(content)
            self._context = make_context(candidate, client_ca)
        except BaseException:
            candidate.unlink(missing_ok=True)
            raise
        candidate.replace(self._last_good)
        self.current = certificate

    def _read_client_ca(self) -> bytes:
        return _read_authority(self._client_ca) if self._client_ca else b""


def check_client_ca(path: str) -> None:
    """Raise Unusable for a file without a certificate by which clients can be verified."""
    pem = _read_authority(path)
    try:
        require_clients_of(pem, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    except ssl.SSLError as error:
        raise Unusable(f"{path} holds a damaged certificate") from error


def _read_authority(path: str) -> bytes:
    pem, _ = read_pem(Path(path))
    if b"-----BEGIN CERTIFICATE-----" not in pem:
        raise Unusable(f"{path} holds no certificate in PEM")
    return pem


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
