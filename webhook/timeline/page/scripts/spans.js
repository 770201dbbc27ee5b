// One lane as SVG: bars for spans, small lines for renewals, shapes for marks.
"use strict";

const BAR = { top: 22, height: 22 };
const CANDIDATE_BAR = { top: 15, height: 10 };
const CHARACTER = 6.9; // pixels of a letter in a bar, about
const MARK_WIDTH = 14;

function barOf(lane) {
  return lane.parent ? CANDIDATE_BAR : BAR;
}

/** Draw a lane into its svg; `x` gives the pixel of an instant, from `left` to `right`. */
function drawLane(svg, lane, x, left, right) {
  const bar = barOf(lane);
  svg.select(".silences").selectAll("rect").data(silences(lane).filter((one) => x(one.ends) > left && x(one.begins) < right)).join("rect")
    .attr("class", "silence").attr("x", (one) => Math.max(left, x(one.begins))).attr("width", (one) => Math.min(right, x(one.ends)) - Math.max(left, x(one.begins)))
    .attr("y", bar.top).attr("height", bar.height);
  svg.select(".spans").selectAll("g").data(placedSpans(lane, x, left, right), (one) => one.key).join(enterSpan)
    .each(function update(one) { updateSpan(d3.select(this), one, bar); });
  svg.select(".ticks").attr("d", view.hidden.has("renewals") ? "" : tickPath(lane, x, left, right, bar));
  svg.select(".marks").selectAll("g").data(placedMarks(lane, x, left, right), (one) => one.key).join(enterMark)
    .each(function update(one) { updateMark(d3.select(this), one, bar); });
}

/** The empty svg of a lane. The silences lie upon the bars; only text and marks lie above those. */
function newDrawing(row) {
  const svg = row.append("svg").attr("class", "drawing").attr("role", "presentation");
  svg.append("g").attr("class", "spans");
  svg.append("g").attr("class", "silences");
  svg.append("path").attr("class", "ticks");
  svg.append("g").attr("class", "marks");
  return svg;
}

/** The ends of bars after the last renewal, before the lease expired. */
function silences(lane) {
  if (view.hidden.has("held")) return [];
  return lane.gaps.filter((gap) => gap.expired && gap.begins < gap.span.begins).map((gap) => ({ begins: gap.begins, ends: gap.span.begins }));
}

/** Spans in pixels; those that are too narrow to be seen become one. */
function placedSpans(lane, x, left, right) {
  const found = [];
  const from = Math.max(0, bySpanBegin.right(lane.spans, x.invert(left)) - 1);
  for (let index = from; index < lane.spans.length; index += 1) {
    const span = lane.spans[index];
    if (x(span.begins) > right) break;
    if (view.hidden.has(span.kind)) continue;
    const begins = Math.max(left, x(span.begins));
    const ends = Math.min(right, Math.max(x(endOf(book, span)), begins + 1));
    if (ends <= left) continue;
    const before = found.at(-1);
    if (ends - begins < 1.5 && before && before.isNarrow && begins - before.ends < 1) {
      before.ends = ends;
      before.items.push(span);
    } else {
      found.push({ key: span.key, begins, ends, isNarrow: ends - begins < 1.5, items: [span] });
    }
  }
  return found;
}

function enterSpan(enter) {
  const group = enter.append("g").attr("class", "item").attr("role", "option");
  group.append("rect").attr("class", "bar");
  group.append("rect").attr("class", "amber");
  group.append("text");
  return group;
}

function updateSpan(group, one, bar) {
  const [span] = one.items;
  const kind = one.items.length > 1 ? "several" : span.kind;
  const width = Math.max(1, one.ends - one.begins);
  const isActive = one.items.includes(view.active);
  group.attr("id", `${span.lane.dom}-${one.key}`).attr("data-kind", kind).attr("data-count", one.items.length)
    .attr("data-begins", span.begins).attr("data-ends", span.ends).attr("data-holder", span.holder)
    .attr("aria-label", spanLabel(one)).attr("aria-selected", one.items.includes(view.selected))
    .classed("active", isActive).classed("dimmed", isDimmed(span)).property("items", one.items);
  group.select(".bar").attr("class", `bar ${kind} c${span.lane.colors.get(span.holder)}`)
    .attr("x", one.begins).attr("width", width).attr("y", bar.top).attr("height", bar.height).attr("rx", width > 6 ? 3 : 0);
  group.select(".amber").attr("x", one.begins).attr("width", kind === "overdue" ? width : 0).attr("y", bar.top).attr("height", bar.height);
  const words = kind === "held" ? span.holder : kind === "overdue" ? "overdue" : kind === "leaderless" ? "no leader" : "";
  group.select("text").attr("class", `in ${kind}`).attr("x", one.begins + 6).attr("y", bar.top + 15).text(span.lane.parent ? "" : fitted(words, width - 10));
}

