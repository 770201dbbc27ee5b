// The live page: lanes that changed come as server-sent events and take the place of those that the page has.
"use strict";

function listenForLanes(path) {
  const status = element("live");
  const say = (text) => {
    status.textContent = text;
    status.hidden = false;
  };
  const source = new EventSource(path);
  source.addEventListener("open", () => say("Live."));
  source.addEventListener("lanes", (event) => take(JSON.parse(event.data)));
  source.addEventListener("clock", (event) => {
    const { ends } = JSON.parse(event.data);
    book.ends = Math.max(book.ends, ends - book.base);
    grow();
  });
  source.addEventListener("status", (event) => say(JSON.parse(event.data).text || "Live."));
  source.addEventListener("end", (event) => {
    source.close();
    say(`No longer live: ${JSON.parse(event.data).why}`);
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) say("No longer live: the server closed the connection.");
    else say("The connection is lost; the browser connects again.");
  });
}

/** Take a message: what is active or selected stays so, if it is still there. */
function take(message) {
  const same = (item) => {
    if (!item) return null;
    const lane = item.lane || item;
    const parent = book.lanes.get((lane.parent || lane).id);
    const found = !parent ? null : lane.parent ? parent.candidates.find((one) => one.id === lane.id) : parent;
    return !found || item.type === "lane"
      ? found || null
      : found[item.type === "span" ? "spans" : "marks"].find(
          (one) => one.kind === item.kind && one.begins === item.begins,
        ) || null;
  };
  const { active, selected } = view;
  const isFirst = book.lanes.size === 0;
  merge(book, message);
  view.active = same(active);
  view.selected = same(selected);
  view.hovered = null;
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
  if (!isFilling)
    isFilling = setTimeout(() => {
      isFilling = 0;
      fillNotes();
      if (!element("filters").contains(document.activeElement) && !element("kinds").contains(document.activeElement))
        fillChoices();
    }, 2000);
}

/** The end moved: a window that follows keeps its width and moves along. */
function grow() {
  const [from, until] = chart.scale.domain();
  const [first, last] = chart.whole.domain();
  const isWhole = from <= first && until >= last;
  measure();
  if (view.follows) {
    const domain = chart.whole.domain();
    if (isWhole) show(...domain);
    else show(domain[1] - (until - from), domain[1]);
  }
  repaint();
}
