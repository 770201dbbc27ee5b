// The lanes in view as rows, and how time is moved and scaled. Lanes out of view have no elements.
"use strict";

const LANE = 88;
const QUIET = 58; // a lane to which nothing happened
const CANDIDATE = 32;
const MAX_PRINTED = 60;
const MIN_WINDOW = 1e5; // microseconds

const chart = { left: 270, width: 1000, scale: d3.scaleLinear(), isPrinting: false };
const viewport = element("view");
const list = element("lanes");

function heightOf(lane) {
  return lane.parent ? CANDIDATE : lane.isQuiet ? QUIET : LANE;
}

/** Where each lane begins, in pixels, and at last where all end. */
function placeLanes() {
  view.tops = [0, ...d3.cumsum(view.lanes, heightOf)];
  list.style.height = `${view.tops.at(-1)}px`;
}

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
  const shown = chart.isMeasured ? chart.scale.domain() : null;
  chart.width = chart.isPrinting ? 1040 : Math.max(list.clientWidth, 320);
  chart.left = chart.width < 800 ? 150 : 270;
  const total = Math.max(book.ends - book.from, MIN_WINDOW);
  const range = [chart.left, chart.width - 26];
  chart.whole = d3.scaleLinear([book.from - total * 0.005, book.ends + total * 0.015], range);
  const corners = (y) => [[range[0], -y], [range[1], y]];
  zoom.extent([[range[0], 0], [range[1], 1]]).translateExtent(corners(Infinity));
  zoom.scaleExtent([1, Math.max(1, (total * 1.02) / MIN_WINDOW)]);
  chart.isMeasured = true;
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

/** Scroll so that the whole lane is in view. */
function scrollTo(lane) {
  const index = view.lanes.indexOf(lane);
  if (index < 0) return;
  if (view.tops[index] < viewport.scrollTop) viewport.scrollTop = view.tops[index];
  const bottom = view.tops[index + 1] - viewport.clientHeight;
  if (bottom > viewport.scrollTop) viewport.scrollTop = bottom;
}

function lanesInView() {
  if (chart.isPrinting) return view.lanes.slice(0, MAX_PRINTED);
  const first = Math.max(0, d3.bisectRight(view.tops, chart.top) - 1);
  const after = d3.bisectLeft(view.tops, chart.top + chart.height + 1);
  return view.lanes.slice(Math.max(0, first - 1), after + 1);
}

function paintLanes() {
  const [left, right] = chart.whole.range();
  sync(list, lanesInView(), newRow, (row, lane) => paintRow(row, lane, left, right), (lane) => lane.id);
  const active = list.querySelector(".active");
  if (active) list.setAttribute("aria-activedescendant", active.id);
  else list.removeAttribute("aria-activedescendant");
  element("none").hidden = view.lanes.length > 0;
}

function newRow(lane) {
  const title = made("div", { class: "title" }, "", made("span", { class: "namespace" }), made("span", { class: "name" }));
  const state = [made("span"), made("span", { class: "who" }), made("span", { class: "remark" })];
  const texts = [title, made("div", { class: "state" }, "", ...state), made("div", { class: "spoken" })];
  const label = made("div", { class: "label item", role: "option", id: `${lane.dom}-lane` }, "", ...texts);
  const sentence = made("div", { class: "sentence", "aria-hidden": true });
  return made("div", { role: "group" }, "", newDrawing(), label, sentence);
}

function paintRow(row, lane, left, right) {
  const index = view.lanes.indexOf(lane);
  const [drawing, label, sentence] = row.children;
  const kinds = [lane.parent && "candidate", lane.isQuiet && "quiet", index % 2 && "odd"].filter(Boolean);
  put(row, { class: ["lane", ...kinds].join(" "), "aria-label": lane.title });
  Object.assign(row.style, { transform: `translateY(${view.tops[index]}px)`, height: `${heightOf(lane)}px` });
  label.items = [lane];
  label.style.width = `${chart.left - 12}px`;
  put(label, { class: `label item${view.active === lane ? " active" : ""}`, "aria-selected": view.selected === lane });
  const [namespace, name] = label.firstChild.children;
  put(namespace, {}, lane.parent ? "" : lane.namespace && `${lane.namespace}/`);
  put(name, {}, lane.name);
  put(label.lastChild, {}, lane.summary);
  put(sentence, {}, lane.summary);
  Object.assign(sentence.style, { left: `${left}px`, width: `${right - left}px` });
  put(drawing, { width: chart.width, height: heightOf(lane) });
  drawLane(drawing, lane, chart.scale, left, right);
}
