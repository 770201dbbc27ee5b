// The lanes in view as rows, the axis, the cursor, and how time is moved and scaled.

const NARROW = 800; // pixels of a page on which less is shown
const MIN_WINDOW = 1e5; // microseconds

const chart = { left: 270, width: 1000, scale: d3.scaleLinear(), whole: null };
const viewport = element("view");
const list = element("lanes");
const input = element("at");

/** Whether an event may zoom or drag: the wheel alone scrolls, and labels are for clicks. */
function isZoom(event) {
  if (event.type === "wheel") return event.ctrlKey || event.metaKey;
  if (event.type.startsWith("touch")) return event.touches.length > 1;
  return !event.button && d3.pointer(event, list)[0] > chart.left;
}

const zoom = d3.zoom().filter(isZoom);
zoom.on("zoom", (event) => {
  // At once, not when it is painted: what comes in the same frame starts from the window that a person chose.
  chart.scale = event.transform.rescaleX(chart.whole);
  if (event.sourceEvent) view.follows = false;
  repaint();
});

/** Take the measures of the page again; the window of time stays. */
function measure() {
  const shown = chart.whole && chart.scale.domain();
  chart.width = Math.max(list.clientWidth, 320);
  chart.left = chart.width < NARROW ? 150 : 270;
  const total = Math.max(book.ends - book.from, MIN_WINDOW);
  const [left, right] = [chart.left, chart.width - 26];
  chart.whole = d3.scaleLinear([book.from - total * 0.005, book.ends + total * 0.015], [left, right]);
  zoom.extent([[left, 0], [right, 1]]).translateExtent([[left, -Infinity], [right, Infinity]]);
  zoom.scaleExtent([1, Math.max(1, (total * 1.02) / MIN_WINDOW)]);
  show(...(shown ?? chart.whole.domain()));
}

/** Make the window go from one instant to another. */
function show(from, until) {
  const [left, right] = chart.whole.range();
  const [first, last] = chart.whole.domain();
  const wide = Math.min(Math.max(until - from, MIN_WINDOW), last - first);
  const begins = Math.min(Math.max(from, first), last - wide);
  const scale = (right - left) / (chart.whole(begins + wide) - chart.whole(begins));
  d3.select(list).call(zoom.transform, d3.zoomIdentity.translate(left - scale * chart.whole(begins), 0).scale(scale));
}

/** Show that instant, without a change of scale if it can be helped. */
function reveal(begins, ends = begins) {
  const [from, until] = chart.scale.domain();
  if (begins >= from && begins <= until) return;
  const wide = until - from;
  const middle = ends - begins < wide ? (begins + ends) / 2 : begins + wide * 0.3;
  show(middle - wide / 2, middle + wide / 2);
}

function zoomBy(factor) {
  const [from, until] = chart.scale.domain();
  const at = view.cursor;
  const middle = at !== null && at >= from && at <= until ? at : (from + until) / 2;
  show(middle - (middle - from) * factor, middle + (until - middle) * factor);
}

function moveBy(part) {
  const [from, until] = chart.scale.domain();
  show(from + (until - from) * part, until + (until - from) * part);
}

