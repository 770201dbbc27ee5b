// The data of the page: lanes with spans, renewals and marks, all times in microseconds since `book.base`.
"use strict";

const SECOND = 1e6;
const DAY = 86400 * SECOND;
const data = JSON.parse(document.getElementById("data").textContent);
const WORDS = new Map(data.kinds); // by kind, in the order in which they are listed; of marks the gravest first
const KINDS = [...WORDS.keys()];
const UNLED = new Set(["overdue", "leaderless"]);
const byBegin = d3.bisector((item) => item.begins);
const byEnd = d3.bisector((item) => item.ends);
const book = { base: data.begins, from: 0, ends: 0, lanes: new Map() };
merge(data);

/** Put the lanes of a message into the book, in the place of those with the same id. */
function merge(message) {
  const { begins, ends, sources, thinned, readAt, lanes, strings } = message;
  const shift = begins - book.base;
  for (const raw of lanes) book.lanes.set(raw.id, newLane(raw, strings, shift));
  Object.assign(book, { from: Math.min(book.from, shift), ends: Math.max(book.ends, ends - book.base) });
  if (lanes.length || !book.sources) Object.assign(book, { sources, thinned, readAt });
  book.hasDates = dateOf(book.from) !== dateOf(book.ends);
}

function newLane(raw, strings, shift) {
  const lane = { ...raw, type: "lane", key: "lane", begins: 0 };
  lane.lane = lane;
  lane.title = raw.namespace ? `${raw.namespace}/${raw.name}` : raw.name;
  const moved = (at) => (at === null ? null : at + shift);
  const items = (type) => raw[`${type}s`].map(([kind, begins, ends, number, ...texts], index) => {
    const [text, holder = "", writer = "", manager = ""] = texts.map((place) => strings[place]);
    const times = number > 1 ? `, ${number} times` : "";
    const title = type === "span" ? text : WORDS.get(KINDS[kind]) + times;
    const sought = [lane.title, title, text, holder, writer].join("\n").toLowerCase();
    const item = { type, lane, key: type + index, kind: KINDS[kind], begins: moved(begins), ends: moved(ends) };
    return Object.assign(item, { count: number, title, text, holder, writer, manager, sought });
  });
  Object.assign(lane, { spans: items("span"), doubts: items("doubt"), marks: items("mark") });
  lane.items = d3.sort([...lane.spans, ...lane.marks], (item) => item.begins);
  lane.gaps = raw.gaps.map(([begins, expires, ends]) => {
    const index = lane.spans.findIndex((span) => span.begins === moved(expires) && UNLED.has(span.kind));
    // The words in a bar end where the doubt begins.
    if (begins < expires && index > 0) lane.spans[index - 1].quietFrom = moved(begins);
    return { span: lane.spans[index], begins: moved(begins), ends: moved(ends) };
  });
  lane.ticks = d3.cumsum(raw.ticks).map(moved);
  lane.buckets = raw.buckets.map(([begins, ends, number]) => ({ begins: moved(begins), ends: moved(ends), count: number }));
  // A color for each holder, in the order in which they come; the one before never has the same.
  lane.colors = new Map([...new Set(lane.spans.map((span) => span.holder))].map((holder, index) => [holder, index % 8]));
  lane.renewals = lane.ticks.length + d3.sum(lane.buckets, (one) => one.count);
  lane.late = lateRenewals(lane);
  lane.isQuiet = !lane.marks.length && !lane.gaps.length && !lane.handovers;
  lane.height = lane.isQuiet ? 58 : 80;
  return lane;
}

/** Where renewals of one holder are longer apart than twice as long as usual, from when one was due. */
function lateRenewals(lane) {
  const usual = d3.median(d3.pairs(lane.ticks, (one, next) => next - one));
  const late = d3.pairs(lane.ticks).filter(([one, next]) => next - one > 2 * usual && spanAt(lane, one) === spanAt(lane, next));
  return late.map(([one, next]) => [one + usual, next]);
}

