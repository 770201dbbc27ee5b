// The data of the page: lanes with spans, renewals and marks, all times in microseconds since `book.base`.
"use strict";

const UNLED = new Set(["overdue", "leaderless"]);
const byBegin = d3.bisector((item) => item.begins);
const byEnd = d3.bisector((item) => item.ends);

/** An empty book; `merge` fills it. */
function newBook(base) {
  const book = { base, from: 0, ends: 0, lanes: new Map(), numbers: new Map() };
  return Object.assign(book, { sources: [], thinned: [], readAt: null, hasDates: false });
}

/** Put the lanes of a message into the book, in the place of those with the same id. */
function merge(book, message) {
  const shift = message.begins - book.base;
  for (const raw of message.lanes) book.lanes.set(raw.id, newLane(book, raw, message, shift, null));
  book.ends = Math.max(book.ends, message.ends - book.base);
  book.from = Math.min(book.from, shift);
  book.hasDates = parts(book.base + book.from).date !== parts(book.base + book.ends).date;
  for (const key of ["sources", "thinned", "readAt"]) book[key] = message[key];
}

function newLane(book, raw, message, shift, parent) {
  if (!book.numbers.has(raw.id)) book.numbers.set(raw.id, book.numbers.size);
  const { id, kind, namespace, name, duration, deadline, leadsFor, summary } = raw;
  const lane = { type: "lane", id, kind, namespace, name, duration, deadline, leadsFor, summary, parent };
  lane.dom = `lane${book.numbers.get(id)}`;
  lane.title = namespace ? `${namespace}/${name}` : name;
  const texts = message.strings;
  const item = (type, kinds, index, [kind, begins, ends, text, holder, writer, manager, number]) => {
    const times = { begins: begins + shift, ends: ends === null ? null : ends + shift };
    const words = { text: texts[text], holder: texts[holder], writer: texts[writer], manager: texts[manager] };
    return { type, lane, key: `${type[0]}${index}`, kind: kinds[kind], ...times, ...words, count: number };
  };
  lane.spans = grouped(raw.spans, 7).map(([kind, begins, ends, holder, writer, manager, number], index) =>
    item("span", message.spanKinds, index, [kind, begins, ends, 0, holder, writer, manager, number]),
  );
  lane.marks = grouped(raw.marks, 7).map(([kind, at, text, holder, writer, number, ends], index) =>
    item("mark", message.markKinds, index, [kind, at, ends, text, holder, writer, 0, number]),
  );
  lane.ticks = d3.cumsum(raw.ticks);
  if (shift) lane.ticks = lane.ticks.map((at) => at + shift);
  lane.buckets = grouped(raw.buckets, 3).map(([begins, ends, number]) => {
    return { begins: begins + shift, ends: ends + shift, count: number };
  });
  lane.items = d3.sort([...lane.spans, ...lane.marks], (a, b) => a.begins - b.begins || (a.type === "span" ? -1 : 1));
  lane.candidates = raw.candidates.map((one) => newLane(book, one, message, shift, lane));
  // A color for each holder, in the order in which they come; the one before never has the same.
  lane.colors = new Map([...new Set(lane.spans.map((span) => span.holder))].map((holder, index) => [holder, index % 8]));
  lane.gaps = gapsOf(lane);
  lane.doubts = doubtsOf(lane);
  const held = lane.spans.filter((span) => span.kind === "held").map((span) => span.holder);
  const changes = d3.sum(held, (holder, index) => index > 0 && holder !== held[index - 1]);
  lane.handovers = changes + d3.sum(lane.spans, (span) => span.kind === "several" && span.count);
  lane.renewals = lane.ticks.length + d3.sum(lane.buckets, (one) => one.count);
  lane.isQuiet = !lane.marks.length && !lane.gaps.length && !lane.handovers;
  return lane;
}

function grouped(numbers, width) {
  return d3.range(0, numbers.length, width).map((index) => numbers.slice(index, index + width));
}

/** Times without a leader: spans in a row that are overdue or have no holder, from the last renewal on. */
function gapsOf(lane) {
  const found = [];
  lane.spans.forEach((span, index) => {
    const before = lane.spans[index - 1];
    const wasUnled = before && UNLED.has(before.kind);
    if (!UNLED.has(span.kind)) {
      if (wasUnled) found.at(-1).nextHolder = span.holder;
    } else if (wasUnled) {
      found.at(-1).ends = span.ends;
    } else {
      const expired = span.kind === "overdue";
      const since = before ? before.begins : span.begins;
      const begins = expired ? Math.max(lastRenewal(lane, span.begins) ?? -Infinity, since) : span.begins;
      if (before && begins < span.begins) before.quietFrom = begins;
      const holder = span.holder || (before ? before.holder : "");
      found.push({ type: "gap", lane, span, begins, ends: span.ends, expired, holder, nextHolder: "" });
    }
  });
  return found;
}

/**
 * The times at which the holder's name alone would say too much, in order.
 *
 * `silent`: after the last renewal before a lease expired, as its holder may have ended right after it. `contested`:
 * after a steal, until the lease of the one before would have expired, as that one may not have noticed.
 */
