// The axis of time, and the cursor: one instant.
"use strict";

const MAX_READ = 3; // lanes whose state the reading says in words

function paintAxis() {
  const [from, until] = chart.scale.domain();
  const [left, right] = chart.scale.range();
  const wide = until - from;
  const time = wide > DAY / 4 ? "%H:%M" : wide > 20 * SECOND ? "%H:%M:%S" : "%H:%M:%S.%L";
  const words = d3.utcFormat(wide > 3 * DAY ? `%e %b ${time}` : time);
  const dates = d3.scaleUtc([from, until].map((at) => new Date((book.base + at) / 1000)), [left, right]);
  const ticks = d3.axisTop(dates).ticks(Math.max(2, (right - left) / 110)).tickFormat(words).tickSizeOuter(0);
  const day = made("text", { class: "date", x: 12, y: 15 }, `${dateOf(Math.max(from, book.from))}, UTC`);
  const svg = element("axis");
  put(svg, { width: chart.width, height: 24 });
  svg.replaceChildren(made("g", { transform: "translate(0,23)" }), day);
  d3.select(svg.firstChild).call(ticks);
}

function paintCursor() {
  const fixed = view.pointer ?? view.cursor;
  const at = fixed ?? book.ends;
  const line = element("cursor");
  const x = fixed === null ? NaN : chart.scale(fixed);
  line.hidden = !(x >= chart.left && x <= chart.width - 26);
  line.classList.toggle("fixed", view.pointer === null);
  Object.assign(line.style, { left: `${x}px`, height: `${Math.max(view.tops.at(-1), viewport.clientHeight)}px` });
  for (const row of list.children) paintState(row.querySelector(".state"), row.children[1].items[0], at);
  const input = element("at");
  if (document.activeElement !== input) {
    input.value = instant(at, 3);
    input.setAttribute("aria-invalid", false);
  }
  put(element("reading"), {}, (fixed === null ? "At the end: " : `At ${instant(at, 3)}: `) + reading(at));
}

/** Write beside a lane what is so at an instant. */
function paintState(node, lane, at) {
  const { kind, span, who, note } = stateAt(lane, at);
  const [swatch, words, remark] = node.children;
  put(node, { class: `state ${kind}` });
  put(swatch, { class: span ? `swatch ${span.kind} c${lane.colors.get(span.holder)}` : "" });
  put(words, { title: who }, fitting(who, chart.left - 42));
  put(remark, {}, note);
}

/** What is so at an instant, over all lanes in words: of the lane that was chosen, and of those without a sure leader. */
function reading(at) {
  if (at < book.from || at > book.ends)
    return `outside of what was read, ${instant(book.from)} to ${instant(book.ends)}.`;
  const states = view.lanes.map((lane) => ({ ...stateAt(lane, at), isChosen: lane === laneOf(view.active) }));
  const others = states.filter((state) => state.kind !== "held");
  const told = new Set([...states.filter((state) => state.isChosen), ...(states.length > MAX_READ ? others : states)]);
  const sentences = [...told].slice(0, MAX_READ).map((state) => `${state.words}.`);
  return `${states.length - others.length} of ${states.length} leases have a leader. ${sentences.join(" ")}`;
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
  put(element("refused"), {}, typed && `"${typed.trim().slice(0, 40)}" is not a time. Write it as ${instant(book.from)}`);
}

/** Take what was typed as an instant. */
function takeTyped() {
  const { value } = element("at");
  if (!value.trim()) return fixCursor(null);
  const at = typedInstant(value, view.cursor ?? d3.mean(chart.scale.domain()));
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
  input.addEventListener("keydown", (event) => event.key === "Enter" && takeTyped());
}
