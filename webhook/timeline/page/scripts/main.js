// The keys of the lanes, which are one stop of the Tab key, what the live page receives, and the beginning of it all.

/** Make an item the active one: in view, read by the cursor, with its note. */
function goTo(item) {
  const { lane } = item;
  if (!view.lanes.includes(lane)) return;
  Object.assign(view, { active: item, hovered: null, isTipClosed: false });
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
  Escape: closeTip,
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

list.addEventListener("keydown", (event) => {
  const act = KEYS[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey || !view.lanes.length) return;
  event.preventDefault();
  view.follows &&= !["+", "=", "-"].includes(event.key);
  act(event);
  repaint();
});
for (const name of ["focus", "blur"]) list.addEventListener(name, repaint);
element("details").addEventListener("keydown", (event) => event.key === "Escape" && list.focus());
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
  if (isFirst && view.lanes.length) select([view.lanes[0]]);
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
    history.replaceState(null, "", `#${new URLSearchParams([...shown, ...(search ? [["search", search]] : [])])}`);
  }, 300);
}

/** Show what the address says. */
function takeState() {
  const told = new URLSearchParams(location.hash.slice(1));
  element("search").value = told.get("search");
  refilter();
  const [from, until, at] = (told.get("times") ?? "").split(",").map((one) => Number(one || NaN) - book.base);
  if (from < until) show(from, until);
  if (at >= book.from) fixCursor(within(at));
}

function fillNotes() {
  const part = (title, texts) => {
    const items = texts.slice(0, 50).map((text) => made("li", {}, text));
    return texts.length ? [made("h3", {}, title), made("ul", {}, ...items)] : [];
  };
  const read = book.readAt === null ? "" : new Date(book.readAt / 1000).toISOString().slice(0, 19);
  const named = book.sources.slice(0, 2).map((source) => source.split("/").at(-1)).join(", ");
  document.title = `Leases: ${named}, ${dateOf(book.from)} ${instant(book.from).slice(-8)} to ${instant(book.ends)} UTC`;
  put(document.querySelector("h1"), {}, document.title);
  const sources = [...book.sources, ...(read ? [`at ${read}Z, by the clock of the computer that read it`] : [])];
  const left = part("What was left out or drawn together", book.thinned);
  element("notes").replaceChildren(...left, ...part("Read from", sources));
}

fillLegend();
fillNotes();
d3.select(list).call(zoom).on("dblclick.zoom", null);
measure();
takeState();
viewport.addEventListener("scroll", repaint, { passive: true });
list.addEventListener("wheel", moveByWheel, { passive: false });
new ResizeObserver(measure).observe(viewport);
if (view.lanes.length) select([view.lanes[0]]);
if (events) listenForLanes(events);
