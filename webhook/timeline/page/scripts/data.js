// The data of the page: lanes with spans, renewals and marks, all times in microseconds since `book.base`.
"use strict";

const UNLED = new Set(["overdue", "leaderless"]);

/** An empty book; `merge` fills it. */
function newBook(base) {
  return {
    base,
    from: 0,
    ends: 0,
    lanes: new Map(),
    numbers: new Map(),
    sources: [],
    thinned: [],
    readAt: null,
    hasDates: false,
  };
}

/** Put the lanes of a message into the book, in the place of those with the same id. */
function merge(book, message) {
  const shift = message.begins - book.base;
  for (const raw of message.lanes) book.lanes.set(raw.id, newLane(book, raw, message, shift, null));
  book.ends = Math.max(book.ends, message.ends - book.base);
  book.from = Math.min(book.from, shift);
  book.sources = message.sources;
  book.thinned = message.thinned;
  book.readAt = message.readAt;
  book.hasDates = parts(book.base + book.from).date !== parts(book.base + book.ends).date;
}

function newLane(book, raw, message, shift, parent) {
  if (!book.numbers.has(raw.id)) book.numbers.set(raw.id, book.numbers.size);
  const lane = {
    type: "lane",
    id: raw.id,
    dom: `lane${book.numbers.get(raw.id)}`,
    kind: raw.kind,
    namespace: raw.namespace,
    name: raw.name,
    duration: raw.duration,
    title: raw.namespace ? `${raw.namespace}/${raw.name}` : raw.name,
    summary: raw.summary || "",
    parent,
  };
  const texts = message.strings;
  lane.spans = grouped(raw.spans, 7).map(([kind, begins, ends, holder, writer, manager, number], index) => ({
    type: "span",
    lane,
    key: `s${index}`,
    kind: message.spanKinds[kind],
    begins: begins + shift,
    ends: ends === null ? null : ends + shift,
    holder: texts[holder],
    writer: texts[writer],
    manager: texts[manager],
    count: number,
    text: "",
  }));
  lane.marks = grouped(raw.marks, 7).map(([kind, at, text, holder, writer, number, ends], index) => ({
    type: "mark",
    lane,
    key: `m${index}`,
    kind: message.markKinds[kind],
    begins: at + shift,
    ends: ends === null ? null : ends + shift,
    holder: texts[holder],
    writer: texts[writer],
    manager: "",
    count: number,
    text: texts[text],
  }));
  lane.ticks = Float64Array.from(raw.ticks);
  for (let index = 0, at = shift; index < lane.ticks.length; index += 1) lane.ticks[index] = at += lane.ticks[index];
  lane.buckets = grouped(raw.buckets, 3).map(([begins, ends, number]) => ({
    begins: begins + shift,
    ends: ends + shift,
    count: number,
  }));
  lane.items = d3.sort([...lane.spans, ...lane.marks], (a, b) => a.begins - b.begins || (a.type === "span" ? -1 : 1));
  lane.candidates = raw.candidates.map((one) => newLane(book, one, message, shift, lane));
  lane.colors = colors(lane);
  lane.gaps = gapsOf(lane);
  lane.handovers = handoversOf(lane);
  lane.isQuiet = !lane.marks.length && !lane.gaps.length && !lane.handovers;
  return lane;
}

function grouped(numbers, width) {
  const found = [];
  for (let index = 0; index < numbers.length; index += width) found.push(numbers.slice(index, index + width));
  return found;
}

/** A color for each holder, in the order in which they come; the one before never has the same. */
function colors(lane) {
  const found = new Map();
  for (const span of lane.spans) if (!found.has(span.holder)) found.set(span.holder, found.size % 8);
  return found;
}

/** Times without a leader: spans in a row that are overdue or have no holder, from the last renewal on. */
function gapsOf(lane) {
  const found = [];
  lane.spans.forEach((span, index) => {
    if (!UNLED.has(span.kind)) return;
    const before = lane.spans[index - 1];
    if (before && UNLED.has(before.kind)) {
      found.at(-1).ends = span.ends;
      return;
    }
    const begins =
      span.kind === "overdue"
        ? Math.max(lastRenewal(lane, span.begins) ?? -Infinity, before ? before.begins : span.begins)
        : span.begins;
    if (before && begins < span.begins) before.quietFrom = begins;
    found.push({
      type: "gap",
      lane,
      span,
      begins,
      ends: span.ends,
      expired: span.kind === "overdue",
      holder: span.holder || (before ? before.holder : ""),
    });
  });
  return found;
}

function handoversOf(lane) {
  let last = null;
  let found = 0;
  for (const span of lane.spans) {
    if (span.kind === "several") found += span.count;
    else if (span.kind === "held") {
      if (last !== null && last !== span.holder) found += 1;
      last = span.holder;
    }
  }
  return found;
}

/** The last renewal until `at`, undefined if none was seen. */
function lastRenewal(lane, at) {
  const index = d3.bisectRight(lane.ticks, at);
  if (index) return lane.ticks[index - 1];
  const bucket = lane.buckets[d3.bisector((one) => one.ends).right(lane.buckets, at) - 1];
  return bucket && bucket.ends;
}

const bySpanBegin = d3.bisector((item) => item.begins);

/** The span at an instant, if there is one. */
function spanAt(book, lane, at) {
  const span = lane.spans[bySpanBegin.right(lane.spans, at) - 1];
  return span && at <= endOf(book, span) ? span : undefined;
}

function endOf(book, item) {
  return item.ends === null ? (item.type === "mark" ? item.begins : Math.max(book.ends, item.begins)) : item.ends;
}

function lengthOf(book, item) {
  return endOf(book, item) - item.begins;
}

/** The longest time without a leader, in microseconds; 0 if there was none. */
function longestGap(book, lane) {
  return d3.greatest(lane.gaps, (gap) => lengthOf(book, gap));
}

/** What a lane was at an instant: short for its label, long for the reading. */
function stateAt(book, lane, at) {
  const span = spanAt(book, lane, at);
  const title = brief(lane.title);
  const holder = span ? brief(span.holder) : "";
  if (!span) return { kind: "none", short: "not seen", long: `${title} was not seen` };
  const since = at - span.begins;
  if (span.kind === "leaderless") {
    return {
      kind: span.kind,
      span,
      short: `no leader for ${length(since)}`,
      long: `${title} has no leader, for ${length(since)}`,
    };
  }
  const tick = lastRenewal(lane, at);
  const renewed = span.begins >= book.from && !(tick > span.begins) && span.kind === "held" ? span.begins : tick;
  const renewal = renewed === undefined ? "" : `, renewed ${length(at - renewed)} before`;
  if (span.kind === "overdue") {
    return {
      kind: span.kind,
      span,
      short: span.holder,
      note: "overdue",
      long: `${title} is overdue: ${holder} has it by name${renewal}`,
    };
  }
  if (span.kind === "several")
    return { kind: span.kind, span, short: "many changes", long: `${title} changes too often to say` };
  if (span.kind === "offered")
    return { kind: span.kind, span, short: "candidate", long: `${title} is a candidate${renewal}` };
  const from = `since ${instant(book, span.begins)}${span.begins < book.from ? ", as it says itself" : ""}`;
  const isSilent = span.quietFrom !== undefined && at > span.quietFrom;
  const note = isSilent ? `renewed ${length(at - span.quietFrom)} before` : "";
  return {
    kind: isSilent ? "silent" : span.kind,
    span,
    note,
    short: span.holder || "a holder that is not named",
    long: `${title} is held by ${holder || "a holder that the input does not name"}, ${from}${renewal}${isSilent ? ", for the last time" : ""}`,
  };
}
