// The axis of time, the strip above it with the whole time and the window of the lanes, and the cursor: one instant.
"use strict";

const STRIP = 30;
const MAX_READ = 3; // lanes whose state the reading says in words

const brush = d3.brushX().on("brush end", (event) => {
  if (!event.sourceEvent) return;
  view.follows = false;
  const { selection } = event;
  if (selection && selection[1] - selection[0] >= 2) show(...selection.map(chart.whole.invert));
  else if (event.type === "end") show(...chart.whole.domain());
});

function paintAxis() {
  const [from, until] = chart.scale.domain();
  const [left, right] = chart.scale.range();
  const wide = until - from;
  const digits = wide < 2 * SECOND ? 3 : wide < 20 * SECOND ? 1 : 0;
  const words = (date) => {
    const at = date.getTime() * 1000;
    const time = wide > 6 * 3600 * SECOND ? clock(at).slice(0, 5) : clock(at, digits);
    return at % DAY === 0 || wide > 3 * DAY ? `${d3.utcFormat("%e %b")(date)} ${time.slice(0, 5)}` : time;
  };
  const dates = d3.scaleUtc([from, until].map((at) => new Date((book.base + at) / 1000)), [left, right]);
  const number = Math.max(2, Math.floor((right - left) / 110));
  const svg = element("axis");
  if (!svg.children.length) svg.append(made("g", { transform: "translate(0,23)" }), made("text", { class: "date", x: 12, y: 15 }));
  put(svg, { width: chart.width, height: 24 });
  d3.select(svg.firstChild).call(d3.axisTop(dates).ticks(number).tickFormat(words).tickSizeOuter(0));
  put(svg.lastChild, {}, `${parts(book.base + Math.max(from, book.from)).date}, UTC`);
}

/** What the strip shows of all lanes at once, as pairs of pixels: those that lie above others come last. */
function stripes() {
  const x = chart.whole;
  const doubts = view.lanes.flatMap((lane) => lane.doubts);
  const doubtsOf = (kind) => doubts.filter((one) => one.kind === kind).map((one) => [x(one.begins), x(Math.min(one.ends, book.ends))]);
  const lost = view.lanes.flatMap((lane) => lane.gaps.map((gap) => [x(gap.span.begins), x(endOf(book, gap))]));
  return { silent: doubtsOf("silent"), lost, contested: doubtsOf("contested") };
}

function paintOverview() {
  const svg = element("overview");
  const [left, right] = chart.whole.range();
  const key = `${chart.width} ${view.version}`;
  if (svg.key !== key) {
    svg.key = key;
    put(svg, { width: chart.width, height: STRIP });
    const path = (name, pairs, top, height) => made("path", { class: name, d: columns(left, right, pairs, top, height) });
    const marks = view.lanes.flatMap((lane) => lane.marks.filter(isShown).map((mark) => chart.whole(mark.begins)));
    svg.replaceChildren(
      made("text", { class: "date", x: 12, y: 19 }, "All lanes"),
      made("rect", { class: "ground", x: left, width: right - left, y: 4, height: STRIP - 8 }),
      ...Object.entries(stripes()).map(([name, pairs]) => path(`stripe ${name}`, pairs, 4, STRIP - 14)),
      path("happened", marks.map((x) => [x, x]), STRIP - 9, 5),
      made("g", { class: "brush" }),
    );
    d3.select(svg.lastChild).call(brush.extent([[left, 2], [right, STRIP - 2]]));
  }
  const [from, until] = chart.scale.domain().map(chart.whole);
  d3.select(svg.lastChild).call(brush.move, [Math.max(left, from), Math.min(right, until)]);
}

/** One path with a column for each pixel in which something lies: the more, the higher. */
function columns(left, right, pairs, top, height) {
  const steps = new Int32Array(Math.ceil(right - left) + 2);
  const column = (x) => Math.min(Math.max(0, Math.floor(x - left)), steps.length - 2);
  for (const [begins, ends] of pairs) {
    steps[column(begins)] += 1;
    steps[column(ends) + 1] -= 1;
  }
  const counts = d3.cumsum(steps);
  const most = Math.max(1, d3.max(counts));
  const size = (number) => Math.max(2, height * Math.sqrt(number / most)).toFixed(1);
  return Array.from(counts, (number, index) => (number ? `M${left + index},${top + height}h1v-${size(number)}h-1z` : "")).join("");
}

