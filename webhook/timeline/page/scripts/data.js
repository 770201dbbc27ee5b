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
    deadline: raw.deadline,
    leadsFor: raw.leadsFor,
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
  lane.doubts = doubtsOf(lane);
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
    const before = lane.spans[index - 1];
    if (!UNLED.has(span.kind)) {
      if (before && UNLED.has(before.kind)) found.at(-1).nextHolder = span.holder;
      return;
    }
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
      nextHolder: "",
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
