// The data of the page: lanes with spans, renewals and marks, all times in microseconds since `book.base`.
"use strict";

const SECOND = 1e6;
const DAY = 86400 * SECOND;
const data = JSON.parse(document.getElementById("data").textContent);
const WORDS = new Map(data.kinds); // by kind, in the order in which they are listed; of marks the gravest first
const KINDS = [...WORDS.keys()];
const UNLED = new Set(["overdue", "leaderless", "chosen"]);
const byBegin = d3.bisector((item) => item.begins);
const byEnd = d3.bisector((item) => item.ends);
const book = { base: data.begins, from: 0, ends: 0, lanes: new Map(), isLocal: false };
const TROUBLE = { none: 0, warning: 1, past: 2, leaderless: 3, stolen: 4, frozen: 5 };
const isFrozen = (span) => span.kind === "frozen";

/** How grave each kind of mark is, and a shape of its own, so that no color is needed to distinguish them. */
const MARKS = {
  steal: ["grave", d3.symbolStar],
  "forged-stamps": ["grave line", d3.symbolAsterisk],
  "identity-shared": ["grave", "M-7,0a3.5,3.5 0 1 0 7,0a3.5,3.5 0 1 0 -7,0M0,0a3.5,3.5 0 1 0 7,0a3.5,3.5 0 1 0 -7,0"],
  denied: ["grave line", d3.symbolTimes],
  fenced: ["grave", d3.symbolWye],
  "would-deny": ["warning line", d3.symbolTriangle2],
  warned: ["warning", d3.symbolTriangle],
  failed: ["warning", "M-6,-5h12l-6,11z"],
  late: ["warning", "M-6,-2h6v-4l6,6l-6,6v-4h-6z"],
  slow: ["warning", "M-5,-5h10l-10,10h10z"],
  deleted: ["plain", d3.symbolSquare],
  "takeover-by-expiry": ["change", d3.symbolDiamond],
  takeover: ["change", d3.symbolCross],
  "takeover-by-release": ["change line", d3.symbolDiamond2],
  release: ["plain line", d3.symbolSquare2],
  created: ["change", d3.symbolCircle],
  claim: ["change line", d3.symbolCircle],
  edit: ["warning line", d3.symbolPlus],
};

merge(data);

/** Put the lanes of a message into the book, in the place of those with the same id. */
function merge(message) {
  const { begins, ends, sources, thinned, readAt, leftOut, lanes, strings } = message;
  const shift = begins - book.base;
  for (const raw of lanes) book.lanes.set(raw.id, newLane(raw, strings, shift));
  Object.assign(book, { from: Math.min(book.from, shift), ends: Math.max(book.ends, ends - book.base) });
  if (lanes.length || !book.sources) Object.assign(book, { sources, thinned, readAt, leftOut });
  noteDates();
}

/** Note whether times need a date, in the zone that is shown. */
function noteDates() {
  book.lastDate = dateOf(book.ends);
  book.hasDates = dateOf(book.from) !== book.lastDate;
}

function newLane(raw, strings, shift) {
  const lane = { ...raw, type: "lane", key: "lane", begins: 0 };
  lane.lane = lane;
  lane.title = raw.namespace ? `${raw.namespace}/${raw.name}` : raw.name;
  const shiftTime = (at) => (at === null ? null : at + shift);
  const items = (type) => raw[`${type}s`].map(([kind, begins, ends, number, ...texts], index) => {
    const [text, holder = "", writer = "", manager = ""] = texts.map((place) => strings[place]);
    const times = number > 1 ? `, ${number} times` : "";
    const isHeartbeat = type === "doubt" && KINDS[kind] === "silent" && text.startsWith("no heartbeat");
    const title = type === "span" ? text : (isHeartbeat ? "no heartbeat" : WORDS.get(KINDS[kind])) + times;
    const sought = [lane.title, title, text, holder, writer].join("\n").toLowerCase();
    const item = { type, lane, key: type + index, kind: KINDS[kind], begins: shiftTime(begins), ends: shiftTime(ends) };
    return Object.assign(item, { count: number, title, text, holder, writer, manager, sought });
  });
  Object.assign(lane, { spans: items("span"), doubts: items("doubt"), marks: items("mark") });
  lane.items = d3.sort([...lane.spans, ...lane.marks], (item) => item.begins);
  lane.gaps = raw.gaps.map(([begins, expires, ends]) => {
    const index = lane.spans.findIndex((span) => span.begins === shiftTime(expires) && UNLED.has(span.kind));
    // The words in a bar end where the doubt begins.
    if (begins < expires && index > 0) lane.spans[index - 1].quietFrom = shiftTime(begins);
    return { span: lane.spans[index], begins: shiftTime(begins), ends: shiftTime(ends) };
  });
  lane.ticks = d3.cumsum(raw.ticks).map(shiftTime);
  lane.buckets = raw.buckets.map(([begins, ends, number]) => ({ begins: shiftTime(begins), ends: shiftTime(ends), count: number }));
  // A color for each holder, in the order in which they come; the one before never has the same.
  lane.colors = new Map([...new Set(lane.spans.map((span) => span.holder))].map((holder, index) => [holder, index % 8]));
  lane.renewals = lane.ticks.length + d3.sum(lane.buckets, (one) => one.count);
  lane.late = lateRenewals(lane);
  lane.isQuiet = !lane.marks.length && !lane.gaps.length && !lane.handovers && !lane.problem && !lane.spans.some(isFrozen);
  lane.trouble = troubleOf(lane);
  const isGrave = (mark) => MARKS[mark.kind][0].startsWith("grave");
  lane.hasFacts = Boolean(!lane.isQuiet && (lane.gaps.length || lane.handovers || lane.problem || lane.marks.some(isGrave)))
    || lane.isMoment || lane.spans.some((span) => isFrozen(span) || span.kind === "never-held");
  return lane;
}

