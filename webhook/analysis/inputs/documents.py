"""Bytes become documents: JSON values one after another, documents of YAML, the events of an audit log.

The bytes come in pieces of any size, each document is given as soon as its bytes are there, and a broken one costs only
itself. msgspec says where a JSON value ends, since it names the first byte that follows.
"""

import codecs
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.analysis.inputs import envelopes
from webhook.analysis.inputs.items import Place, Unreadable
from webhook.analysis.inputs.lines import NOWHERE, Source, find_sources
from webhook.kubernetes.decoding_errors import NESTED, PLACE, TRAILING, TRUNCATED, find_error
from webhook.kubernetes.review_size import OPENING
from webhook.kubernetes.utf8 import replace_lone_surrogates
from webhook.text import yaml_reader
from webhook.text.quoting import truncate
from webhook.text.yaml_reader import YamlError

MAX_DOCUMENT: Final = 20 * 1024 * 1024
"""Bytes of one object as JSON: as many as an API server reads of one request."""
MAX_LIST: Final = 512 * 1024 * 1024
"""Bytes of one document, or of a List, that are held at once: a device or a pipe may never end."""

Value = dict[str, Any]
IsWanted = Callable[[bytes], bool]
"""Whether a line of an audit log is to be read: it may be of anything in the cluster."""

_MAX_WASTED: Final = 4 * MAX_DOCUMENT
"""Bytes that may be read again after broken values, before the rest is skipped."""
_MAX_BRACKETS: Final = 5_000_000
"""Brackets that are counted to find the ends of values that nest too deeply, before the next line is tried instead."""
_MAX_GUESSED: Final = 1024 * 1024
"""Bytes of broken JSON that may be YAML instead."""
_MAX_INDENT: Final = 1000
_SMALL: Final = 64 * 1024
_LONGEST_TOKEN: Final = 12
"""Bytes before the end of a piece in which a pair of escaped surrogates may begin."""
_BLANK_LINES: Final = re.compile(rb"(?:[ \t\r\f\v,\x1e]*+\n)*+")
"""Text that may stand between values; the comma if a List is broken, whose items are then read one by one."""
LIST: Final = re.compile(rb'\s*+(?:\xef\xbb\xbf)?\{.{0,2000}?"items"\s*+:\s*+\[', re.DOTALL)
"""The start of a List in JSON."""
_WHITE: Final = re.compile(rb"[ \t\r\n]*+")
_ITEM: Final = b"0"
"""A placeholder for the items, when the rest of their List is decoded."""
_INDENT: Final = re.compile(rb"[ \t\r\f\v,\x1e]*+")
_NEXT: Final = re.compile(rb'\n(?:(?=\{[ \t\r\n]{0,16}["}])|---(?=[ \t\r\n]|\Z))')
"""Where another document begins, inside of a YAML document or a broken value; not at the braces of a template."""
_MAX_NEXT: Final = 24
"""Bytes of such a beginning."""
_CONTENT: Final = re.compile(r"^[^\S\n]*+(?!\.\.\.[^\S\n]*$)[^\s#%]", re.MULTILINE)
_OURS: Final = re.compile(r"""\bkind["']?\s{0,9}:\s{0,9}["']?(?:Lease|LeaseCandidate|AdmissionReview)(?:List)?\b""")
"""How a broken document is recognized as one of a kind that is evaluated."""
TEMPLATE: Final = re.compile(
    r"\{\{-?\s*(?:[.$(\"`]|/\*|(?:if|else|end|range|with|include|define|template|block|toYaml|tpl|required|fail|"
    r"default|quote|printf|lookup|and|or|not|eq|ne|nindent|indent)\b)"
)
"""An action of a Go template, as charts of Helm have."""
KIND_OF_TEMPLATE: Final = "template"
RENDER: Final = "a template: render it first, as by `helm template`"
AUDIT_EVENT: Final = re.compile(rb'\s*+\{"kind":"Event","apiVersion":"audit\.k8s\.io/')
"""How an API server begins every line of its log: Go writes the fields of a struct in their order."""
_BRACKET: Final = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+[\[\]{}]', re.DOTALL)
"""The next bracket of JSON, with the strings before it."""
_LOCATED: Final = re.compile(r"line (\d+)\b")
"""How an error begins that has a place."""
_NULL: Final = Raw(b"null")
_REVIEW_VERSION: Final = "admission.k8s.io/v1"


