"""The page as text: complete, self-contained, small enough, and deaf to what a cluster says."""

import hashlib
import json
import re
from base64 import b64encode
from html.parser import HTMLParser
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.timeline.election_samples import HOSTILE_NAMES, NOON, SECOND, hostile_timeline, sample_timeline
from webhook.analysis.timeline import downsampling, page
from webhook.analysis.timeline.model import Lane, Mark, MarkKind, Span, SpanKind, Ticks, Timeline
from webhook.text.quoting import escape

LARGEST = 3_000_000


class Reader(HTMLParser):
    """Elements with their attributes, and the text within scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")
        self.is_open = True

    def handle_endtag(self, _: str) -> None:
        self.is_open = False

    def handle_data(self, data: str) -> None:
        if self.texts and self.is_open:
            self.texts[-1] += data

    def within(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        """Attributes and text of each element with this name."""
        pairs = zip(self.elements, self.texts, strict=True)
        return [(attributes, text) for (name, attributes), text in pairs if name == tag]

    @property
    def data(self) -> str:
        """The block of JSON."""
        (script,) = [text for attributes, text in self.within("script") if attributes.get("id") == "data"]
        return script

    @property
    def policy(self) -> str:
        (policy,) = [a["content"] for a, _ in self.within("meta") if a.get("http-equiv") == "Content-Security-Policy"]
        return policy or ""


def source(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.fixture(scope="module")
def quiet() -> Reader:
    return Reader(page.render(sample_timeline(1)))


@pytest.fixture(scope="module")
def hostile() -> Reader:
    return Reader(page.render(hostile_timeline()))


def test_the_page_asks_for_no_other_file(quiet: Reader) -> None:
    for _, attributes in quiet.elements:
        assert not {"src", "srcset", "action", "data", "background", "poster"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")
    (style,) = quiet.within("style")
    assert "@import" not in style[1]
    assert set(re.findall(r"url\(([^)]*)\)", style[1])) <= {
        "#red-hatch",
        "#amber-hatch",
        "#many",
        "#dots",
        "#cross-hatch",
        "#red-bars",
    }


def test_nothing_runs_but_the_scripts_that_the_policy_names(quiet: Reader) -> None:
    directives = dict(part.split(" ", 1) for part in quiet.policy.split("; "))
    scripts = [text for attributes, text in quiet.within("script") if attributes.get("type") != "application/json"]
    assert directives["default-src"] == "'none'"
    assert directives["connect-src"] == "'none'"
    assert directives["script-src"].split() == [source(script) for script in scripts]
    assert directives["style-src"] == source(quiet.within("style")[0][1])
    handlers = [key for _, attributes in quiet.elements for key in attributes if key.startswith("on") or key == "style"]
    assert handlers == []


def test_a_live_page_may_connect_to_its_own_server_only() -> None:
    reader = Reader(page.render(sample_timeline(1), events='/token"><script>/events'))
    assert "connect-src 'self'" in reader.policy
    (meta,) = [attributes for attributes, _ in reader.within("meta") if attributes.get("name") == "events"]
    assert meta["content"] == '/token"><script>/events'
    assert page.make_content_security_policy(events="/x") == reader.policy


def test_hostile_names_add_no_element(quiet: Reader, hostile: Reader) -> None:
    assert [name for name, _ in hostile.elements] == [name for name, _ in quiet.elements]
    assert hostile.policy == quiet.policy


def test_hostile_names_arrive_as_text_with_what_is_hidden_escaped(hostile: Reader) -> None:
    data = json.loads(hostile.data)
    assert [lane["name"] for lane in data["lanes"]] == [escape(name) for name in HOSTILE_NAMES]
    assert {escape(name) for name in HOSTILE_NAMES} <= set(data["strings"])
    assert data["sources"] == data["thinned"] == [escape(name) for name in HOSTILE_NAMES]


@given(st.text(max_size=50))
def test_any_text_stays_within_the_block_of_data(text: str) -> None:
    span = Span(SpanKind.HELD, NOON, None, text, text, text)
    lane = Lane(text, text, 15, (span,), Ticks(), (Mark(MarkKind.DENIED, NOON, text, text, text),))
    html = page.render(Timeline(NOON, NOON + SECOND, (lane,), (text,), (text,)))
    between = html.partition('id="data">')[2].partition("</script>")[0]
    assert not set("<>&\u2028\u2029") & set(between)
    data = json.loads(between)
    assert data["lanes"][0]["name"] == escape(text)


def test_500_leases_with_100_000_events_fit_in_3_mb() -> None:
    timeline = sample_timeline(500, events=30, minutes=20, interval=6 * SECOND)
    events = sum(len(lane.spans) + len(lane.marks) + lane.ticks.count for lane in timeline.lanes)
    assert events >= 100_000
    assert len(page.render(timeline).encode()) <= LARGEST


def test_the_page_has_room_for_the_largest_data(quiet: Reader) -> None:
    empty = len(page.render(Timeline(NOON, NOON), events="/" + "t" * 100).encode())
    assert empty + downsampling.MAX_BYTES <= LARGEST


def test_a_timeline_of_markup_fits_too() -> None:
    texts = tuple(Mark(MarkKind.DENIED, NOON + n, "<&>" * 1000 + str(n)) for n in range(1000))
    lane = Lane("shop", "checkout", 15, (Span(SpanKind.HELD, NOON, None, "a"),), Ticks(), texts)
    timeline = downsampling.fit_into(Timeline(NOON, NOON + SECOND, (lane,)))
    assert len(page.render(timeline).encode()) <= LARGEST


def test_an_empty_timeline_gives_a_page() -> None:
    assert json.loads(Reader(page.render(Timeline(NOON, NOON))).data)["lanes"] == []


def test_the_library_is_the_file_that_its_note_describes(quiet: Reader) -> None:
    vendor = resources.files("webhook.analysis.timeline.page") / "vendor"
    note = json.loads((vendor / "d3.json").read_text())
    content = (vendor / note["file"]).read_bytes()
    assert hashlib.sha512(content).hexdigest() == note["file_sha512"]
    assert f"v{note['version']} ".encode() in content[:100]
    assert {entry.name for entry in vendor.iterdir()} == {note["file"], "LICENSE", "d3.json"}
    whole = " ".join(text for tag in ("summary", "pre") for _, text in quiet.within(tag))
    assert f"{note['name']} {note['version']}, license {note['license']}" in whole
    assert (vendor / "LICENSE").read_text() in whole


def test_every_kind_has_a_word_and_every_mark_a_shape(quiet: Reader) -> None:
    scripts = "\n".join(text for _, text in quiet.within("script"))
    shapes = scripts.partition("const MARKS = {")[2].partition("};")[0]
    assert [kind.strip(' "') for kind in re.findall(r"^  ([\w\"-]+): \[", shapes, re.MULTILINE)] == list(MarkKind)
    kinds = json.loads(quiet.data)["kinds"]
    assert [kind for kind, _ in kinds] == [*SpanKind, *MarkKind]
    assert dict(kinds)["takeover-by-expiry"] == "takeover after expiry"


def test_every_script_is_part_of_the_page(quiet: Reader) -> None:
    scripts = {entry.name for entry in (resources.files("webhook.analysis.timeline.page") / "scripts").iterdir()}
    assert scripts == set(page.SCRIPTS)
    assert len(quiet.within("script")) == 3


def luminance(color: str) -> float:
    """As WCAG 2 defines it, of `#rrggbb`."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [1, 2], ids=["light", "dark"])
def test_names_can_be_read_on_every_color_of_a_bar(quiet: Reader, scheme: int) -> None:
    (style,) = quiet.within("style")
    pairs = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", style[1])
    colors = {pair[0]: pair[scheme] for pair in pairs}
    for number in range(8):
        assert contrast(colors[f"c{number}"], colors["in-bar"]) >= 4.5
    for ground in ("ground", "soft"):
        assert contrast(colors["tick"], colors[ground]) >= 3
    for word in ("text", "muted", "accent", "red", "amber"):
        assert contrast(colors[word], colors["ground"]) >= 4.5
        assert contrast(colors[word], colors["soft"]) >= 4.5


def test_a_lane_that_cannot_be_drawn_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Lane.list_gaps

    def broken(lane: Lane, until: int) -> object:
        if lane.name == "controller-1" and not lane.problem:
            raise ValueError("<a defect>")
        return whole(lane, until)

    monkeypatch.setattr(Lane, "list_gaps", broken)
    lanes = json.loads(page.encode_page_data(sample_timeline(3)))["lanes"]
    assert [lane["problem"] for lane in lanes] == ["", "this is a bug: ValueError: <a defect>", ""]
    assert [bool(lane["spans"]) for lane in lanes] == [True, False, True]