/** How bad it is, or was. A release that another replica follows within the duration is how a handover ought to be. */
function troubleOf(lane) {
  const last = lane.spans.at(-1);
  const looks = new Set(lane.marks.map((mark) => MARKS[mark.kind][0].split(" ")[0]));
  if (lane.problem || (last && isFrozen(last))) return TROUBLE.frozen;
  if (lane.marks.some((mark) => mark.kind === "steal")) return TROUBLE.stolen;
  if (lane.gaps.some((gap) => gap.ends === null)) return TROUBLE.leaderless;
  const isLong = (gap) => gap.span?.kind === "overdue" || lengthOf(gap) > (lane.duration ?? 0) * SECOND;
  if (looks.has("grave") || lane.spans.some(isFrozen) || lane.gaps.some(isLong)) return TROUBLE.past;
  return looks.has("warning") ? TROUBLE.warning : TROUBLE.none;
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

/** For how long no one led, in all. */
function unledTime(lane) {
  return d3.sum(lane.gaps, lengthOf);
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
  const nothing = lane.problem ? "cannot be drawn" : "not seen";
  if (!span || at > endOf(span)) return { kind: "none", who: nothing, note: "", words: `${lane.title}: ${nothing}` };
  const doubt = span.kind === "held" && lane.doubts.find((one) => at > one.begins && at <= one.ends);
  const { kind, title, begins } = doubt || span;
  const said = doubt ? `${title} since ${instant(begins)}, ` : "";
  const tick = UNLED.has(kind) ? undefined : lastRenewal(lane, at);
  const renewed = tick === undefined ? "" : `, last renewed at ${instant(tick)}`;
  const gap = UNLED.has(kind) && lane.gaps.find((one) => at >= one.begins && at <= endOf(one));
  const from = kind === "never-held" ? "" : ` from ${instant(span.begins)} on`;
  const what = kind === "frozen" ? `frozen${from}, held by ${span.holder}` : `${span.title}${from}`;
  const since = gap ? gapWords(gap) : what;
  const held = gap && kind === "overdue" ? `overdue: held by ${span.holder}, ` : "";
  const words = `${lane.title}: ${said}${held}${since}${renewed}`;
  const note = kind === "held" || !span.holder ? "" : doubt ? title : WORDS.get(kind);
  return { kind, span, who: span.holder || WORDS.get(span.kind), note, words };
}

/** How long no one led, and from when: without the end, if it goes on. */
function gapWords(gap) {
  const words = gap.span.title.split(", ").at(-1);
  if (gap.ends !== null) return `${words}, from ${instant(gap.begins)}`;
  const [what] = /^(?:no \w+|not renewed)/.exec(words);
  return words === what ? words : `${what} since ${instant(gap.begins)}`;
}

/** An instant in microseconds since 1970 as `2026-11-22T12:00:00.000Z`, by the clocks of the zone that is shown. */
function formatInZone(micros) {
  const time = Math.floor(micros / 1000);
  const offset = book.isLocal ? new Date(time).getTimezoneOffset() * 60000 : 0;
  return new Date(time - offset).toISOString();
}

/** `UTC`, or by how much the clocks of this computer differ from it at the end. */
function zoneName() {
  if (!book.isLocal) return "UTC";
  const minutes = -new Date((book.base + book.ends) / 1000).getTimezoneOffset();
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  return `UTC${minutes < 0 ? "-" : "+"}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
}

function dateOf(at) {
  return formatInZone(book.base + at).slice(0, -14);
}

/** The time of day, with the date if that is not the only one, and `digits` digits of the second. */
function instant(at, digits = 0) {
  const micros = book.base + Math.round(at);
  const date = formatInZone(micros);
  const time = date.slice(-13, -1) + String(((micros % 1000) + 1000) % 1000).padStart(3, "0");
  const day = date.slice(0, -14);
  return (book.hasDates || day !== book.lastDate ? `${day} ` : "") + time.slice(0, digits ? 9 + digits : 8);
}

/** The instant that was typed, nearest to `near`; NaN if it is none. `12:03`, `12:03:10.5`, `2026-11-22 12:03:10`. */
function typedInstant(text, near) {
  const match = /^\s*(?:(\d{4}-\d\d-\d\d)[T ])?(\d\d?)(:\d\d(?::\d\d(?:\.\d{1,6})?)?)\s*(Z?)\s*$/.exec(text);
  if (!match) return NaN;
  const written = `${match[1] ?? dateOf(near)}T${match[2].padStart(2, "0")}${match[3]}`;
  const isLocal = book.isLocal && !match[4];
  const time = Date.parse(isLocal ? written : `${written}Z`);
  // A 30th of February is another day.
  const back = Number.isNaN(time) ? "" : isLocal ? formatInZone(time * 1000) : new Date(time).toISOString();
  if (!back.startsWith(written.slice(0, 16))) return NaN;
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
