// The lanes in view as rows, and how time is moved and scaled. Lanes out of view have no elements.
"use strict";

const LANE = 88;
const QUIET = 58; // a lane to which nothing happened
const CANDIDATE = 32;
const MOST_PRINTED = 60;
const SHORTEST = 1e5; // microseconds that the window shows at least

const chart = { left: 270, width: 1000, scale: d3.scaleLinear(), isPrinting: false };
const viewport = element("view");
const list = element("lanes");

function heightOf(lane) {
  return lane.parent ? CANDIDATE : lane.isQuiet ? QUIET : LANE;
}

/** Where each lane begins, in pixels, and at last where all end. */
function placeLanes() {
  view.tops = [0];
  for (const lane of view.lanes) view.tops.push(view.tops.at(-1) + heightOf(lane));
  list.style.height = `${view.tops.at(-1)}px`;
}

/** The scale of the whole time. */
function wholeScale() {
  const total = Math.max(book.ends - book.from, SHORTEST);
  return d3.scaleLinear([book.from - total * 0.005, book.ends + total * 0.015], [chart.left, chart.width - 26]);
}

const zoom = d3
  .zoom()
  .filter((event) =>
    event.type === "wheel"
      ? event.ctrlKey || event.metaKey
      : event.type.startsWith("touch")
        ? event.touches.length > 1
        : !event.button && isInPlot(event),
  )
  .on("zoom", (event) => {
    // At once, not when it is painted: what comes in the same frame starts from the window that a person chose.
    chart.scale = event.transform.rescaleX(chart.whole);
    if (event.sourceEvent) view.follows = false;
    repaint();
  });

function isInPlot(event) {
  return d3.pointer(event, list)[0] > chart.left;
}

/** Take the measures of the page again; the window of time stays. */
function measure() {
  const shown = chart.isMeasured ? chart.scale.domain() : null;
  chart.width = chart.isPrinting ? 1040 : Math.max(list.clientWidth, 320);
  chart.left = chart.width < 800 ? 150 : 270;
  chart.whole = wholeScale();
  const [left, right] = chart.whole.range();
  const most = (chart.whole.domain()[1] - chart.whole.domain()[0]) / SHORTEST;
  zoom
    .extent([
      [left, 0],
      [right, 1],
    ])
    .translateExtent([
      [left, -Infinity],
      [right, Infinity],
    ])
    .scaleExtent([1, Math.max(1, most)]);
  chart.isMeasured = true;
  if (shown) show(...shown);
  else show(...chart.whole.domain());
}

/** Make the window go from one instant to another. */
function show(from, until) {
  const [left, right] = chart.whole.range();
  const [first, last] = chart.whole.domain();
  const wide = Math.min(Math.max(until - from, SHORTEST), last - first);
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

function zoomBy(factor, at = null) {
  const [from, until] = chart.scale.domain();
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
  else if (view.tops[index + 1] > viewport.scrollTop + viewport.clientHeight)
    viewport.scrollTop = view.tops[index + 1] - viewport.clientHeight;
}

/** Take from the browser what is in view, before anything is written: afterwards it would have to measure again. */
function readScroll() {
  chart.top = viewport.scrollTop;
  chart.height = viewport.clientHeight;
}

function lanesInView() {
  if (chart.isPrinting) return view.lanes.slice(0, MOST_PRINTED);
  const first = Math.max(0, d3.bisectRight(view.tops, chart.top) - 1);
  const after = d3.bisectLeft(view.tops, chart.top + chart.height + 1);
  return view.lanes.slice(Math.max(0, first - 1), after + 1);
}

function paintLanes() {
  const [left, right] = chart.whole.range();
  const shown = lanesInView();
  const rows = d3
    .select(list)
    .selectAll(".lane")
    .data(shown, (lane) => lane.id)
    .join(enterLane);
  rows.each(function paint(lane) {
    const index = view.lanes.indexOf(lane);
    const row = d3
      .select(this)
      .style("transform", `translateY(${view.tops[index]}px)`)
      .style("height", `${heightOf(lane)}px`)
      .classed("odd", index % 2);
    if (this.shown !== lane) nameLane(row, lane);
    this.shown = lane;
    row
      .select(".label")
      .style("width", `${chart.left - 12}px`)
      .classed("active", view.active === lane)
      .attr("aria-selected", view.selected === lane);
    row
      .select(".sentence")
      .style("left", `${chart.left}px`)
      .style("width", `${right - left}px`);
    const svg = row.select(".drawing").attr("width", chart.width).attr("height", heightOf(lane));
    drawLane(svg, lane, chart.scale, left, right);
  });
  rows.order();
  const active = list.querySelector(".active");
  if (active) list.setAttribute("aria-activedescendant", active.id);
  else list.removeAttribute("aria-activedescendant");
  element("none").hidden = view.lanes.length > 0;
}

/** What a row says, whatever the window of time is. */
function nameLane(row, lane) {
  row.attr("aria-label", lane.title).classed("quiet", lane.isQuiet);
  const label = row.select(".label").property("items", [lane]);
  label.select(".namespace").text(lane.parent ? "" : lane.namespace && `${lane.namespace}/`);
  label.select(".name").text(lane.name);
  label.select(".spoken").text(lane.summary);
  row.select(".sentence").text(lane.summary);
}

function enterLane(enter) {
  const row = enter
    .append("div")
    .attr("class", (lane) => (lane.parent ? "lane candidate" : "lane"))
    .attr("role", "group");
  newDrawing(row);
  const label = row
    .append("div")
    .attr("class", "label item")
    .attr("role", "option")
    .attr("id", (lane) => `${lane.dom}-lane`);
  const title = label.append("div").attr("class", "title");
  title.append("span").attr("class", "namespace");
  title.append("span").attr("class", "name");
  label
    .append("div")
    .attr("class", "state")
    .call((state) => state.append("span"))
    .call((state) => state.append("span").attr("class", "who"))
    .append("span")
    .attr("class", "remark");
  label.append("div").attr("class", "spoken");
  row.append("div").attr("class", "sentence").attr("aria-hidden", "true");
  return row;
}
