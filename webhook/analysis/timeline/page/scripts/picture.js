// The chart as one SVG, which any program shows: every look of an element is written into it.

const MAX_PICTURED = 200; // lanes in a picture
const LOOKS = [
  "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order", "opacity", "font-size", "font-weight",
];
const PLAIN = { stroke: "none", "stroke-width": "1px", "stroke-dasharray": "none", "stroke-linejoin": "miter", "paint-order": "normal", opacity: "1", "font-weight": "400" };
const NAMES = ["id", "role", "class", "aria-selected", "aria-label", "aria-hidden"]; // of attributes that only the page needs

/** Write the looks that the style of the page gives to an element, and all within it, into their attributes. */
function fixLooks(root) {
  const nodes = [root, ...root.querySelectorAll("*")];
  const styles = nodes.map((node) => {
    const style = getComputedStyle(node);
    return LOOKS.map((name) => [name, style.getPropertyValue(name)]).filter(([name, value]) => value && value !== PLAIN[name]);
  });
  nodes.forEach((node, index) => {
    for (const [name, value] of styles[index]) node.setAttribute(name, value.replaceAll('"', ""));
    const label = node.getAttribute("aria-label");
    if (label) node.prepend(make("title", {}, label));
    for (const name of node.localName === "pattern" ? NAMES.slice(1) : NAMES) node.removeAttribute(name);
  });
}

/** A lane with its name and its state, as it is drawn now. */
function pictureOf(lane, top) {
  const [left, right] = chart.whole.range();
  const { height } = layoutOf(lane);
  const drawing = make("svg", { width: chart.width, height });
  drawLane(drawing, lane, left, right);
  const room = labelWidth() - 16;
  const text = (words, y, name, font) => make("text", { x: 12, y, class: name }, fitText(words, room, true, font));
  const { kind, who, note } = stateAt(lane, view.cursor ?? book.ends);
  const state = `${who}${note ? `, ${note}` : ""}`;
  const words = view.isCompact
    ? [text(`${lane.title}  ${state}`, Math.min(12, height - 3), `pictured ${kind}`, "11px")]
    : [text(lane.title, 17, "pictured name", "600 14px"), text(state, 35, `pictured ${kind}`, "13px")];
  const line = make("line", { class: "rule", x1: 0, x2: chart.width, y1: height - 0.5, y2: height - 0.5 });
  const box = layoutOf(lane).sentence;
  const chips = box === null ? [] : [make("text", { x: left + 2, y: box + 12, class: "pictured chips" }, fitText(chipsOf(lane).join(" · "), right - left, true))];
  return make("g", { transform: `translate(0,${top})` }, line, drawing, ...words, ...chips);
}

/** What is drawn now as one SVG: title, axis, lanes, legend; in the colors of the page. */
function picture() {
  const lanes = view.lanes.slice(0, MAX_PICTURED);
  const tops = [0, ...d3.cumsum(lanes, (lane) => layoutOf(lane).height)];
  const axis = element("axis").cloneNode(true);
  const high = Number(axis.getAttribute("height"));
  const [head, note] = [28, 20];
  const left = view.lanes.length - lanes.length;
  const legend = make("g", { transform: `translate(0,${head + note + high + tops.at(-1) + 8})` });
  let x = 12;
  let y = 10;
  for (const entry of element("legend").children) {
    const wide = widthOf(entry.textContent) + 40;
    if (x + wide > chart.width) [x, y] = [12, y + 22];
    const sign = entry.querySelector("svg").cloneNode(true);
    put(sign, { x, y: y - 8 });
    legend.append(sign, make("text", { x: x + 20, y: y + 4, class: "pictured" }, entry.textContent));
    x += wide;
  }
  const height = head + note + high + tops.at(-1) + y + 24 + (left ? 18 : 0);
  const title = fitText(document.title, chart.width - 24, true, "600 16px");
  const below = fitText(summarize(view.lanes), chart.width - 24, true);
  const root = make("svg", { width: chart.width, height, viewBox: `0 0 ${chart.width} ${height}`, "font-family": family, class: "picture" });
  put(axis, { y: head + note, width: chart.width });
  root.append(
    make("title", {}, document.title),
    make("rect", { class: "paper", width: chart.width, height }),
    element("patterns").querySelector("defs").cloneNode(true),
    make("text", { x: 12, y: 20, class: "pictured head" }, title),
    make("text", { x: 12, y: 40, class: "pictured" }, below),
    axis,
    make("g", { transform: `translate(0,${head + note + high})` }, ...lanes.map((lane, index) => pictureOf(lane, tops[index]))),
    legend,
    ...(left ? [make("text", { x: 12, y: height - 6, class: "pictured" }, `and ${count(left, "lease")} more`)] : []),
  );
  // Only what is in the document has looks.
  document.body.append(root);
  fixLooks(root);
  root.remove();
  return new XMLSerializer().serializeToString(root);
}

/** Offer the picture as a file. */
function savePicture() {
  const url = URL.createObjectURL(new Blob([picture()], { type: "image/svg+xml" }));
  const link = make("a", { href: url, download: "lease-timeline.svg" });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