/** Move the window with a wheel that turns sideways. */
function moveByWheel(event) {
  const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
  const across = event.shiftKey ? event.deltaX || event.deltaY : isSideways ? event.deltaX : 0;
  if (!across || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  view.follows = false;
  moveBy(across / (chart.width - chart.left));
}

/** Scroll so that the whole lane is in view. */
function scrollTo(lane) {
  const index = view.lanes.indexOf(lane);
  const bottom = view.tops[index + 1] - viewport.clientHeight;
  viewport.scrollTop = Math.max(bottom, Math.min(viewport.scrollTop, view.tops[index]));
}

/** Make the rows those of the lanes in view; a lane keeps its row. */
function paintLanes() {
  const { scrollTop, clientHeight } = viewport;
  const first = Math.max(0, d3.bisectRight(view.tops, scrollTop) - 2);
  const lanes = view.lanes.slice(first, d3.bisectLeft(view.tops, scrollTop + clientHeight + 1) + 1);
  const rows = new Map([...list.children].map((row) => [row.id, row]));
  const shown = lanes.map((lane) => rows.get(`row-${encodeURIComponent(lane.id)}`) ?? newRow(lane));
  if (shown.some((row, index) => row !== list.children[index]) || shown.length !== list.children.length)
    list.replaceChildren(...shown);
  shown.forEach((row, index) => paintRow(row, lanes[index]));
  put(list, { "aria-activedescendant": list.querySelector(".active")?.id ?? "" });
  element("none").hidden = view.lanes.length > 0;
}

function newRow(lane) {
  const id = encodeURIComponent(lane.id);
  const namespace = made("span", { class: "namespace" }, !lane.namespace ? "" : `${lane.namespace}/`);
  const title = made("div", { class: "title" }, namespace, made("span", { class: "name" }, lane.name));
  const state = ["", "who", "remark"].map((name) => made("span", { class: name }));
  const texts = [title, made("div", { class: "state" }, ...state), made("div", { class: "spoken" })];
  const label = made("div", { class: "label item", role: "option", id: `${id}-lane` }, ...texts);
  const sentence = made("div", { class: "sentence", "aria-hidden": true });
  const drawing = made("svg", { class: "drawing", role: "presentation" });
  return made("div", { role: "group", id: `row-${id}`, "aria-label": lane.title }, drawing, label, sentence);
}

function gapWords(gap) {
  return gap.span.title.split(", ").at(-1) + (gap.ends === null ? "" : `, from ${instant(gap.begins)}`);
}

/** The facts of a lane, shortly: what was grave, how often it changed hands, the longest time without a leader. */
function chipsOf(lane) {
  const numbers = d3.rollups(lane.marks, (some) => d3.sum(some, (one) => one.count), (one) => one.kind);
  const grave = numbers.filter(([kind]) => MARKS[kind][0].startsWith("grave"));
  const gap = d3.greatest(lane.gaps, lengthOf);
  return [
    ...grave.map(([kind, number]) => WORDS.get(kind) + (number > 1 ? ` ${number} times` : "")),
    ...(gap ? [gapWords(gap)] : []),
    ...(lane.handovers ? [count(lane.handovers, "handover")] : []),
    ...(lane.isMoment ? ["one moment only, not what happened before"] : []),
  ];
}

function paintRow(row, lane) {
  const index = view.lanes.indexOf(lane);
  const [left, right] = chart.whole.range();
  const [drawing, label, sentence] = row.children;
  const kinds = [lane.isQuiet && "quiet", index % 2 && "odd"].filter(Boolean);
  put(row, { class: ["lane", ...kinds].join(" ") });
  Object.assign(row.style, { transform: `translateY(${view.tops[index]}px)`, height: `${lane.height}px` });
  label.items = [lane];
  label.style.width = `${chart.left - 12}px`;
  put(label, { class: `label item${view.active === lane ? " active" : ""}`, "aria-selected": view.active === lane });
  put(label.lastChild, {}, chipsOf(lane).join(", "));
  if (sentence.lane !== lane) {
    sentence.lane = lane;
    sentence.replaceChildren(...chipsOf(lane).map((text) => made("span", { class: "chip" }, text)));
  }
  Object.assign(sentence.style, { left: `${left}px`, width: `${right - left}px` });
  put(drawing, { width: chart.width, height: lane.height });
  drawLane(drawing, lane, left, right);
}

const MAX_READ = 3; // lanes whose state the reading says in words

function paintAxis() {
  const [from, until] = chart.scale.domain();
  const [left, right] = chart.scale.range();
  const wide = until - from;
  const time = wide > DAY / 4 ? "%H:%M" : wide > 20 * SECOND ? "%H:%M:%S" : "%H:%M:%S.%L";
  const words = d3.utcFormat(wide > 3 * DAY ? `%e %b ${time}` : time);
  const dates = d3.scaleUtc([from, until].map((at) => new Date((book.base + at) / 1000)), [left, right]);
  const ticks = d3.axisTop(dates).ticks(Math.max(2, (right - left) / 110)).tickFormat(words).tickSizeOuter(0);
  const day = made("text", { x: 12, y: 15 }, `${dateOf(Math.max(from, book.from))}, UTC`);
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
  const states = view.lanes.map((lane) => ({ ...stateAt(lane, at), isChosen: lane === view.active?.lane }));
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
  input.setAttribute("aria-invalid", Boolean(typed));
  put(element("refused"), {}, typed && `"${typed.trim().slice(0, 40)}" is not a time. Write it as ${instant(book.from)}`);
}

/** Take what was typed as an instant. */
function takeTyped() {
  const { value } = input;
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
input.addEventListener("change", takeTyped);
input.addEventListener("input", () => refuse(""));
input.addEventListener("keydown", (event) => event.key === "Enter" && takeTyped());
