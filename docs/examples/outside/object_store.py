"""A conditional write of an object by the newest term, for any store with ETags: S3, Google Cloud Storage, Azure."""


class EndedTermError(Exception):
    """A newer term has written the object."""


def put(read, write, content: bytes, term: str) -> None:
    """Write an object unless a newer term has.

    `read()` returns the ETag and the term in the metadata of the object, or None if it does not exist.
    `write(content, term, etag)` stores both with `If-Match: ETAG` (`If-None-Match: *` without one), and returns False
    if the store answers 412: then another writer came first, and the term is compared again.
    """
    while True:
        found = read()
        etag, known = found or (None, "")
        if known > term:
            raise EndedTermError(f"term {term} has ended, known is {known}")
        if write(content, term, etag):
            return
