// The keys of the lanes. The lanes are one stop of the Tab key; `view.active` says which item the keys are on.
"use strict";

/** Make an item the active one: in view, read by the cursor, with its note. */
function goTo(item, at = item.begins) {
  const lane = item.lane || item;
  if (!view.lanes.includes(lane)) return;
  view.active = item;
  view.hovered = null;
  view.isTipClosed = false;
  // The focus first: if it leaves the field of the instant, what was typed there counts once more.
  list.focus({ preventScroll: document.activeElement === list });
  scrollTo(lane);
  if (item.type !== "lane") {
    reveal(at, endOf(book, item));
    view.pointer = null;
    fixCursor(Math.max(at, book.from));
  }
  select([item]);
}

function itemsOf(lane) {
  return [lane, ...lane.items.filter((item) => !view.hidden.has(item.kind) && (item.type === "span" || isShown(item)))];
}

function stepInLane(step) {
  if (!view.active) return goTo(view.lanes[0]);
  const lane = view.active.lane || view.active;
  const items = itemsOf(lane);
  const index = items.indexOf(view.active);
  return goTo(items[Math.min(Math.max(index + step, 0), items.length - 1)]);
}

function stepLane(step) {
  if (!view.active) return goTo(view.lanes[0]);
  const lane = view.active.lane || view.active;
  const next = view.lanes[Math.min(Math.max(view.lanes.indexOf(lane) + step, 0), view.lanes.length - 1)];
  if (view.active.type === "lane" || next === lane) return goTo(next === lane ? view.active : next);
  return goTo(d3.least(itemsOf(next).slice(1), (item) => Math.abs(item.begins - view.active.begins)) || next);
}

/** To the next time without a leader, in the order of time, of any lane that is shown. */
function stepGap(step) {
  const gaps = d3.sort(
    view.lanes.flatMap((lane) => lane.gaps),
    (gap) => gap.span.begins,
    (gap) => view.lanes.indexOf(gap.lane),
  );
  if (!gaps.length) return;
  const current = gaps.findIndex((gap) => gap.span === view.active);
  const at =
    view.active && view.active.begins !== undefined
      ? view.active.begins
      : (view.cursor ?? (step > 0 ? -Infinity : Infinity));
  const begins = gaps.map((gap) => gap.span.begins);
  const index = current >= 0 ? current + step : step > 0 ? d3.bisectRight(begins, at) : d3.bisectLeft(begins, at) - 1;
  goTo(gaps[(index + gaps.length) % gaps.length].span);
}

function nudge(step) {
  const [from, until] = chart.scale.domain();
  const at = (view.cursor ?? (view.active && view.active.begins) ?? (from + until) / 2) + (step * (until - from)) / 200;
  view.pointer = null;
  fixCursor(Math.min(Math.max(at, book.from), book.ends));
  reveal(view.cursor);
}

const KEYS = {
  ArrowRight: (event) => (event.shiftKey ? moveBy(0.25) : stepInLane(1)),
  ArrowLeft: (event) => (event.shiftKey ? moveBy(-0.25) : stepInLane(-1)),
  ArrowDown: () => stepLane(1),
  ArrowUp: () => stepLane(-1),
  PageDown: () => stepLane(10),
  PageUp: () => stepLane(-10),
  Home: () => view.active && goTo(itemsOf(view.active.lane || view.active)[0]),
  End: () => view.active && goTo(itemsOf(view.active.lane || view.active).at(-1)),
  Enter: () => openDetails(),
  " ": () => openDetails(),
  "+": () => zoomBy(0.5, view.cursor),
  "=": () => zoomBy(0.5, view.cursor),
  "-": () => zoomBy(2, view.cursor),
  0: () => show(...chart.whole.domain()),
  n: () => stepGap(1),
  p: () => stepGap(-1),
  ",": () => nudge(-1),
  ".": () => nudge(1),
  t: () => element("at").select(),
  "/": () => element("search").focus(),
  Escape: () => escape(),
};

function openDetails() {
  if (!view.active) return;
  element("details").focus();
  element("details").scrollIntoView({ block: "nearest" });
}

function escape() {
  if (!element("tip").hidden) {
    view.isTipClosed = true;
    view.hovered = null;
    repaint();
  } else fixCursor(null);
}

function listenForKeys() {
  list.addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey || !view.lanes.length) return;
    event.preventDefault();
    view.follows = event.key === "0" ? view.follows : view.follows && !["+", "=", "-"].includes(event.key);
    act(event);
    repaint();
  });
  list.addEventListener("focus", repaint);
  list.addEventListener("blur", repaint);
  element("details").addEventListener("keydown", (event) => {
    if (event.key === "Escape") list.focus();
  });
  const buttons = {
    earlier: () => moveBy(-0.25),
    later: () => moveBy(0.25),
    closer: () => zoomBy(0.5, view.cursor),
    wider: () => zoomBy(2, view.cursor),
    whole: () => show(...chart.whole.domain()),
    gap: () => stepGap(1),
  };
  for (const [id, act] of Object.entries(buttons)) {
    element(id).addEventListener("click", () => {
      view.follows = id === "whole";
      act();
      repaint();
    });
  }
}
