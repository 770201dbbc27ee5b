"""TLS of the reviews' port: the lowest version, and client certificates."""

import ssl
from pathlib import Path


def make_context(pem: Path, client_ca: bytes) -> ssl.SSLContext:
    """Return a context for the pair in a file; with a `client_ca`, clients must have a certificate of that."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_NO_TICKET
    # kube-apiserver keeps no sessions; tickets would be two records for each handshake that are never used, and without
    # them there is no early data.
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(pem)
    if client_ca:
        require_clients_of(client_ca, context)
    return context


def require_clients_of(client_ca: bytes, context: ssl.SSLContext) -> None:
    """Let in only clients with a certificate of this authority; raises ssl.SSLError if OpenSSL cannot read it."""
    context.verify_mode = ssl.CERT_REQUIRED
    # A comment may be in any language, which OpenSSL takes from a file and Python not from a text.
    context.load_verify_locations(cadata=client_ca.decode("ascii", "backslashreplace"))
