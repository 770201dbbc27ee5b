// The keys of the lanes, which are one stop of the Tab key, what the live page receives, and the beginning of it all.

/** Make an item the active one: in view, read by the cursor, with its note. */
function goTo(item) {
  const { lane } = item;
  if (!view.lanes.includes(lane)) return;
  Object.assign(view, { active: item, hovered: null, isTipClosed: false, isChosen: true });
  // The focus first: if it leaves the field of the instant, what was typed there counts once more.
  list.focus({ preventScroll: document.activeElement === list });
  scrollTo(lane);
  if (item.type !== "lane") {
    reveal(item.begins, endOf(item));
    view.pointer = null;
    fixCursor(Math.max(item.begins, book.from));
  }
  select([item]);
}

function itemsOf(lane) {
  return [lane, ...lane.items.filter((item) => item.type === "span" || isShown(item))];
}

/** The one of some things that is so many steps from another, the first or last at their ends. */
function stepIn(all, one, step) {
  return all[Math.min(Math.max(all.indexOf(one) + step, 0), all.length - 1)];
}

function stepInLane(step) {
  goTo(view.active ? stepIn(itemsOf(view.active.lane), view.active, step) : view.lanes[0]);
}

function stepLane(step) {
  const { active } = view;
  const next = active ? stepIn(view.lanes, active.lane, step) : view.lanes[0];
  if (!active || active.type === "lane") return goTo(next);
  if (next === active.lane) return goTo(active);
  return goTo(d3.least(itemsOf(next).slice(1), (item) => Math.abs(item.begins - active.begins)) ?? next);
}

/** To the next time without a leader, in the order of time, of any lane that is shown. */
function stepGap(step) {
  const gaps = view.lanes.flatMap((lane) => lane.gaps.map((gap) => gap.span));
  const spans = d3.sort(gaps, (span) => span.begins);
  if (!spans.length) return;
  const { active, cursor } = view;
  const from = active && active.type !== "lane" ? active.begins : cursor;
  const at = from ?? (step > 0 ? -Infinity : Infinity);
  const current = spans.indexOf(active);
  const near = step > 0 ? byBegin.right(spans, at) : byBegin.left(spans, at) - 1;
  const index = current >= 0 ? current + step : near;
  goTo(spans[(index + spans.length) % spans.length]);
}

const showAll = () => show(...chart.whole.domain());
const KEYS = {
  ArrowRight: (event) => (event.shiftKey ? moveBy(0.25) : stepInLane(1)),
  ArrowLeft: (event) => (event.shiftKey ? moveBy(-0.25) : stepInLane(-1)),
  ArrowDown: () => stepLane(1),
  ArrowUp: () => stepLane(-1),
  PageDown: () => stepLane(10),
  PageUp: () => stepLane(-10),
  Home: () => view.active && goTo(view.active.lane),
  End: () => view.active && goTo(itemsOf(view.active.lane).at(-1)),
  Enter: openDetails,
  " ": openDetails,
  "+": () => zoomBy(0.5),
  "=": () => zoomBy(0.5),
  "-": () => zoomBy(2),
  0: showAll,
  n: () => stepGap(1),
  p: () => stepGap(-1),
  t: () => element("at").select(),
  "/": () => element("search").focus(),
  c: () => element("compact").click(),
  o: () => element("only").click(),
  Escape: closeTip,
};
const IN_LANES = new Set(["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End", "Enter", " "]);

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

/** Keys work wherever the focus is, unless that is a field; those that scroll or press belong to the lanes alone. */
document.addEventListener("keydown", (event) => {
  const act = Object.hasOwn(KEYS, event.key) && KEYS[event.key];
  const isInLanes = event.target === list;
  const isTyped = event.target.closest?.("input:not([type=checkbox]), select, textarea");
  if (!act || event.ctrlKey || event.metaKey || event.altKey || isTyped || (!isInLanes && IN_LANES.has(event.key))) return;
  if (!view.lanes.length && !["/", "c", "o"].includes(event.key)) return;
  event.preventDefault();
  view.follows &&= !["+", "=", "-"].includes(event.key);
  act(event);
  repaint();
});
for (const name of ["focus", "blur"]) list.addEventListener(name, repaint);
element("details").addEventListener("keydown", (event) => event.key === "Escape" && list.focus());
element("compact").addEventListener("change", () => {
  view.isCompact = element("compact").checked;
  measure();
  viewport.scrollTop = 0;
});
element("fit").addEventListener("click", () => {
  element("compact").click();
  element("chart").scrollIntoView({ block: "start" });
});
element("only").addEventListener("change", () => {
  view.onlyTrouble = element("only").checked;
  viewport.scrollTop = 0;
  refilter();
});
element("order").addEventListener("change", () => {
  view.order = element("order").value;
  viewport.scrollTop = 0;
  refilter();
});
element("local").addEventListener("change", () => {
  book.isLocal = element("local").checked;
  noteDates();
  element("zone").textContent = `${zoneName()}, API server's clock`;
  refilter();
  fillNotes();
  if (view.active) select([view.active]);
});
element("save").addEventListener("click", savePicture);
for (const one of document.querySelectorAll("button[data-key]"))
  one.addEventListener("click", () => {
    view.follows = one.id === "whole";
    KEYS[one.dataset.key]({ shiftKey: true });
    repaint();
  });