class Document(Struct, frozen=True, gc=False, kw_only=True):
    """One object of an input. `kind` and `api_version` are "" if it has none; an item may take them from its List.

    `change` is the type of the event of a watch that showed the object, "" for an object that stands alone; `renewals`
    is what a recorder added to it. `text` is the object in JSON, byte for byte as it was if it was JSON. `source` says
    where its file has it.
    """

    place: Place
    kind: str = ""
    api_version: str = ""
    change: str = ""
    renewals: bytes = b""
    text: bytes = b""
    source: Source = NOWHERE

    @property
    def value(self) -> Value:
        """The object as a value; raises ValueError for a key that appears twice, as kubectl refuses it."""
        found: Value = _strict.decode(self.text.decode())
        if self.kind and "kind" not in found:
            return {"apiVersion": self.api_version, "kind": self.kind} | found
        return found


_Found = Document | Unreadable


class LastLine(Struct, frozen=True, gc=False):
    """The last event of an audit log, on any subject."""

    text: bytes


class _Envelope(Struct, frozen=True, gc=False, rename="camel"):
    kind: str | None = None
    api_version: str | None = None
    items: Raw = _NULL
    type: object = None
    # Not `object`: Python 3.14 resolves the annotation above among the names of the class.
    shown: Raw = msgspec.field(default=_NULL, name="object")
    renewals: Raw = _NULL


def split_documents(path: str, pieces: Iterable[bytes], *, is_json: bool = False) -> Iterator[_Found | LastLine]:
    """Yield every document of one input, the items of a List instead of the List; `is_json`: nothing in it is YAML.

    Audit events in envelopes come instead of these, and the last of them again as the end of their log.
    """
    return _Splitter(path, pieces, is_json=is_json).split()


def split_list(path: str, opened: Callable[[], Iterator[bytes]]) -> Iterator[_Found] | None:
    """Return the items of a file that is one List in JSON, of any size; None if it is not, or is broken.

    `opened` gives its bytes from the start, in pieces, twice: the kind of a List may follow its items.
    """
    first = _measure_list(opened())
    if first is None:
        return None
    items = ListItems(opened())
    return (
        make_document(Place(path, number), item, first.item_kind, first.version, source=Source(item, items.line))
        for number, item in enumerate(items, 1)
    )


def _measure_list(pieces: Iterator[bytes]) -> "ListItems | None":
    """Return what is known of a List after its last item; None if the input is none, or is broken."""
    items = ListItems(pieces)
    try:
        for _ in items:
            pass
    except (ValueError, RecursionError):
        return None
    return items


def want_all(_: bytes) -> bool:
    """Read every line."""
    return True


def split_audit_log(path: str, lines: Iterable[bytes], is_wanted: IsWanted) -> Iterator[_Found | LastLine]:
    """Yield every line that is wanted; one without its end is a part of one that is too long."""
    last, number, is_rest = b"", 0, False
    for line in lines:
        if not is_rest:
            number += 1
        is_too_long = len(line) > MAX_DOCUMENT and not line.endswith(b"\n")
        is_part, is_rest = is_rest, is_too_long
        if is_part:
            continue
        if line.strip():
            last = line
        place = Place(path, number)
        if is_too_long:
            yield Unreadable(place, "a line of more than 20 MiB")
        elif is_wanted(line):
            if AUDIT_EVENT.match(line):
                yield Document(place=place, kind="Event", api_version="audit.k8s.io/v1", text=line)
            else:
                yield make_document(place, line)
    yield LastLine(last)


def encode(value: object) -> bytes:
    """Return a value as JSON; raises ValueError if no API server would accept it, which aliases of YAML can cause."""
    try:
        text = json.dumps(value).encode()
    except RecursionError:
        raise ValueError(NESTED) from None
    if len(text) > MAX_DOCUMENT:
        raise ValueError("more than 20 MiB as JSON")
    return text


