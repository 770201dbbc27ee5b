// The keys of the lanes, which are one stop of the Tab key, what the live page receives, and the beginning of it all.
"use strict";

/** Make an item the active one: in view, read by the cursor, with its note. */
function goTo(item, at = item.begins) {
  const lane = item.lane || item;
  if (!view.lanes.includes(lane)) return;
  Object.assign(view, { active: item, hovered: null, isTipClosed: false });
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

function activeLane() {
  return view.active && (view.active.lane || view.active);
}

function itemsOf(lane) {
  return [lane, ...lane.items.filter((item) => (item.type === "span" ? !view.hidden.has(item.kind) : isShown(item)))];
}

/** The one of some things that is so many steps from another, the first or last at their ends. */
function stepIn(all, one, step) {
  return all[Math.min(Math.max(all.indexOf(one) + step, 0), all.length - 1)];
}

function stepInLane(step) {
  goTo(view.active ? stepIn(itemsOf(activeLane()), view.active, step) : view.lanes[0]);
}

function stepLane(step) {
  if (!view.active) return goTo(view.lanes[0]);
  const next = stepIn(view.lanes, activeLane(), step);
  if (next === activeLane()) return goTo(view.active);
  if (view.active.type === "lane") return goTo(next);
  return goTo(d3.least(itemsOf(next).slice(1), (item) => Math.abs(item.begins - view.active.begins)) || next);
}

/** To the next time without a leader, in the order of time, of any lane that is shown. */
function stepGap(step) {
  const gaps = view.lanes.flatMap((lane) => lane.gaps.map((gap) => gap.span));
  const spans = d3.sort(gaps, (span) => span.begins, (span) => view.lanes.indexOf(span.lane));
  if (!spans.length) return;
  const at = view.active?.begins ?? view.cursor ?? (step > 0 ? -Infinity : Infinity);
  const current = spans.indexOf(view.active);
  const near = step > 0 ? byBegin.right(spans, at) : byBegin.left(spans, at) - 1;
  const index = current >= 0 ? current + step : near;
  goTo(spans[(index + spans.length) % spans.length]);
}

function nudge(step) {
  const [from, until] = chart.scale.domain();
  const at = (view.cursor ?? view.active?.begins ?? (from + until) / 2) + (step * (until - from)) / 200;
  view.pointer = null;
  fixCursor(within(at));
  reveal(view.cursor);
}

const showAll = () => show(...chart.whole.domain());
const KEYS = {
  ArrowRight: (event) => (event.shiftKey ? moveBy(0.25) : stepInLane(1)),
  ArrowLeft: (event) => (event.shiftKey ? moveBy(-0.25) : stepInLane(-1)),
  ArrowDown: () => stepLane(1),
  ArrowUp: () => stepLane(-1),
  PageDown: () => stepLane(10),
  PageUp: () => stepLane(-10),
  Home: () => view.active && goTo(activeLane()),
  End: () => view.active && goTo(itemsOf(activeLane()).at(-1)),
  Enter: openDetails,
  " ": openDetails,
  "+": () => zoomBy(0.5),
  "=": () => zoomBy(0.5),
  "-": () => zoomBy(2),
  0: showAll,
  n: () => stepGap(1),
  p: () => stepGap(-1),
  ",": () => nudge(-1),
  ".": () => nudge(1),
  t: () => element("at").select(),
  "/": () => element("search").focus(),
  Escape: closeTip,
};
const BUTTONS = {
  earlier: () => moveBy(-0.25),
  later: () => moveBy(0.25),
  closer: () => zoomBy(0.5),
  wider: () => zoomBy(2),
  whole: showAll,
  gap: () => stepGap(1),
};

function openDetails() {
  if (!view.active) return;
  element("details").focus();
  element("details").scrollIntoView({ block: "nearest" });
}

/** Close the note, then release the cursor. */
function closeTip() {
  if (element("tip").hidden) fixCursor(null);
  else Object.assign(view, { isTipClosed: true, hovered: null });
}

function listenForKeys() {
  list.addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey || !view.lanes.length) return;
    event.preventDefault();
    view.follows &&= !["+", "=", "-"].includes(event.key);
    act(event);
    repaint();
  });
  list.addEventListener("focus", repaint);
  list.addEventListener("blur", repaint);
  element("details").addEventListener("keydown", (event) => event.key === "Escape" && list.focus());
  for (const [id, act] of Object.entries(BUTTONS))
    element(id).addEventListener("click", () => {
      view.follows = id === "whole";
      act();
      repaint();
    });
}

