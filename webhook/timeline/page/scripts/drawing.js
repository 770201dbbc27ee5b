// One lane as SVG: bars for spans, small lines for renewals, shapes for marks. Whatever would lie upon each other is one.
"use strict";

const BAR = { top: 22, height: 22 };
const QUIET_BAR = { top: 8, height: 22 };
const CANDIDATE_BAR = { top: 15, height: 10 };
const CONTESTED = 7; // height of what says in a bar that two may lead
const CHARACTER = 6.9; // pixels of a letter in a bar, about
const MARK_WIDTH = 14;
const MARK_SPACE = 19; // with the number of several
const MARK_SPREAD = 30; // between the first and the last of those that are drawn as one

/** The empty svg of a lane. The doubts lie upon the bars; only text and marks lie above those. */
function newDrawing() {
  const groups = ["spans", "doubts", "words", "ticks", "marks", "numbers"].map((name) =>
    made(name === "ticks" ? "path" : "g", { class: name }),
  );
  for (const one of [groups[1], groups[2], groups[5]]) one.setAttribute("aria-hidden", true);
  return made("svg", { class: "drawing", role: "presentation" }, "", ...groups);
}

/** Draw a lane into its svg; `x` gives the pixel of an instant, from `left` to `right`. */
function drawLane(svg, lane, x, left, right) {
  const bar = lane.parent ? CANDIDATE_BAR : lane.isQuiet ? QUIET_BAR : BAR;
  const [spans, doubts, words, ticks, marks, numbers] = svg.children;
  const isInView = (one) => x(one.ends) > left && x(one.begins) < right;
  const isSaid = (one) => !view.hidden.has(one.kind) && !view.hidden.has("held") && isInView(one);
  const placed = placedSpans(lane, x, left, right);
  sync(spans, placed, newSpan, (node, one) => updateSpan(node, one, bar));
  sync(doubts, lane.doubts.filter(isSaid), newDoubt, (node, one) => updateDoubt(node, one, bar, x, left, right));
  sync(words, lane.parent ? [] : placed, () => made("text"), (node, one) => updateWords(node, one, bar));
  put(ticks, { d: view.hidden.has("renewals") ? "" : tickPath(lane, x, left, right, bar) });
  const placedAbove = placedMarks(lane, x, left, right);
  sync(marks, placedAbove, newMark, (node, one) => updateMark(node, one, bar));
  const several = placedAbove.filter((one) => one.number > 1);
  sync(numbers, several, () => made("text"), (node, one) => {
    const place = { x: ((one.first + one.last) / 2 + 6).toFixed(1), y: bar.top - 12 };
    put(node, place, one.number > 99 ? "99+" : String(one.number));
  });
}

function newDoubt() {
  const rects = ["ground", "pattern"].map((name) => made("rect", { class: name }));
  return made("g", {}, "", ...rects, made("text", { class: "in quiet" }));
}

function updateDoubt(node, one, bar, x, left, right) {
  const begins = Math.max(left, x(one.begins));
  const width = Math.max(1, Math.min(right, x(Math.min(one.ends, book.ends))) - begins);
  const isSilent = one.kind === "silent";
  const height = isSilent ? bar.height : CONTESTED;
  const [ground, pattern, text] = node.children;
  for (const rect of [ground, pattern])
    put(rect, { x: begins.toFixed(1), width: width.toFixed(1), y: bar.top + bar.height - height, height });
  put(node, { class: one.kind });
  const choices = [`possibly no leader, last renewed at ${moment(book, one.begins)}`, "possibly no leader", ""];
  const words = isSilent ? choices.find((text) => text.length * CHARACTER < width - 8) ?? "" : "";
  put(text, { x: (begins + 6).toFixed(1), y: bar.top + 15 }, words);
}

/** Spans in pixels; those that are too narrow to be seen become one. */
function placedSpans(lane, x, left, right) {
  const found = [];
  const from = Math.max(0, byBegin.right(lane.spans, x.invert(left)) - 1);
  for (const span of lane.spans.slice(from)) {
    if (x(span.begins) > right) break;
    const begins = Math.max(left, x(span.begins));
    const ends = Math.min(right, Math.max(x(endOf(book, span)), begins + 1));
    if (ends <= left || view.hidden.has(span.kind)) continue;
    const before = found.at(-1);
    const isNarrow = ends - begins < 1.5;
    if (isNarrow && before && before.isNarrow && begins - before.ends < 1) {
      before.ends = ends;
      before.items.push(span);
    } else found.push({ key: span.key, begins, ends, quiet: x(span.quietFrom ?? 0), isNarrow, items: [span] });
  }
  return found;
}

function newSpan() {
  const rects = ["bar", "amber"].map((name) => made("rect", { class: name }));
  return made("g", { class: "item", role: "option" }, "", ...rects);
}

function kindOf(one) {
  return one.items.length > 1 ? "several" : one.items[0].kind;
}