class _Nesting:
    """Finds the ends of values that no decoder reads, because they nest too deeply, in a text that may grow."""

    def __init__(self) -> None:
        self._left = _MAX_BRACKETS
        self._depth = self._counted = 0

    @property
    def is_exhausted(self) -> bool:
        """True if no more brackets are counted."""
        return not self._left

    def begin(self) -> None:
        """Note that another value begins."""
        self._depth = self._counted = 0

    def find_end(self, text: bytes, start: int) -> int:
        """Return where the value ends that begins there; -1 if its end is not in the text.

        It goes on where it stopped in the same value, of which the text had less then.
        """
        while self._left and (found := _BRACKET.match(text, start + self._counted)):
            self._left -= 1
            self._counted = found.end() - start
            self._depth += 1 if text[found.end() - 1] in b"[{" else -1
            if not self._depth:
                return found.end()
        return -1


class ListItems:
    """The texts of the items of a List, one after another; ValueError if the input is anything else, or broken.

    `kind` and `version` are those of the List, known after its last item, as is `frame`, the List with a number instead
    of the items; `line` is that of the item given last.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.kind = self.version = ""
        self.frame = b""
        self.line = 1
        self._nesting = _Nesting()
        self._counted = 0
        self._pieces = pieces
        self._text = b""

    @property
    def item_kind(self) -> str:
        """The kind of an item that has none itself."""
        return self.kind.removesuffix("List")

    def __iter__(self) -> Iterator[bytes]:
        self._read_more()
        found = LIST.match(self._text)
        if found is None:
            raise ValueError(_NO_OBJECT)
        head = found[0].removeprefix(codecs.BOM_UTF8)
        offset = self._skip_white(found.end())
        is_more = self._text[offset : offset + 1] != b"]"
        while is_more:
            start = self._skip_white(offset)
            item, offset = self._read_value(start)
            start = offset - len(item)
            self._count(start)
            yield item
            offset = self._skip_white(offset)
            is_more = self._text[offset : offset + 1] == b","
            if is_more:
                offset += 1  # the comma
        rest = self._text[offset:]
        while len(rest) <= MAX_DOCUMENT and (piece := next(self._pieces, b"")):
            rest += piece
        self.frame = head + _ITEM + rest
        envelope = _envelope.decode(self.frame)
        if len(rest) > MAX_DOCUMENT or not _is_list(envelope.kind) or bytes(envelope.items) != b"[" + _ITEM + b"]":
            raise ValueError(_NO_OBJECT)
        self.kind, self.version = envelope.kind or "", envelope.api_version or ""

    def _skip_white(self, offset: int) -> int:
        """Return where the first character after white space is."""
        while (offset := _WHITE.match(self._text, offset).end()) == len(self._text):  # type: ignore[union-attr]
            offset = self._read_more(offset)
        return offset

    def _read_value(self, offset: int) -> tuple[bytes, int]:
        """Return the value that begins here, and where it ends."""
        self._nesting.begin()
        while not (after := TRAILING.search(problem := find_error(memoryview(self._text)[offset:]))):
            if problem == NESTED and (end := self._nesting.find_end(self._text, offset)) >= 0:
                return self._text[offset:end], end
            if len(self._text) - offset > MAX_DOCUMENT:
                raise ValueError(problem)
            offset = self._read_more(offset)
        end = offset + int(after[1]) - 1
        return self._text[offset:end], end

    def _count(self, offset: int) -> None:
        """Count the lines up to an offset."""
        self.line += self._text.count(b"\n", self._counted, offset)
        self._counted = offset

    def _read_more(self, offset: int = 0) -> int:
        """Read more, and forget what lies before an offset; return where that is then."""
        piece = next(self._pieces, b"")
        if not piece:
            raise ValueError(_CUT_OFF)
        self._count(offset)
        self._counted = 0
        self._text = self._text[offset:] + piece
        return 0


class _Splitter:
    """`_text[_start:]` is what was read and not given yet; its first line has the number `_line`.

    `_indent` is the number of bytes of the line in which `_text` begins that came before it.
    """

    def __init__(self, path: str, pieces: Iterable[bytes], *, is_json: bool) -> None:
        self._path = path
        self._pieces = iter(pieces)
        self._is_json = is_json
        self._text = b""
        self._start = 0
        self._line = 1
        self._indent = 0
        self._number = 0
        self._wasted = 0
        self._nesting = _Nesting()
        self._last_event = b""

    def split(self) -> Iterator[_Found | LastLine]:
        while len(self._text) < len(codecs.BOM_UTF8) and self._read_more():
            pass
        if self._text.startswith(codecs.BOM_UTF8):
            self._start = len(codecs.BOM_UTF8)
        while (first := self._find_first()) >= 0:
            problem, end, failed = "", -1, 0
            if self._text[first] in b"{[" or self._is_json:
                self._start = first
                end, problem, failed = self._find_end_of_json()
                if not problem:
                    yield from self._split_json(bytes(memoryview(self._text)[self._start : end]), self._line)
                    self._advance(end)
                    continue
            if end < 0:
                end = self._find_end_of_document()
            if end < 0:
                is_broken = self._wasted > _MAX_WASTED
                problem = "too much is broken" if is_broken else f"a document of more than {MAX_LIST // 1024**2} MiB"
                yield Unreadable(self._make_next_place(), f"{problem}; the rest is not read", line=self._line)
                return
            # What was read beyond the document is read again.
            self._wasted += max(0, failed - (end - self._start))
            text = self._text[self._start : end]
            line = self._line
            self._advance(end)
            yield from self._split_document(text, line, problem)
        if self._last_event:
            yield LastLine(self._last_event)

    def _split_document(self, text: bytes, line: int, problem: str) -> Iterator[_Found]:
        """Yield the documents of what begins at that line and is not JSON that can be read, because of `problem`."""
        if problem.endswith(NESTED) and text.startswith(OPENING):
            # A review as an API server sent it: the decoder of reviews reads it at any depth.
            place, source = self._make_next_place(), Source(text, line)
            yield Document(place=place, kind="AdmissionReview", api_version=_REVIEW_VERSION, text=text, source=source)
        elif problem.endswith(NESTED) and (whole := _measure_list(iter([text]))):
            items = ListItems(iter([text]))
            for item in items:
                yield from self._split_value(item, line + items.line - 1, whole.item_kind, whole.version)
        elif problem and (replaced := replace_lone_surrogates(text)) and not find_error(memoryview(replaced)):
            yield from self._split_json(replaced, line)
        else:
            yield from self._split_text(text, line, problem)

    def _find_first(self) -> int:
        """Skip blank lines; return where the first character after them is, -1 at the end of the input."""
        while True:
            found = _BLANK_LINES.match(self._text, self._start)
            assert found is not None
            self._advance(found.end())
            indented = _INDENT.match(self._text, self._start)
            assert indented is not None
            if indented.end() - self._start > _MAX_INDENT:
                self._start = indented.end()
            if indented.end() < len(self._text):
                return indented.end()
            if not self._read_more():
                return -1

    def _find_end_of_json(self) -> tuple[int, str, int]:
        """Return where the value that begins here ends, what is wrong with it, and after how many bytes.

        The end is -1 if it is not known, as is that of a value that is broken.
        """
        while True:
            problem, size = find_error(memoryview(self._text)[self._start :]), len(self._text) - self._start
            if not problem:
                # A number may go on in the next piece.
                if not (self._text[-1:].isdigit() and self._read_more()):
                    return len(self._text), "", 0
            elif after := TRAILING.search(problem):
                return self._start + int(after[1]) - 1, "", 0
            elif problem == NESTED:
                return self._find_end_of_nested(), self._locate(problem), 0
            else:
                place = PLACE.search(problem)
                # An error at the end of a piece may be no more than the middle of a number or of an escape.
                is_cut = problem == TRUNCATED or (place is not None and int(place[1]) >= size - _LONGEST_TOKEN)
                if not is_cut or size > MAX_LIST or not self._read_more():
                    if is_cut:
                        self._wasted += size
                    failed = 0 if is_cut or place is None else int(place[1])
                    return -1, self._locate(problem), failed

    def _find_end_of_nested(self) -> int:
        """Return where a value ends that nests too deeply and begins here; -1 if its end is not found."""
        self._nesting.begin()
        while (end := self._nesting.find_end(self._text, self._start)) < 0:
            size = len(self._text) - self._start
            if self._nesting.is_exhausted or size > MAX_LIST or not self._read_more():
                self._wasted += size
                return -1
        return end

    def _locate(self, problem: str) -> str:
        """Return a problem of msgspec with its place."""
        found = PLACE.search(problem)
        if found is None:
            return f"line {self._line}: not JSON: {_CUT_OFF if problem == TRUNCATED else problem}"
        at = self._start + int(found[1])
        line = self._line + self._text.count(b"\n", self._start, at)
        newline = self._text.rfind(b"\n", 0, at)
        column = at - newline if newline >= 0 else self._indent + at + 1
        what = problem[: found.start()].removeprefix("JSON is malformed: ").strip()
        return f"line {line}, column {column}: not JSON: {what}"

    def _find_end_of_document(self) -> int:
        """Return where the next document begins, or the end of the input; -1 if that is too far away."""
        place = self._start
        while self._wasted <= _MAX_WASTED:
            found = _NEXT.search(self._text, place)
            if found and found.end() < len(self._text):
                return found.start() + 1
            place = max(0, len(self._text) - _MAX_NEXT - self._start)
            if len(self._text) - self._start > MAX_LIST:
                return -1
            if not self._read_more():
                return found.start() + 1 if found else len(self._text)
        return -1

    def _split_json(self, whole: bytes, line: int) -> Iterator[_Found]:
        """Yield the items of a List or of an array, else the value itself, which begins at that line."""
        kind = version = ""
        items: Sequence[Raw] | None = None
        place = 0
        try:
            if whole.startswith(b"["):
                items = _items.decode(whole)
            else:
                envelope = _envelope.decode(whole)
                if _is_list(envelope.kind) and bytes(memoryview(envelope.items)[:1]) == b"[":
                    items, place = _items.decode(envelope.items), whole.find(bytes(envelope.items))
                    kind, version = (envelope.kind or "").removesuffix("List"), envelope.api_version or ""
        except (ValueError, RecursionError):
            pass  # the value itself is reported
        if items is None:
            yield from self._split_value(whole, line)
            return
        line += whole.count(b"\n", 0, place)
        for item in map(bytes, items):
            # Only white space and commas are between items, so the first place is the right one.
            start = whole.find(item, place)
            line += whole.count(b"\n", place, start)
            yield from self._split_value(item, line, kind, version)
            line += item.count(b"\n")
            place = start + len(item)

    def _split_value(self, text: bytes, line: int, kind: str = "", version: str = "") -> Iterator[_Found]:
        """Yield the document that a value is, or the audit events in it."""
        place = self._make_next_place()
        found = make_document(place, text, kind, version, source=Source(text, line))
        if isinstance(found, Document) and (found.kind or found.change):
            if found.api_version.startswith(envelopes.AUDIT):
                self._last_event = text
            yield found
            return
        is_envelope = False
        for event in envelopes.find_events(text):
            inner = make_document(self._make_next_place() if is_envelope else place, event)
            if isinstance(inner, Document) and inner.api_version.startswith(envelopes.AUDIT):
                self._last_event = event
            is_envelope = True
            yield inner
        if not is_envelope:
            yield found

    def _split_text(self, data: bytes, line: int, problem: str) -> Iterator[_Found]:
        """Yield the documents of what is not JSON, because of `problem`, or does not look like it."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            yield Unreadable(self._make_next_place(), "not UTF-8", is_foreign=True, line=line)
            return
        if text.startswith("---") and not text[3:4].strip():
            text = text[3:]
        if not _CONTENT.search(text):
            return
        is_foreign = not _OURS.search(text)
        value, error = None, problem
        try:
            # YAML has braces too; if it is none either, the error of the JSON is the better hint.
            if not problem or (len(text) <= _MAX_GUESSED and not self._is_json):
                value, error = yaml_reader.read(text, first_line=line), ""
        except YamlError as refused:
            error = problem or str(refused)
        if error:
            located = _LOCATED.match(error)
            begins = int(located[1]) if located else line
            is_template = TEMPLATE.search(text) is not None
            problem = f"{RENDER} ({error})" if is_template else error
            yield Unreadable(
                self._make_next_place(),
                problem,
                is_foreign=is_foreign or is_template,
                line=begins,
                is_template=is_template,
            )
            return
        kind = version = ""
        items, sources = [value], [Source(text, line)]
        if isinstance(value, dict) and isinstance(value.get("items"), list) and _is_list(value.get("kind")):
            items, kind, version = value["items"], value["kind"].removesuffix("List"), value.get("apiVersion", "")
            sources = [*find_sources(text, line)]
        for item, source in zip_longest(items, sources, fillvalue=Source(text, line)):
            place = self._make_next_place()
            try:
                found = make_document(place, encode(item), kind, str(version), source=source)
            except ValueError as large:
                found = Unreadable(place, str(large), line=source.find_line())
            yield replace(found, is_foreign=is_foreign) if isinstance(found, Unreadable) else found

    def _make_next_place(self) -> Place:
        self._number += 1
        return Place(self._path, self._number)

    def _advance(self, end: int) -> None:
        self._line += self._text.count(b"\n", self._start, end)
        self._start = end

    def _read_more(self) -> bool:
        """Read more: half as much again if much is unread, or each piece copies all of it; False at the end."""
        newline = self._text.rfind(b"\n", 0, self._start)
        self._indent = self._start - newline - 1 if newline >= 0 else self._indent + self._start
        parts = [self._text[self._start :]]
        unread = len(parts[0])
        wanted = unread // 2 if unread > _SMALL else 1
        for piece in self._pieces:
            parts.append(piece)
            wanted -= len(piece)
            if wanted <= 0:
                break
        self._text, self._start = b"".join(parts), 0
        return len(parts) > 1