function endOf(item) {
  return item.ends ?? (item.type === "mark" ? item.begins : Math.max(book.ends, item.begins));
}

function lengthOf(item) {
  return endOf(item) - item.begins;
}

/** How long the longest time without a leader was. */
function gapLength(lane) {
  return d3.max(lane.gaps, lengthOf) ?? 0;
}

/** The last renewal until `at`, undefined if none was seen. */
function lastRenewal(lane, at) {
  const index = d3.bisectRight(lane.ticks, at);
  return index ? lane.ticks[index - 1] : lane.buckets[byEnd.right(lane.buckets, at) - 1]?.ends;
}

function spanAt(lane, at) {
  return lane.spans[byBegin.right(lane.spans, at) - 1];
}

/** What a lane was at an instant: who held it, with a note, and all of it in words. */
function stateAt(lane, at) {
  const span = spanAt(lane, at);
  if (!span || at > endOf(span)) return { kind: "none", who: "not seen", note: "", words: `${lane.title}: not seen` };
  const doubt = span.kind === "held" && lane.doubts.find((one) => at > one.begins && at <= one.ends);
  const { kind, title, begins } = doubt || span;
  const said = doubt ? `${title} since ${instant(begins)}, ` : "";
  const tick = UNLED.has(kind) ? undefined : lastRenewal(lane, at);
  const renewed = tick === undefined ? "" : `, last renewed at ${instant(tick)}`;
  const words = `${lane.title}: ${said}${span.title} from ${instant(span.begins)} on${renewed}`;
  const note = kind === "held" || !span.holder ? "" : WORDS.get(kind);
  return { kind, span, who: span.holder || WORDS.get(span.kind), note, words };
}

function dateOf(at) {
  return new Date((book.base + at) / 1000).toISOString().slice(0, -14);
}

/** The time of day in UTC, with the date if the timeline spans several days, and `digits` digits of the second. */
function instant(at, digits = 0) {
  const micros = book.base + Math.round(at);
  const date = new Date(Math.floor(micros / 1000)).toISOString();
  const time = date.slice(-13, -1) + String(((micros % 1000) + 1000) % 1000).padStart(3, "0");
  return (book.hasDates ? `${date.slice(0, -14)} ` : "") + time.slice(0, digits ? 9 + digits : 8);
}

/** The instant that was typed, nearest to `near`; NaN if it is none. `12:03`, `12:03:10.5`, `2026-11-22 12:03:10`. */
function typedInstant(text, near) {
  const match = /^\s*(?:(\d{4}-\d\d-\d\d)[T ])?(\d\d?)(:\d\d(?::\d\d(?:\.\d{1,6})?)?)\s*Z?\s*$/.exec(text);
  if (!match) return NaN;
  const written = `${match[1] ?? dateOf(near)}T${match[2].padStart(2, "0")}${match[3]}`;
  const time = Date.parse(`${written}Z`);
  // A 30th of February is another day.
  if (Number.isNaN(time) || !new Date(time).toISOString().startsWith(written.slice(0, 16))) return NaN;
  const at = time * 1000 - book.base;
  const days = match[1] ? [at] : [at - DAY, at, at + DAY];
  const inside = days.filter((one) => one >= book.from && one <= book.ends);
  return d3.least(inside.length ? inside : days, (one) => Math.abs(one - near));
}

const UNITS = [[86400, 3600, "d", "h"], [3600, 60, "h", "min"], [60, 1, "min", "s"]];

/** A length of time in its two largest units; of short ones a tenth of a second counts. */
function length(micros) {
  const seconds = micros / SECOND;
  const unit = UNITS.find(([size]) => seconds >= size);
  if (!unit) return `${Number(seconds.toFixed(seconds < 0.1 ? 3 : 1))} s`;
  const [size, part, long, short] = unit;
  return `${Math.floor(seconds / size)} ${long} ${Math.floor((seconds % size) / part)} ${short}`;
}

/** `1 lease`, `2 leases`. */
function count(number, what) {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}