function updateSpan(node, one, bar) {
  const [span] = one.items;
  const kind = kindOf(one);
  const width = Math.max(1, one.ends - one.begins).toFixed(1);
  const box = { x: one.begins.toFixed(1), width, y: bar.top, height: bar.height };
  const [rect, amber] = node.children;
  const until = span.ends === null ? "until the end" : `to ${instant(book, span.ends)}`;
  describe(node, one, one.items.length, kind, () =>
    one.items.length > 1
      ? `${one.items.length} short spans from ${instant(book, span.begins)} on`
      : `${titleOf(book, span)}, from ${instant(book, span.begins)} ${until}`,
  );
  put(node, { "data-ends": span.ends ?? "", "data-holder": span.holder, class: classesOf(one, isDimmed(span)) });
  put(rect, { ...box, class: `bar ${kind} c${span.lane.colors.get(span.holder)}`, rx: width > 6 ? 3 : 0 });
  put(amber, kind === "overdue" ? box : { width: 0 });
}

/** Say what an element shows, if it showed something else before. */
function describe(node, one, number, kind, label) {
  const { items } = one;
  const isSame = node.items && node.items[0] === items[0] && node.items.at(-1) === items.at(-1);
  node.items = items;
  put(node, { "aria-selected": items.includes(view.selected) });
  if (isSame) return;
  const facts = { "data-kind": kind, "data-count": number, "data-begins": items[0].begins, "aria-label": label() };
  put(node, { id: `${items[0].lane.dom}-${one.key}`, ...facts });
}

/** What stands in a bar: it is not a part of the bar's element, whose label says more. */
function updateWords(node, one, bar) {
  const [span] = one.items;
  const kind = kindOf(one);
  const width = (span.quietFrom === undefined ? one.ends : Math.min(one.ends, one.quiet)) - one.begins;
  const fixed = { overdue: "overdue", leaderless: "no leader" }[kind] ?? "";
  const words = kind === "held" ? fitted(span.holder, width - 10) : fixed.length * CHARACTER < width - 4 ? fixed : "";
  const place = { x: (one.begins + 6).toFixed(1), y: bar.top + 15 };
  put(node, { class: `in ${kind}${isDimmed(span) ? " dimmed" : ""}`, ...place }, words);
}

function classesOf(one, isDim) {
  return `item${one.items.includes(view.active) ? " active" : ""}${isDim ? " dimmed" : ""}`;
}

/** As much of a text as fits: its end, as names of replicas differ there. */
function fitted(text, width) {
  const most = Math.floor(width / CHARACTER);
  if (text.length <= most) return text;
  return most < 3 ? "" : `…${text.slice(1 - most)}`;
}

/** Renewals as one path; those closer than two pixels are a line. */
function tickPath(lane, x, left, right, bar) {
  const segments = [];
  const add = (begins, ends) => {
    const last = segments.at(-1);
    if (last && begins - last[1] < 2) last[1] = Math.max(last[1], ends);
    else segments.push([begins, ends]);
  };
  for (const { begins, ends } of lane.buckets)
    if (x(ends) >= left && x(begins) <= right) add(Math.max(left, x(begins)), Math.min(right, x(ends) + 1));
  const until = d3.bisectRight(lane.ticks, x.invert(right));
  for (let index = d3.bisectLeft(lane.ticks, x.invert(left)); index < until; index += 1)
    add(x(lane.ticks[index]) - 0.5, x(lane.ticks[index]) + 0.5);
  const y = bar.top + bar.height + 2;
  const box = ([begins, ends]) => `M${begins.toFixed(1)},${y}h${(ends - begins).toFixed(1)}v5h${(begins - ends).toFixed(1)}z`;
  return segments.map(box).join("");
}

/** Marks in pixels; those that would lie upon each other become one with a number. */
function placedMarks(lane, x, left, right) {
  const found = [];
  for (const mark of lane.marks) {
    const at = x(mark.begins);
    if (at < left - 1 || at > right + 1 || !isShown(mark)) continue;
    const one = found.at(-1);
    const space = one && (one.items.length > 1 ? MARK_SPACE : MARK_WIDTH);
    if (one && at - one.last < space && at - one.first < MARK_SPREAD) {
      one.items.push(mark);
      one.last = at;
      one.number += mark.count;
    } else found.push({ key: mark.key, first: at, last: at, items: [mark], number: mark.count });
  }
  return found;
}

function newMark() {
  const target = { class: "target", width: MARK_WIDTH + 2, height: MARK_WIDTH + 4, x: -MARK_WIDTH / 2 - 1, y: -MARK_WIDTH / 2 - 2 };
  return made("g", { class: "item", role: "option" }, "", made("line", { class: "stem" }), made("rect", target), made("path"));
}

function updateMark(node, one, bar) {
  const { items, number } = one;
  const worst = d3.least(items, (mark) => markLook(mark.kind).rank);
  const [stem, , path] = node.children;
  describe(node, one, number, worst.kind, () => {
    const [mark] = items;
    if (items.length === 1) return `${markTitle(mark)} at ${instant(book, mark.begins, 3)}: ${mark.text.slice(0, 500)}`;
    const titles = [...new Set(items.map(markTitle))].slice(0, 6).join(", ");
    return `${number} events from ${instant(book, mark.begins)} on: ${titles}`;
  });
  const place = `translate(${((one.first + one.last) / 2).toFixed(1)},${bar.top - 11})`;
  const kinds = [...new Set(items.map((mark) => mark.kind))].join(" ");
  put(node, { "data-kinds": kinds, class: classesOf(one, false), transform: place });
  put(stem, { y1: 6, y2: 11 + (number === 1 ? bar.height : 0) });
  put(path, { class: `mark ${markLook(worst.kind).look}`, d: markPath(worst.kind) });
}