/** Receive what changed as server-sent events: lanes take the place of those that the page has. */
function listenForLanes(path) {
  const say = (text) => {
    element("live").textContent = text;
    element("live").hidden = false;
  };
  const source = new EventSource(path);
  source.onmessage = (event) => {
    const message = JSON.parse(event.data);
    if (message.hasEnded) source.close();
    say(message.hasEnded ? `No longer live: ${message.status}` : message.status || "Live.");
    take(message);
  };
  source.onerror = () => {
    const isClosed = source.readyState === EventSource.CLOSED;
    say(isClosed ? "No longer live: the server closed the connection." : "The connection is lost; the browser connects again.");
  };
}

/** The item of the book that was this one before a message, null if it is gone. */
function sameItem(item) {
  const found = item && book.lanes.get(item.lane.id);
  const isSame = (one) => one.kind === item.kind && one.begins === item.begins;
  return (found && itemsOf(found).find(isSame)) ?? null;
}

let filling = 0;

/** Take a message: what is active stays so, if it is still there. A window that follows keeps its width. */
function take(message) {
  const isFirst = book.lanes.size === 0;
  merge(message);
  if (message.lanes.length) {
    Object.assign(view, { active: sameItem(view.active), hovered: null });
    refilter();
    // They change seldom and cost more than the drawing.
    filling ||= setTimeout(() => {
      filling = 0;
      fillNotes();
      fillLegend();
    }, 2000);
  }
  if (isFirst && view.lanes.length && !takeState()) select([view.lanes[0]]);
  const [from, until] = chart.scale.domain();
  const [first, last] = chart.whole.domain();
  measure();
  if (isFirst || (view.follows && from <= first && until >= last)) showAll();
  else if (view.follows) show(chart.whole.domain()[1] - (until - from), chart.whole.domain()[1]);
  repaint();
}

let keeping = 0;

/** Keep what is shown in the address, in microseconds since 1970, so that it can be sent to others. */
function keepState() {
  clearTimeout(keeping);
  keeping = setTimeout(() => {
    const times = [...chart.scale.domain(), ...(view.cursor === null ? [] : [view.cursor])];
    const isPlain = times.length === 2 && times.every((at, index) => at === chart.whole.domain()[index]);
    const shown = isPlain || events ? [] : [["times", times.map((at) => Math.round(book.base + at))]];
    const search = element("search").value;
    const chosen = [
      ...(search ? [["search", search]] : []),
      ...(view.isCompact ? [["compact", "1"]] : []),
      ...(view.onlyTrouble ? [["trouble", "1"]] : []),
      ...(view.order ? [["order", view.order]] : []),
      ...(book.isLocal ? [["zone", "local"]] : []),
      ...(view.isChosen && view.active ? [["lease", view.active.lane.id]] : []),
    ];
    history.replaceState(null, "", `#${new URLSearchParams([...shown, ...chosen])}`);
  }, 300);
}

/** Show what the address says. */
function takeState() {
  const told = new URLSearchParams(location.hash.slice(1));
  element("search").value = told.get("search");
  element("order").value = Object.hasOwn(ORDERS, told.get("order")) ? told.get("order") : events ? "name" : "trouble";
  view.order = Object.hasOwn(ORDERS, told.get("order")) ? told.get("order") : "";
  for (const [id, name, value] of [["compact", "compact", "1"], ["only", "trouble", "1"], ["local", "zone", "local"]]) {
    const isSet = told.get(name) === value;
    if (element(id).checked !== isSet) element(id).click();
  }
  refilter();
  const [from, until, at] = (told.get("times") ?? "").split(",").map((one) => Number(one || NaN) - book.base);
  if (from < until) show(from, until);
  if (at >= book.from) fixCursor(clampToRange(at));
  const lane = book.lanes.get(told.get("lease"));
  if (!lane || !view.lanes.includes(lane)) return false;
  Object.assign(view, { active: lane, isChosen: true, isTipClosed: true });
  scrollTo(lane);
  select([lane]);
  return true;
}

function fillNotes() {
  const part = (title, texts) => {
    const items = texts.slice(0, 50).map((text) => make("li", {}, text));
    return texts.length ? [make("h3", {}, title), make("ul", {}, ...items)] : [];
  };
  const read = book.readAt === null ? "" : new Date(book.readAt / 1000).toISOString().slice(0, 19);
  const sources = [...book.sources, ...(read ? [`at ${read}Z, by the clock of the computer that read it`] : [])];
  const left = part("What was left out or drawn together", book.thinned);
  element("notes").replaceChildren(...left, ...part("Read from", sources));
}

fillLegend();
fillNotes();
d3.select(list).call(zoom).on("dblclick.zoom", null);
measure();
const isLinked = takeState();
addEventListener("hashchange", takeState);
viewport.addEventListener("scroll", repaint, { passive: true });
list.addEventListener("wheel", moveByWheel, { passive: false });
new ResizeObserver(measure).observe(viewport);
if (view.lanes.length && !isLinked) select([view.lanes[0]]);
if (events) listenForLanes(events);