def _is_list(kind: object) -> bool:
    return isinstance(kind, str) and kind.endswith("List")


def make_document(
    place: Place, text: bytes, kind: str = "", version: str = "", change: str = "", *, source: Source = NOWHERE
) -> _Found:
    """Return the document that one JSON value is."""
    if len(text) > MAX_DOCUMENT:
        return Unreadable(place, "more than 20 MiB", line=source.line)
    try:
        envelope = _envelope.decode(text)
    except msgspec.ValidationError:
        return Unreadable(place, _NO_OBJECT, is_foreign=not change, line=source.find_line())
    except (ValueError, RecursionError) as error:
        return Unreadable(place, describe_problem(error), line=source.line)
    event = envelope.type
    if envelope.kind is None and not change and event and isinstance(event, str) and envelope.shown is not _NULL:
        shown = make_document(place, bytes(envelope.shown), change=event)
        if envelope.renewals is not _NULL and isinstance(shown, Document):
            return replace(shown, renewals=bytes(envelope.renewals))
        return shown
    version = envelope.api_version or ("" if envelope.kind else version)
    return Document(
        place=place, kind=envelope.kind or kind, api_version=version, text=text, change=change, source=source
    )


def describe_problem(error: ValueError | RecursionError) -> str:
    """Return in one line why a text could not be decoded."""
    if isinstance(error, RecursionError):
        return NESTED
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return f"not JSON: {error}" if isinstance(error, msgspec.DecodeError) else str(error)


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> Value:
    found = dict(pairs)
    if len(found) < len(pairs):
        (key, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"key {truncate(key)!r} appears twice")
    return found


_CUT_OFF: Final = "cut off, or a bracket is missing"
_NO_OBJECT: Final = "not a Kubernetes object"
_items: Final = msgspec.json.Decoder(list[Raw])
_envelope: Final = msgspec.json.Decoder(_Envelope)
_strict: Final = json.JSONDecoder(object_pairs_hook=_refuse_repeated_keys)