function paintCursor() {
  const at = view.pointer ?? view.cursor ?? book.ends;
  const fixed = view.pointer ?? view.cursor;
  const line = element("cursor");
  const x = fixed === null ? NaN : chart.scale(fixed);
  const [left, right] = chart.scale.range();
  line.hidden = !(x >= left && x <= right);
  line.classList.toggle("fixed", view.pointer === null);
  if (!line.hidden) Object.assign(line.style, { left: `${x}px`, height: `${Math.max(view.tops.at(-1), chart.height)}px` });
  for (const row of list.children) paintState(row, row.children[1].items[0], at);
  const input = element("at");
  if (document.activeElement !== input) {
    input.value = instant(book, at, 3);
    input.setAttribute("aria-invalid", false);
  }
  put(element("reading"), {}, reading(at, fixed === null));
}

/** Write beside a lane what is so at an instant. */
function paintState(row, lane, at) {
  const state = stateAt(book, lane, at);
  const [swatch, words, note] = row.querySelector(".state").children;
  put(swatch.parentNode, { class: `state ${state.kind}` });
  put(swatch, { class: state.span ? `swatch ${state.span.kind} c${lane.colors.get(state.span.holder)}` : "" });
  put(words, { title: state.short }, middled(state.short, Math.floor((chart.left - 49) / CHARACTER)));
  put(note, { title: state.note || "" }, state.note || "");
}

/** What is so at an instant, over all lanes in words. */
function reading(at, isEnd) {
  const [from, until] = chart.scale.domain();
  const start = isEnd ? "At the end: " : `At ${instant(book, at, until - from < 20 * SECOND ? 3 : 0)}: `;
  if (at < book.from || at > book.ends)
    return `${start}outside of what was read, ${instant(book, book.from)} to ${instant(book, book.ends)}.`;
  const states = view.lanes.filter((lane) => lane.kind === "Lease").map((lane) => [lane, stateAt(book, lane, at)]);
  const chosen = view.active && (view.active.lane || view.active);
  const others = states.filter(([, state]) => state.kind !== "held");
  const isFew = states.length <= MAX_READ;
  const spoken = isFew ? states : d3.sort(others, ([lane]) => lane !== chosen).slice(0, MAX_READ);
  const held = states.find(([lane]) => lane === chosen);
  if (held && !spoken.includes(held)) spoken.unshift(held);
  const sentences = spoken.map(([, state]) => `${state.long}.`);
  if (isFew) return start + sentences.join(" ");
  const left = others.length - spoken.filter((one) => others.includes(one)).length;
  const more = left > 0 ? ` And ${left} more ${left === 1 ? "has" : "have"} none, or not for sure.` : "";
  return `${start}${states.length - others.length} of ${count(states.length, "lease")} have a leader. ${sentences.join(" ")}${more}`;
}

/** Fix the cursor at an instant, null frees it. */
function fixCursor(at) {
  view.cursor = at;
  refuse("");
  repaintCursor();
}

/** Say that what was typed is not an instant; "" takes that back. */
function refuse(typed) {
  element("at").setAttribute("aria-invalid", Boolean(typed));
  const example = instant(book, book.from);
  put(element("refused"), {}, typed && `"${typed.trim().slice(0, 40)}" is not a time. Write it as ${example}`);
}

/** Take what was typed as an instant. */
function takeTyped() {
  const { value } = element("at");
  if (!value.trim()) return fixCursor(null);
  const at = typedInstant(book, value, view.cursor ?? d3.mean(chart.scale.domain()));
  if (Number.isNaN(at)) return refuse(value);
  view.pointer = null;
  fixCursor(at);
  return reveal(at);
}

function within(at) {
  return Math.min(Math.max(at, book.from), book.ends);
}

function listenForCursor() {
  viewport.addEventListener("pointermove", (event) => {
    const [x] = d3.pointer(event, list);
    const [left, right] = chart.scale.range();
    view.pointer = x >= left && x <= right ? within(chart.scale.invert(x)) : null;
    repaintCursor();
  });
  viewport.addEventListener("pointerleave", () => {
    view.pointer = null;
    repaintCursor();
  });
  const input = element("at");
  input.addEventListener("change", takeTyped);
  input.addEventListener("input", () => refuse(""));
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    takeTyped();
  });
}
