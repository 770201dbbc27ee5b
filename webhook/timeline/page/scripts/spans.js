// One lane as SVG: bars for spans, small lines for renewals, shapes for marks.
"use strict";

const BAR = { top: 22, height: 22 };
const QUIET_BAR = { top: 8, height: 22 };
const CANDIDATE_BAR = { top: 15, height: 10 };
const CONTESTED = 7; // height of what says in a bar that two may lead
const CHARACTER = 6.9; // pixels of a letter in a bar, about

function barOf(lane) {
  return lane.parent ? CANDIDATE_BAR : lane.isQuiet ? QUIET_BAR : BAR;
}

/** Draw a lane into its svg; `x` gives the pixel of an instant, from `left` to `right`. */
function drawLane(svg, lane, x, left, right) {
  const bar = barOf(lane);
  const doubts = lane.doubts.filter(
    (one) => !view.hidden.has(one.kind) && !view.hidden.has("held") && x(one.ends) > left && x(one.begins) < right,
  );
  svg
    .select(".doubts")
    .selectAll("g")
    .data(doubts)
    .join(enterDoubt)
    .each(function update(one) {
      const begins = Math.max(left, x(one.begins));
      const width = Math.max(1, Math.min(right, x(Math.min(one.ends, book.ends))) - begins);
      const isSilent = one.kind === "silent";
      const box = isSilent
        ? { y: bar.top, height: bar.height }
        : { y: bar.top + bar.height - CONTESTED, height: CONTESTED };
      const [ground, rect, text] = this.children;
      for (const node of [ground, rect]) put(node, { x: begins.toFixed(1), width: width.toFixed(1), ...box });
      put(this, { class: one.kind });
      put(text, { x: (begins + 6).toFixed(1), y: bar.top + 15 }, isSilent ? silenceWords(one, width) : "");
    });
  const placed = placedSpans(lane, x, left, right);
  svg
    .select(".spans")
    .selectAll("g")
    .data(placed, (one) => one.key)
    .join(enterSpan)
    .each(function update(one) {
      updateSpan(this, one, bar);
    });
  svg
    .select(".words")
    .selectAll("text")
    .data(lane.parent ? [] : placed, (one) => one.key)
    .join("text")
    .each(function update(one) {
      updateWords(this, one, bar);
    });
  svg.select(".ticks").attr("d", view.hidden.has("renewals") ? "" : tickPath(lane, x, left, right, bar));
  const marks = placedMarks(lane, x, left, right);
  svg
    .select(".marks")
    .selectAll("g")
    .data(marks, (one) => one.key)
    .join(enterMark)
    .each(function update(one) {
      updateMark(this, one, bar);
    });
  svg
    .select(".numbers")
    .selectAll("text")
    .data(
      marks.filter((one) => one.number > 1),
      (one) => one.key,
    )
    .join("text")
    .each(function update(one) {
      put(
        this,
        { x: ((one.first + one.last) / 2 + 6).toFixed(1), y: bar.top - 12 },
        one.number > 99 ? "99+" : String(one.number),
      );
    });
}

/** The empty svg of a lane. The doubts lie upon the bars; only text and marks lie above those. */
function newDrawing(row) {
  const svg = row.append("svg").attr("class", "drawing").attr("role", "presentation");
  svg.append("g").attr("class", "spans");
  svg.append("g").attr("class", "doubts").attr("aria-hidden", "true");
  svg.append("g").attr("class", "words").attr("aria-hidden", "true");
  svg.append("path").attr("class", "ticks");
  svg.append("g").attr("class", "marks");
  svg.append("g").attr("class", "numbers").attr("aria-hidden", "true");
  return svg;
}

function enterDoubt(enter) {
  const group = enter.append("g");
  group.append("rect").attr("class", "ground");
  group.append("rect").attr("class", "pattern");
  group.append("text").attr("class", "in quiet");
  return group;
}

function silenceWords(silence, width) {
  const choices = [`possibly no leader, last renewed at ${moment(book, silence.begins)}`, "possibly no leader"];
  return choices.find((words) => words.length * CHARACTER < width - 8) || "";
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
      found.push({
        key: span.key,
        begins,
        ends,
        quiet: x(span.quietFrom ?? 0),
        isNarrow: ends - begins < 1.5,
        items: [span],
      });
    }
  }
  return found;
}

function enterSpan(enter) {
  const group = enter.append("g").attr("class", "item").attr("role", "option");
  group.append("rect").attr("class", "bar");
  group.append("rect").attr("class", "amber");
  return group;
}

function updateSpan(node, one, bar) {
  const [span] = one.items;
  const kind = one.items.length > 1 ? "several" : span.kind;
  const width = Math.max(1, one.ends - one.begins).toFixed(1);
  const box = { x: one.begins.toFixed(1), width, y: bar.top, height: bar.height };
  const [rect, amber] = node.children;
  if (isOther(node, one.items)) {
    put(node, {
      id: `${span.lane.dom}-${one.key}`,
      "data-kind": kind,
      "data-count": one.items.length,
      "data-begins": span.begins,
      "data-ends": span.ends === null ? "" : span.ends,
      "data-holder": span.holder,
      "aria-label": spanLabel(one),
    });
  }
  node.items = one.items;
  put(node, { class: classesOf(one, isDimmed(span)), "aria-selected": one.items.includes(view.selected) });
  put(rect, { ...box, class: `bar ${kind} c${span.lane.colors.get(span.holder)}`, rx: width > 6 ? 3 : 0 });
  put(amber, kind === "overdue" ? box : { width: 0 });
}

/** What stands in a bar: it is no part of the bar's element, whose label says more. */
function updateWords(node, one, bar) {
  const [span] = one.items;
  const kind = one.items.length > 1 ? "several" : span.kind;
  const width = (span.quietFrom === undefined ? one.ends : Math.min(one.ends, one.quiet)) - one.begins;
  const fixed = { overdue: "overdue", leaderless: "no leader" }[kind];
  const words =
    kind === "held" ? fitted(span.holder, width - 10) : fixed && fixed.length * CHARACTER < width - 4 ? fixed : "";
  put(
    node,
    { class: `in ${kind}${isDimmed(span) ? " dimmed" : ""}`, x: (one.begins + 6).toFixed(1), y: bar.top + 15 },
    words,
  );
}

/** Whether an element showed something else before; what does not depend on the zoom is written only then. */
function isOther(node, items) {
  return !node.items || node.items[0] !== items[0] || node.items.at(-1) !== items.at(-1);
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
    if (x(bucket.ends) >= left && x(bucket.begins) <= right)
      put(Math.max(left, x(bucket.begins)), Math.min(right, x(bucket.ends) + 1));
  }
  const from = d3.bisectLeft(lane.ticks, x.invert(left));
  const until = d3.bisectRight(lane.ticks, x.invert(right));
  for (let index = from; index < until; index += 1) {
    const at = x(lane.ticks[index]);
    put(at - 0.5, at + 0.5);
  }
  const y = bar.top + bar.height + 2;
  return segments
    .map(
      ([begins, ends]) => `M${begins.toFixed(1)},${y}h${(ends - begins).toFixed(1)}v5h${(begins - ends).toFixed(1)}z`,
    )
    .join("");
}