/** Receive lanes that changed as server-sent events; they take the place of those that the page has. */
function listenForLanes(path) {
  const say = (text) => {
    element("live").textContent = text;
    element("live").hidden = false;
  };
  const source = new EventSource(path);
  const on = (name, act) => source.addEventListener(name, (event) => act(event.data && JSON.parse(event.data)));
  on("open", () => say("Live."));
  on("lanes", take);
  on("clock", ({ ends }) => {
    book.ends = Math.max(book.ends, ends - book.base);
    grow();
  });
  on("status", ({ text }) => say(text || "Live."));
  on("end", ({ why }) => {
    source.close();
    say(`No longer live: ${why}`);
  });
  on("error", () => {
    const isClosed = source.readyState === EventSource.CLOSED;
    say(isClosed ? "No longer live: the server closed the connection." : "The connection is lost; the browser connects again.");
  });
}

/** The item of the book that was this one before a message, null if it is gone. */
function sameItem(item) {
  const lane = item && (item.lane || item);
  const parent = lane && book.lanes.get((lane.parent || lane).id);
  const found = parent && lane.parent ? parent.candidates.find((one) => one.id === lane.id) : parent;
  if (!found || item.type === "lane") return found ?? null;
  return found[`${item.type}s`].find((one) => one.kind === item.kind && one.begins === item.begins) ?? null;
}

/** Take a message: what is active or selected stays so, if it is still there. */
function take(message) {
  const isFirst = book.lanes.size === 0;
  merge(book, message);
  Object.assign(view, { active: sameItem(view.active), selected: sameItem(view.selected), hovered: null });
  refilter();
  fillSoon();
  if (isFirst) {
    chart.isMeasured = false;
    selectFirst();
  }
  grow();
}

let isFilling = 0;

/** The choices of the filters change seldom and cost more than the drawing. */
function fillSoon() {
  isFilling ||= setTimeout(() => {
    isFilling = 0;
    fillNotes();
    if (!["filters", "kinds"].some((id) => element(id).contains(document.activeElement))) fillChoices();
  }, 2000);
}

/** The end moved: a window that follows keeps its width and moves along. */
function grow() {
  const [from, until] = chart.scale.domain();
  const [first, last] = chart.whole.domain();
  measure();
  if (view.follows) {
    const [begins, ends] = chart.whole.domain();
    show(from <= first && until >= last ? begins : ends - (until - from), ends);
  }
  repaint();
}

function fillNotes() {
  const part = (title, texts) => {
    const items = texts.slice(0, 50).map((text) => made("li", {}, text));
    return texts.length ? [made("h3", {}, title), made("ul", {}, "", ...items)] : [];
  };
  const read = book.readAt === null ? "" : new Date(book.readAt / 1000).toISOString().slice(0, 19);
  const sources = [...book.sources, ...(read ? [`at ${read}Z, by the clock of the computer that read it`] : [])];
  const left = part("What was left out or drawn together", book.thinned);
  element("notes").replaceChildren(...left, ...part("Read from", sources));
}

function print(isPrinting) {
  chart.isPrinting = isPrinting;
  measure();
  repaint();
  paintNow();
}

/** Move the window with a wheel that turns sideways. */
function moveByWheel(event) {
  if (event.ctrlKey || event.metaKey) return;
  const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
  const across = event.shiftKey ? event.deltaX || event.deltaY : isSideways ? event.deltaX : 0;
  if (!across) return;
  event.preventDefault();
  view.follows = false;
  moveBy(across / (chart.width - chart.left));
}

painters.drawing.push(paintLanes, paintAxis, paintOverview, paintTable);
painters.cursor.push(paintCursor, paintTip);
const events = document.querySelector("meta[name=events]").content;
if (events) element("order").value = "name";
listenForFilters();
fillChoices();
fillNotes();
refilter();
d3.select(list).call(zoom).on("dblclick.zoom", null);
measure();
for (const listen of [listenForCursor, listenForItems, listenForTable, listenForKeys]) listen();
viewport.addEventListener("scroll", repaint, { passive: true });
list.addEventListener("wheel", moveByWheel, { passive: false });
new ResizeObserver(() => {
  measure();
  repaint();
}).observe(viewport);
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));
matchMedia("print").addEventListener("change", (event) => print(event.matches));
selectFirst();
if (events) listenForLanes(events);
repaint();
paintNow();
