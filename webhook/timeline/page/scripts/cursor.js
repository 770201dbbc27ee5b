// The cursor: one instant, read in every lane.
"use strict";

const MOST_READ = 3; // lanes whose state the reading says in words

function paintCursor() {
  const at = readInstant();
  const fixed = view.pointer ?? view.cursor;
  const line = d3
    .select(viewport)
    .selectAll(".cursor")
    .data(fixed === null ? [] : [fixed])
    .join("div")
    .attr("class", "cursor");
  const x = fixed === null ? 0 : chart.scale(fixed);
  const [left, right] = chart.scale.range();
  line
    .style("left", `${x}px`)
    .style("height", `${Math.max(view.tops.at(-1), chart.height)}px`)
    .property("hidden", x < left || x > right)
    .classed("fixed", view.pointer === null);
  d3.select(list)
    .selectAll(".lane")
    .each(function read(lane) {
      const state = stateAt(book, lane, at);
      const [swatch, words, note] = this.querySelector(".state").children;
      put(swatch.parentNode, { class: `state ${state.kind}` });
      put(swatch, { class: state.span ? `swatch ${state.span.kind} c${lane.colors.get(state.span.holder)}` : "" });
      put(words, { title: state.short }, middled(state.short, Math.floor((chart.left - 49) / CHARACTER)));
      put(note, { title: state.note || "" }, state.note || "");
    });
  const input = element("at");
  if (document.activeElement !== input) {
    input.value = instant(book, at, 3);
    input.setAttribute("aria-invalid", false);
  }
  put(element("reading"), {}, reading(at, fixed === null));
}

/** What is so at an instant, over all lanes in words. */
function reading(at, isEnd) {
  const start = isEnd ? "At the end: " : `At ${instant(book, at, wantedDigits())}: `;
  if (at < book.from || at > book.ends)
    return `${start}outside of what was read, ${instant(book, book.from)} to ${instant(book, book.ends)}.`;
  const states = view.lanes.filter((lane) => lane.kind === "Lease").map((lane) => [lane, stateAt(book, lane, at)]);
  const chosen = view.active && (view.active.lane || view.active);
  const others = states.filter(([, state]) => state.kind !== "held");
  const spoken = states.length <= MOST_READ ? states : d3.sort(others, ([lane]) => lane !== chosen).slice(0, MOST_READ);
  const held = states.find(([lane]) => lane === chosen);
  if (held && !spoken.includes(held)) spoken.unshift(held);
  const led = states.length - others.length;
  const all =
    states.length <= MOST_READ
      ? ""
      : `${led} of ${count(states.length, "lease")} ${states.length === 1 ? "has" : "have"} a leader. `;
  const left = others.length - spoken.filter((one) => others.includes(one)).length;
  return (
    start +
    all +
    spoken.map(([, state]) => `${state.long}.`).join(" ") +
    (left > 0 && states.length > MOST_READ ? ` And ${left} more ${left === 1 ? "has" : "have"} none, or not for sure.` : "")
  );
}

function wantedDigits() {
  const [from, until] = chart.scale.domain();
  return until - from < 20 * SECOND ? 3 : 0;
}

/** Fix the cursor at an instant, null frees it. */
function fixCursor(at) {
  view.cursor = at;
  refuse("");
  repaintCursor();
}

/** Say that what was typed is no instant; "" takes that back. */
function refuse(typed) {
  const input = element("at");
  const example = instant(book, book.from);
  input.setAttribute("aria-invalid", Boolean(typed));
  put(element("refused"), {}, typed && `"${typed.trim().slice(0, 40)}" is not a time. Write it as ${example}`);
}

function listenForCursor() {
  viewport.addEventListener("pointermove", (event) => {
    const [x] = d3.pointer(event, list);
    const [left, right] = chart.scale.range();
    view.pointer = x >= left && x <= right ? Math.min(Math.max(chart.scale.invert(x), book.from), book.ends) : null;
    repaintCursor();
  });
  viewport.addEventListener("pointerleave", () => {
    view.pointer = null;
    repaintCursor();
  });
  const input = element("at");
  input.addEventListener("change", () => {
    if (!input.value.trim()) return fixCursor(null);
    const at = typedInstant(book, input.value, view.cursor ?? d3.mean(chart.scale.domain()));
    if (Number.isNaN(at)) return refuse(input.value);
    view.pointer = null;
    fixCursor(at);
    return reveal(at);
  });
  input.addEventListener("input", () => refuse(""));
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    input.dispatchEvent(new Event("change"));
  });
}