/** As much of a text as fits. */
function fitted(text, width) {
  const most = Math.floor(width / CHARACTER);
  if (text.length <= most) return text;
  return most < 4 ? "" : `${text.slice(0, most - 1)}…`;
}

function spanLabel(one) {
  const [span] = one.items;
  if (one.items.length > 1) return `${one.items.length} short spans from ${instant(book, span.begins)} on`;
  const until = span.ends === null ? "until the end" : `to ${instant(book, span.ends)}`;
  return `${spanTitle(book, span)}, from ${instant(book, span.begins)} ${until}`;
}

/** Renewals as one path; those closer than two pixels are a line. */
function tickPath(lane, x, left, right, bar) {
  const segments = [];
  const put = (begins, ends) => {
    const last = segments.at(-1);
    if (last && begins - last[1] < 2) last[1] = Math.max(last[1], ends);
    else segments.push([begins, ends]);
  };
  for (const bucket of lane.buckets) {
    if (x(bucket.ends) >= left && x(bucket.begins) <= right) put(Math.max(left, x(bucket.begins)), Math.min(right, x(bucket.ends) + 1));
  }
  const from = d3.bisectLeft(lane.ticks, x.invert(left));
  const until = d3.bisectRight(lane.ticks, x.invert(right));
  for (let index = from; index < until; index += 1) {
    const at = x(lane.ticks[index]);
    put(at - 0.5, at + 0.5);
  }
  const y = bar.top + bar.height + 2;
  return segments.map(([begins, ends]) => `M${begins.toFixed(1)},${y}h${(ends - begins).toFixed(1)}v5h${(begins - ends).toFixed(1)}z`).join("");
}

/** Marks in pixels; those that would lie upon each other become one with a number. */
function placedMarks(lane, x, left, right) {
  const found = [];
  for (const mark of lane.marks) {
    const at = x(mark.begins);
    if (at < left - 1 || at > right + 1 || !isShown(mark)) continue;
    const before = found.at(-1);
    if (before && at - before.last < MARK_WIDTH) {
      before.items.push(mark);
      before.last = at;
    } else {
      found.push({ key: mark.key, first: at, last: at, items: [mark] });
    }
  }
  return found;
}

function enterMark(enter) {
  const group = enter.append("g").attr("class", "item").attr("role", "option");
  group.append("line").attr("class", "stem");
  group.append("rect").attr("class", "target").attr("width", MARK_WIDTH + 2).attr("height", MARK_WIDTH + 4).attr("x", -MARK_WIDTH / 2 - 1).attr("y", -MARK_WIDTH / 2 - 2);
  group.append("path");
  group.append("text").attr("class", "number").attr("text-anchor", "middle").attr("y", 4);
  return group;
}

function updateMark(group, one, bar) {
  const worst = d3.least(one.items, (mark) => markLook(mark.kind).rank);
  const number = d3.sum(one.items, (mark) => mark.count);
  const isOne = number === 1;
  const middle = (one.first + one.last) / 2;
  group.attr("id", `${worst.lane.dom}-${one.key}`).attr("data-kind", worst.kind).attr("data-count", number)
    .attr("data-begins", one.items[0].begins).attr("data-ends", null).attr("data-holder", one.items[0].holder)
    .attr("data-kinds", [...new Set(one.items.map((mark) => mark.kind))].join(" "))
    .attr("aria-label", markLabel(one, number)).attr("aria-selected", one.items.includes(view.selected))
    .classed("active", one.items.includes(view.active)).property("items", one.items)
    .attr("transform", `translate(${middle},${bar.top - 11})`);
  group.select(".stem").attr("x1", 0).attr("x2", 0).attr("y1", 6).attr("y2", 11 + (isOne ? bar.height : 0));
  const size = isOne ? 62 : 150;
  group.select("path").attr("class", `mark ${isOne ? markLook(worst.kind).look : `${markLook(worst.kind).look.replace(" line", "")} many`}`)
    .attr("d", isOne ? markPath(worst.kind, size) : "M-8,-8h16v16h-16z");
  group.select(".number").text(isOne ? "" : number > 99 ? "99+" : number);
}

function markLabel(one, number) {
  const [mark] = one.items;
  if (one.items.length === 1) return `${markTitle(mark)} at ${instant(book, mark.begins, 3)}: ${mark.text.slice(0, 500)}`;
  return `${number} events from ${instant(book, mark.begins)} on: ${[...new Set(one.items.map(markTitle))].slice(0, 6).join(", ")}`;
}