function doubtsOf(lane) {
  const doubt = (kind, span, begins, ends, holder, text) => {
    const rest = { holder, writer: "", manager: "", count: 1, text };
    return { type: "doubt", lane, key: `${kind}${begins}`, kind, span, begins, ends, ...rest };
  };
  const silent = lane.gaps.filter((gap) => gap.expired && gap.begins < gap.span.begins);
  const stolen = lane.marks.filter((mark) => mark.kind === "steal");
  const found = [
    ...silent.map((gap) => {
      const span = lane.spans[lane.spans.indexOf(gap.span) - 1] ?? gap.span;
      return doubt("silent", span, gap.begins, gap.span.begins, gap.holder, "from the last renewal until it expired");
    }),
    ...stolen.map((mark) => {
      const index = byBegin.right(lane.spans, mark.begins) - 1;
      const before = lane.spans[index - 1];
      const renewed = Math.max(lastRenewal(lane, mark.begins - 1) ?? -Infinity, before ? before.begins : -Infinity);
      const expiry = (mark.ends ?? renewed) + (lane.duration ?? 0) * SECOND;
      const text = before ? `taken from ${brief(before.holder)}, which held it` : "taken while it was held";
      const ends = Math.max(mark.ends ?? mark.begins, expiry);
      return doubt("contested", lane.spans[index], mark.begins, ends, mark.holder, text);
    }),
  ];
  return d3.sort(found, (one) => one.begins);
}

/** The last renewal until `at`, undefined if none was seen. */
function lastRenewal(lane, at) {
  const index = d3.bisectRight(lane.ticks, at);
  return index ? lane.ticks[index - 1] : lane.buckets[byEnd.right(lane.buckets, at) - 1]?.ends;
}

function endOf(book, item) {
  return item.ends ?? (item.type === "mark" ? item.begins : Math.max(book.ends, item.begins));
}

function lengthOf(book, item) {
  return endOf(book, item) - item.begins;
}

/** The longest time without a leader, undefined if there was none. */
function longestGap(book, lane) {
  return d3.greatest(lane.gaps, (gap) => lengthOf(book, gap));
}

/** How long no one led: a range, as most clients go on for a while after their last renewal. */
function gapSpan(book, gap) {
  const whole = lengthOf(book, gap);
  const { lane } = gap;
  if (!gap.expired || gap.begins >= gap.span.begins) return length(whole);
  // A holder that renewed again lived: before its deadline it led.
  if (gap.holder && gap.nextHolder === gap.holder) return `up to ${length(Math.max(0, whole - lane.deadline))}`;
  const least = Math.max(0, whole - lane.leadsFor);
  return least ? `${length(least)} to ${length(whole)}` : `up to ${length(whole)}`;
}

/** What a lane was at an instant: short for its label, with a note below it, and long for the reading. */
function stateAt(book, lane, at) {
  const span = lane.spans[byBegin.right(lane.spans, at) - 1];
  const title = brief(lane.title);
  if (!span || at > endOf(book, span)) {
    const [first] = lane.marks;
    const short = first && first.kind === "created" && at < first.begins ? "not created yet" : "not seen";
    return { kind: "none", short, long: `${title} was ${short}` };
  }
  const { kind } = span;
  const holder = brief(span.holder) || "a holder that the input does not name";
  const since = at - span.begins;
  if (kind === "leaderless") {
    const short = since ? `no leader for ${length(since)}` : "no leader from now on";
    return { kind, span, short, long: `${title} has ${short.replace(" for", ", for")}` };
  }
  const tick = lastRenewal(lane, at);
  const renewed = span.begins >= book.from && !(tick > span.begins) && kind === "held" ? span.begins : tick;
  const renewal = renewed === undefined ? "" : `, renewed ${length(at - renewed)} before`;
  if (kind === "overdue") {
    const expired = since ? `expired ${length(since)} before` : "expires now";
    const long = `${title} is overdue and has no leader: the lease of ${holder} ${expired}${renewal}`;
    return { kind, span, short: span.holder, note: "overdue", long };
  }
  if (kind === "several") return { kind, span, short: "many changes", long: `${title} changes too often to say` };
  if (kind === "offered") return { kind, span, short: "candidate", long: `${title} is a candidate${renewal}` };
  const short = span.holder || "a holder that is not named";
  const doubt = lane.doubts.find((one) => at >= one.begins && at <= one.ends && (one.kind !== "silent" || at > one.begins));
  if (doubt && doubt.kind === "silent") {
    const silence = `${length(at - doubt.begins)} before`;
    const long = `${title} possibly has no leader: ${holder} holds it, but renewed it for the last time ${silence}`;
    return { kind: "silent", span, short, note: "possibly no leader", long };
  }
  if (doubt) {
    const taken = `${title} was taken while it was held: two may lead`;
    const long = `${taken}; ${holder} holds it since ${moment(book, span.begins)}, ${doubt.text}`;
    return { kind: "contested", span, short, note: "two may lead", long };
  }
  const from = `since ${moment(book, span.begins)}${span.begins < book.from ? ", as it says itself" : ""}`;
  return { kind, span, short, note: "", long: `${title} is held by ${holder}, ${from}${renewal}` };
}
