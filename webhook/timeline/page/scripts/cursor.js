// The cursor: one instant, read in every lane.
"use strict";

const MOST_READ = 3; // lanes whose state the reading says in words

function paintCursor() {
  const at = readInstant();
  const fixed = view.pointer ?? view.cursor;
  const line = d3.select(viewport).selectAll(".cursor").data(fixed === null ? [] : [fixed]).join("div").attr("class", "cursor");
  const x = fixed === null ? 0 : chart.scale(fixed);
  const [left, right] = chart.scale.range();
  line.style("left", `${x}px`).style("height", `${Math.max(view.tops.at(-1), chart.height)}px`).property("hidden", x < left || x > right).classed("fixed", view.pointer === null);
  d3.select(list).selectAll(".lane").each(function read(lane) {
    const state = stateAt(book, lane, at);
    const [swatch, words] = this.querySelector(".state").children;
    put(swatch.parentNode, { class: `state ${state.kind}` });
    put(swatch, { class: state.span ? `swatch ${state.kind} c${lane.colors.get(state.span.holder)}` : "" });
    put(words, {}, state.note ? `${state.note}: ${state.short}` : state.short);
  });
  const input = element("at");
  if (document.activeElement !== input) input.value = instant(book, at, 3);
  put(element("reading"), {}, reading(at, fixed === null));
}

/** What is so at an instant, over all lanes in words. */
function reading(at, isEnd) {
  const leases = view.lanes.filter((lane) => lane.kind === "Lease");
  const states = leases.map((lane) => [lane, stateAt(book, lane, at)]);
  const led = states.filter(([, state]) => state.kind === "held").length;
  const start = isEnd ? "At the end: " : `At ${instant(book, at, wantedDigits())}: `;
  const chosen = view.active && view.active.lane ? view.active.lane : view.active;
  const spoken = leases.length <= MOST_READ ? states : states.filter(([lane]) => lane === chosen);
  const all = leases.length <= MOST_READ ? "" : `${led} of ${count(leases.length, "lease")} with a leader. `;
  return start + all + spoken.map(([, state]) => `${state.long}.`).join(" ");
}

function wantedDigits() {
  const [from, until] = chart.scale.domain();
  return until - from < 20 * SECOND ? 3 : 0;
}

/** Fix the cursor at an instant, null frees it. */
function fixCursor(at) {
  view.cursor = at;
  repaintCursor();
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
    const at = typedInstant(book, input.value, view.cursor ?? d3.mean(chart.scale.domain()));
    input.setAttribute("aria-invalid", Number.isNaN(at));
    if (Number.isNaN(at)) return;
    view.pointer = null;
    fixCursor(at);
    reveal(at);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    input.dispatchEvent(new Event("change"));
  });
}
