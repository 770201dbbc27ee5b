// Times and lengths of time as people read them, in microseconds; and the names of what is drawn.
"use strict";

const SECOND = 1e6;
const MINUTE = 60 * SECOND;
const DAY = 86400 * SECOND;

/** The date and time of day in UTC, split: `2026-11-22`, `12:03:10` and `250000`. */
function parts(at) {
  const micros = Math.round(at);
  const seconds = Math.floor(micros / SECOND);
  const text = new Date(seconds * 1000).toISOString();
  return { date: text.slice(0, -14), time: text.slice(-13, -5), rest: String(micros - seconds * SECOND).padStart(6, "0") };
}

/** The time of day: `12:03:10`, with `digits` digits of the second. */
function clock(at, digits = 0) {
  const { time, rest } = parts(at);
  return digits ? `${time}.${rest.slice(0, digits)}` : time;
}

/** With the date if the timeline spans several days. */
function instant(book, at, digits = 0) {
  const time = clock(book.base + at, digits);
  return book.hasDates ? `${parts(book.base + at).date} ${time}` : time;
}

/** An instant within a sentence: as of lengths, a tenth of a second counts. */
function moment(book, at) {
  return instant(book, at, Math.floor(((book.base + at) % SECOND) / (SECOND / 10)) ? 1 : 0);
}

/** A length of time in its two largest units; of short ones a tenth of a second counts. */
function length(micros) {
  if (micros < 0) return `-${length(-micros)}`;
  if (micros < SECOND / 10) return `${Math.round(micros / 1000)} ms`;
  const tenths = Math.floor((micros + SECOND / 20) / (SECOND / 10));
  if (tenths < 600) return `${tenths % 10 ? (tenths / 10).toFixed(1) : tenths / 10} s`;
  const seconds = Math.floor(Math.max(micros, MINUTE) / SECOND);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.floor((seconds + 30) / 60);
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const hours = Math.floor((seconds + 1800) / 3600);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** `1 lease`, `2 leases`. */
function count(number, what) {
  return number === 1 ? `1 ${what}` : `${number.toLocaleString("en")} ${what}s`;
}

/** The instant that was typed, nearest to `near`; NaN if it is none. `12:03`, `12:03:10.5`, `2026-11-22 12:03:10`. */
function typedInstant(book, text, near) {
  const match = /^\s*(?:(\d{4}-\d\d-\d\d)[T ])?(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?\s*Z?\s*$/.exec(text);
  if (!match || match[2] > 23 || match[3] > 59 || match[4] >= 60) return NaN;
  const ofDay = (Number(match[2]) * 3600 + Number(match[3]) * 60 + Number(match[4] || 0)) * SECOND;
  if (match[1]) {
    const start = Date.parse(`${match[1]}T00:00:00Z`) * 1000;
    return start && parts(start).date === match[1] ? start + ofDay - book.base : NaN;
  }
  const day = Math.floor((book.base + near) / DAY) * DAY;
  const choices = [day - DAY, day, day + DAY].map((start) => start + ofDay - book.base);
  const inside = choices.filter((at) => at >= book.from && at <= book.ends);
  return d3.least(inside.length ? inside : choices, (at) => Math.abs(at - near));
}

/** A name within a sentence: a long one without its middle. */
function brief(name) {
  return name.length > 80 ? `${name.slice(0, 50)}…${name.slice(-25)}` : name;
}

/** As much of a name as fits, without its middle: names of replicas differ at their ends. */
function middled(name, most) {
  if (name.length <= most) return name;
  const tail = Math.max(1, Math.ceil((most - 1) * 0.7));
  return `${name.slice(0, Math.max(0, most - 1 - tail))}…${name.slice(-tail)}`;
}

const SPAN_WORDS = {
  held: "held",
  silent: "possibly no leader",
  contested: "two may lead",
  overdue: "overdue",
  leaderless: "no leader",
  offered: "candidate",
  several: "many changes",
};

function titleOf(book, item) {
  if (item.type === "lane") return item.title;
  if (item.type === "mark") return markTitle(item);
  const lasted = length(lengthOf(book, item)) + (item.ends === null ? " so far" : "");
  if (item.kind === "leaderless") return `no leader for ${lasted}`;
  if (item.kind === "overdue") return `${brief(item.holder) || "the holder"}, overdue for ${lasted}`;
  if (item.kind === "several") return `${count(item.count, "span")} in ${lasted}, too many to draw`;
  if (item.kind === "offered") return `${brief(item.holder || item.lane.name)} is a candidate for ${lasted}`;
  return `held by ${brief(item.holder) || "a holder that the input does not name"} for ${lasted}`;
}

function markTitle(mark) {
  return mark.count > 1 ? `${markWords(mark.kind)}, ${mark.count} times` : markWords(mark.kind);
}
