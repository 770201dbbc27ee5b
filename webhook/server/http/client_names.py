"""Who a client is, by its certificate."""


def names_in(certificate: dict[str, object] | None) -> frozenset[str]:
    """The names in a verified client certificate, as `SSLObject.getpeercert` gives it: common name and DNS names."""
    if not certificate:
        return frozenset()
    subject: object = certificate.get("subject", ())
    alternatives: object = certificate.get("subjectAltName", ())
    names: list[str] = []
    if isinstance(subject, tuple):
        names += [value for part in subject for kind, value in part if kind == "commonName"]
    if isinstance(alternatives, tuple):
        names += [value for kind, value in alternatives if kind == "DNS"]
    return frozenset(names)
