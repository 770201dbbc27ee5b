// What the person chose, what draws it again, and a lane as SVG. Whatever would lie upon each other is drawn as one.

const view = {
  lanes: [], // those that fit the search
  active: null, // the item that the keyboard is on: a lane, a span or a mark
  hovered: null, // the element beneath the pointer
  cursor: null, // a fixed instant
  pointer: null, // the instant beneath the pointer
  follows: true, // of the live page: the window moves with the time
  version: 0, // of what is shown
  isCompact: false, // a line for each lane
  onlyTrouble: false, // lanes in which something went wrong
  order: "", // of the lanes, as it was chosen
};

let frame = 0;
let isWhole = false;

/** Draw everything again before the next frame. */
function repaint() {
  isWhole = true;
  repaintCursor();
}

/** Draw only the cursor again, and what it says. */
function repaintCursor() {
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    if (isWhole) for (const paint of [paintLanes, paintAxis, paintBelow]) paint();
    isWhole = false;
    paintCursor();
    paintTip();
    keepState();
  });
}

function element(id) {
  return document.getElementById(id);
}

/** Write attributes and text only if they differ: each write makes the browser measure again. */
function put(node, attributes, text = null) {
  for (const name in attributes) {
    const value = String(attributes[name]);
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  if (text !== null && node.textContent !== text) node.textContent = text;
}

const SHAPES = new Set(["svg", "g", "rect", "path", "line", "text", "title"]);

/** A new element with attributes, and texts and elements in it. */
function make(name, attributes = {}, ...content) {
  const space = SHAPES.has(name) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
  const one = document.createElementNS(space, name);
  put(one, attributes);
  one.append(...content);
  return one;
}

function button(text, act) {
  const one = make("button", { type: "button" }, text);
  one.addEventListener("click", act);
  return one;
}

const MIN_GAP = 4; // pixels of a time without a leader, at any scale
const MARK_WIDTH = 14;
const MARK_SPACE = 19; // with the number of several
const MARK_SPREAD = 30; // between the first and the last of those that are drawn as one

const PATTERNS = { overdue: "amber", frozen: "pattern frozen", silent: "pattern silent", contested: "pattern contested" };

const MIN_LINE = 13; // pixels of a lane in compact mode, at least
const MAX_LINE = 24;
const LABEL_SPACE = 42; // of the name and the state above a bar, on a narrow page
const SHORT_LABEL = 15;

/** Where the parts of a lane lie, in pixels from its top. */
function layoutOf(lane) {
  const above = chart.isNarrow ? (view.isCompact ? SHORT_LABEL : LABEL_SPACE) : 0;
  if (view.isCompact) {
    const height = chart.isNarrow ? SHORT_LABEL + MIN_LINE : chart.line;
    const bar = { y: above + 1.5, height: height - above - 4.5 };
    return { height, bar, tick: { y: bar.y + bar.height, height: 2 }, sentence: null };
  }
  const bar = { y: above + (lane.isQuiet ? 8 : 22), height: 22 };
  const below = bar.y + bar.height;
  return { height: below + (lane.hasFacts ? 36 : 20), bar, tick: { y: below + 2, height: 5 }, sentence: below + 11 };
}

const ruler = document.createElement("canvas").getContext("2d");
const family = getComputedStyle(document.body).fontFamily;
const widths = new Map();

/** How many pixels a text is wide; `font` is a size and a weight, as in `600 14px`. */
function widthOf(text, font = "12px") {
  const key = font + text;
  if (!widths.has(key)) {
    if (widths.size > 5000) widths.clear();
    ruler.font = `${font} ${family}`;
    widths.set(key, ruler.measureText(text).width);
  }
  return widths.get(key);
}

/** The path of a kind of mark around 0,0. */
function markPath(kind) {
  const [look, shape] = MARKS[kind];
  return make("path", { class: `mark ${look}`, d: shape.draw ? d3.symbol(shape, 62)() : shape });
}

/** A small picture of a kind for a list. */
function glyph(kind) {
  const box = (name) => make("rect", { class: name, x: -7, y: -5, width: 14, height: 10, rx: 2 });
  const bars = () => [`bar ${kind} c0`, PATTERNS[kind]].filter(Boolean).map(box);
  const ticks = () => [make("path", { class: "ticks", d: "M-6,-4v8h1v-8zM-2,-4v8h1v-8zM2,-4v8h1v-8zM6,-4v8h1v-8z" })];
  const content = kind === "renewals" ? ticks() : MARKS[kind] ? [markPath(kind)] : bars();
  return make("svg", { class: "glyph", viewBox: "-8 -8 16 16", width: 16, height: 16, "aria-hidden": true }, ...content);
}

/** Draw a lane into its svg, from `left` to `right`, if it is not drawn so already. */
function drawLane(svg, lane, left, right) {
  const x = chart.scale;
  const place = [left, right, view.isCompact, chart.isNarrow, chart.line, book.isLocal];
  const key = [view.version, x.domain(), place, book.ends, view.active?.lane === lane && view.active.key].join();
  if (svg.key === key) return;
  svg.key = key;
  const { bar, tick } = layoutOf(lane);
  const isDrawn = (one) => x(endOf(one)) > left && x(one.begins) < right;
  const spans = placedSpans(lane.spans.filter(isDrawn), x, left, right);
  const doubts = lane.doubts.filter(isDrawn);
  const marks = placedMarks(lane.marks.filter(isShown), x).filter((one) => one.at > left - 1 && one.at < right + 1);
  const silent = { "aria-hidden": true };
  svg.replaceChildren(
    make("g", { class: "spans" }, ...spans.map((one) => spanNode(one, bar))),
    make("g", { class: "doubts", ...silent }, ...doubts.map((one) => doubtNode(one, x, bar, left, right))),
    make("g", { class: "words", ...silent }, ...spans.map((one) => wordsNode(one, x, bar))),
    make("path", { class: "ticks", d: tickPath(lane, x, left, right, tick) }),
    make("path", { class: "late", d: lane.late.filter(([one, next]) => x(next) > left && x(one) < right).map(([one, next]) => {
      const begins = Math.max(left, x(one));
      return `M${begins},${tick.y}h${Math.max(2, Math.min(right, x(next)) - begins)}v${tick.height}H${begins}z`;
    }).join("") }),
    make("g", { class: "marks" }, ...marks.map((one) => markNode(one, bar))),
    make("g", { class: "numbers", ...silent }, ...marks.filter((one) => one.number > 1 && !view.isCompact).map((one) => {
      return make("text", { x: one.at + 6, y: bar.y - 12 }, one.number > 99 ? "99+" : String(one.number));
    })),
  );
}

/** Spans in pixels; those that are too narrow to be seen become one. */
function placedSpans(spans, x, left, right) {
  const found = [];
  for (const span of spans) {
    const begins = Math.max(left, x(span.begins));
    const ends = Math.min(right, Math.max(x(endOf(span)), begins + (UNLED.has(span.kind) ? MIN_GAP : 1)));
    const before = found.at(-1);
    const isNarrow = ends - begins < 1.5;
    if (isNarrow && before?.isNarrow && begins - before.ends < 1) {
      before.ends = ends;
      before.items.push(span);
      before.kind = "several";
    } else found.push({ begins, ends, isNarrow, items: [span], kind: span.kind });
  }
  // What has a least width lies above what follows it.
  return d3.sort(found, (one) => UNLED.has(one.kind));
}

/** An element that can be pointed at and that the keyboard can be on. */
function itemNode(items, label, ...content) {
  const [{ lane, key }] = items;
  const isActive = items.includes(view.active);
  const state = { role: "option", id: `${encodeURIComponent(lane.id)}-${key}`, "aria-selected": isActive, "aria-label": label };
  const node = make("g", { ...state, class: `item${isActive ? " active" : ""}` }, ...content);
  node.items = items;
  if (!items.some(isShown)) node.classList.add("dimmed");
  return node;
}

function spanNode({ items, kind, begins, ends }, bar) {
  const [span] = items;
  const width = Math.max(1, ends - begins);
  const box = { x: begins, width, ...bar, rx: width > 6 ? 3 : 0 };
  const color = span.lane.colors.get(span.holder);
  const rects = [make("rect", { ...box, class: `bar ${kind} c${color}` })];
  if (kind === "overdue" || kind === "frozen") rects.push(make("rect", { ...box, class: PATTERNS[kind] }));
  const until = span.ends === null ? "until the end" : `to ${instant(span.ends)}`;
  const what = items.length > 1 ? `${items.length} short spans from ${instant(span.begins)} on` : "";
  const label = what || `${span.title}, from ${instant(span.begins)} ${until}`;
  return itemNode(items, label, ...rects);
}

/** What stands in a bar: it is not a part of the bar's element, whose label says more. */
function wordsNode({ items, kind, begins, ends }, x, bar) {
  const [span] = items;
  const width = Math.min(ends, span.quietFrom === undefined ? ends : x(span.quietFrom)) - begins - 10;
  const isName = kind === "held" || kind === "written";
  const words = isName ? span.holder : kind === "several" ? "" : WORDS.get(kind);
  const name = `in ${kind}${isShown(span) ? "" : " dimmed"}`;
  return clipText(begins, width + 10, bar, inBar(name, fitText(words, width, isName, barFont(bar)), bar));
}

/** The size of the words in a bar, none if it is too low for them. */
function barFont({ height }) {
  return height < 9 ? "" : `${Math.min(12, height)}px`;
}

function inBar(name, words, bar) {
  const size = barFont(bar);
  const place = { x: view.isCompact ? 8 : 6, y: bar.height / 2 + parseFloat(size || 12) * 0.36 };
  return make("text", { class: name, ...place, ...(size ? { "font-size": size } : {}) }, size ? words : "");
}

/** A text that ends where its bar does, whatever its letters are. */
function clipText(x, width, { y, height }, text) {
  return make("svg", { x, y, width: Math.max(0, width), height }, text);
}

function doubtNode(one, x, bar, left, right) {
  const begins = Math.max(left, x(one.begins));
  const width = Math.max(1, Math.min(right, x(Math.min(one.ends, book.ends))) - begins);
  const height = one.kind === "silent" ? bar.height : 5;
  const box = { x: begins, width, y: bar.y + bar.height - height, height };
  const words = one.kind === "silent" ? fitText(one.title, width - 8, false, barFont(bar)) : "";
  const text = clipText(begins, width, bar, inBar("in quiet", words, bar));
  const rects = ["ground", "pattern"].map((name) => make("rect", { ...box, class: name }));
  return make("g", { class: one.kind }, ...rects, text);
}

/** As much of a name as fits, without its middle: names of replicas differ at their ends. Other words fit or not. */
function fitText(text, width, isName = true, font = "12px") {
  // Of a very long one only the ends can be seen.
  if (text.length < 2000 && widthOf(text, font) <= width) return text;
  if (!isName) return "";
  const cut = (most) => {
    const tail = Math.ceil(most * 0.7);
    return `${text.slice(0, most - tail)}…${text.slice(text.length - tail)}`;
  };
  const isTooWide = d3.bisector((number) => Number(widthOf(cut(number), font) > width));
  const most = isTooWide.left(d3.range(Math.min(text.length, 400)), 1);
  return most < 3 ? "" : cut(most - 1);
}

/** Renewals as one path; those closer than two pixels are a line. */
function tickPath(lane, x, left, right, { y, height }) {
  const segments = [];
  const add = (begins, ends) => {
    const last = segments.at(-1);
    if (last && begins - last[1] < 2) last[1] = Math.max(last[1], ends);
    else segments.push([begins, ends]);
  };
  for (const { begins, ends } of lane.buckets)
    if (x(ends) >= left && x(begins) <= right) add(Math.max(left, x(begins)), Math.min(right, x(ends) + 1));
  const [first, last] = [d3.bisectLeft(lane.ticks, x.invert(left)), d3.bisectRight(lane.ticks, x.invert(right))];
  for (const tick of lane.ticks.subarray(first, last)) add(x(tick) - 0.5, x(tick) + 0.5);
  const box = ([begins, ends]) => `M${begins.toFixed(1)},${y}h${(ends - begins).toFixed(1)}v${height}H${begins.toFixed(1)}z`;
  return segments.map(box).join("");
}

/** Marks in pixels; those that would lie upon each other become one with a number. */
function placedMarks(marks, x) {
  const found = [];
  for (const mark of marks) {
    const at = x(mark.begins);
    const one = found.at(-1);
    const space = one?.items.length > 1 ? MARK_SPACE : MARK_WIDTH;
    if (one && at - one.last < space && at - one.first < MARK_SPREAD) {
      one.items.push(mark);
      Object.assign(one, { last: at, at: (one.first + at) / 2, number: one.number + mark.count });
    } else found.push({ at, first: at, last: at, items: [mark], number: mark.count });
  }
  return found;
}

function markNode({ items, number, at }, bar) {
  const [mark] = items;
  const { kind } = d3.least(items, (one) => KINDS.indexOf(one.kind));
  const titles = [...new Set(items.map((one) => one.title))].slice(0, 6).join(", ");
  const single = `${mark.title} at ${instant(mark.begins, 3)}: ${mark.text.slice(0, 500)}`;
  const label = items.length === 1 ? single : `${number} events from ${instant(mark.begins)} on: ${titles}`;
  const size = { x: -MARK_WIDTH / 2 - 1, y: -MARK_WIDTH / 2 - 2, width: MARK_WIDTH + 2, height: MARK_WIDTH + 4 };
  const stem = make("line", { class: "stem", y1: 6, y2: 11 + (number === 1 ? bar.height : 0) });
  const parts = [...(view.isCompact ? [] : [stem]), make("rect", { class: "target", ...size }), markPath(kind)];
  const node = itemNode(items, label, ...parts);
  const place = view.isCompact ? `${bar.y + bar.height / 2}) scale(0.7` : String(bar.y - 11);
  put(node, { transform: `translate(${at.toFixed(1)},${place})` });
  return node;
}
