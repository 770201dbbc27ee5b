// The kinds of marks: a shape of its own for each, so that no color is needed to distinguish them.
"use strict";

/** A shape of our own, of straight lines in a square from -1 to 1. */
function outline(...points) {
  const draw = (context, size) => {
    const half = Math.sqrt(size) / 2;
    points.forEach(([x, y], index) => context[index ? "lineTo" : "moveTo"](x * half, y * half));
    context.closePath();
  };
  return { draw };
}

const downward = outline([-1.1, -0.9], [1.1, -0.9], [0, 1.1]);
const hourglass = outline([-1, -1], [1, -1], [-1, 1], [1, 1]);
const chevron = outline([-1, -0.9], [0, 0.1], [1, -0.9], [1, -0.1], [0, 0.9], [-1, -0.1]);
const arrow = outline([-1, -0.35], [0.1, -0.35], [0.1, -1], [1.1, 0], [0.1, 1], [0.1, 0.35], [-1, 0.35]);

/** Two circles side by side. */
const twins = {
  draw(context, size) {
    const radius = Math.sqrt(size) / 3.4;
    for (const x of [-radius, radius]) {
      context.moveTo(x + radius, 0);
      context.arc(x, 0, radius, 0, 2 * Math.PI);
    }
  },
};

const MARKS = {
  steal: { shape: d3.symbolStar, look: "grave", rank: 0, words: "steal" },
  "forged-stamps": { shape: d3.symbolAsterisk, look: "grave line", rank: 1, words: "forged stamps" },
  "identity-shared": { shape: twins, look: "grave", rank: 1.5, words: "identity shared" },
  denied: { shape: d3.symbolTimes, look: "grave line", rank: 2, words: "denied" },
  fenced: { shape: d3.symbolWye, look: "grave", rank: 3, words: "fenced" },
  "would-deny": { shape: d3.symbolTriangle2, look: "warning line", rank: 4, words: "would be denied" },
  warned: { shape: d3.symbolTriangle, look: "warning", rank: 5, words: "warned" },
  failed: { shape: downward, look: "warning", rank: 6, words: "failed" },
  late: { shape: arrow, look: "warning", rank: 7, words: "renewed late" },
  slow: { shape: hourglass, look: "warning", rank: 7, words: "slow" },
  deleted: { shape: d3.symbolSquare, look: "plain", rank: 8, words: "deleted" },
  "takeover-by-expiry": { shape: d3.symbolDiamond, look: "change", rank: 9, words: "takeover after expiry" },
  takeover: { shape: d3.symbolCross, look: "change", rank: 10, words: "takeover" },
  "takeover-by-release": { shape: d3.symbolDiamond2, look: "change line", rank: 11, words: "takeover after release" },
  release: { shape: d3.symbolSquare2, look: "plain line", rank: 12, words: "release" },
  created: { shape: d3.symbolCircle, look: "change", rank: 13, words: "created" },
  claim: { shape: d3.symbolCircle, look: "change line", rank: 14, words: "claimed" },
  edit: { shape: d3.symbolPlus, look: "warning line", rank: 15, words: "edited" },
  pinged: { shape: chevron, look: "plain", rank: 16, words: "pinged" },
};

function markLook(kind) {
  return MARKS[kind] || { shape: d3.symbolCircle, look: "plain line", rank: 99, words: kind.replaceAll("-", " ") };
}

function markWords(kind) {
  return markLook(kind).words;
}

const paths = new Map();

/** The path of a mark around 0,0. */
function markPath(kind) {
  if (!paths.has(kind)) paths.set(kind, d3.symbol(markLook(kind).shape, 62)());
  return paths.get(kind);
}

/** A small picture of a kind for a list. */
function glyph(kind) {
  const size = { class: "glyph", viewBox: "-8 -8 16 16", width: 16, height: 16, "aria-hidden": true };
  const box = (name) => made("rect", { class: name, x: -7, y: -5, width: 14, height: 10, rx: 2 });
  if (kind === "renewals")
    return made("svg", size, "", made("path", { class: "ticks", d: "M-6,-4v8h1v-8zM-2,-4v8h1v-8zM2,-4v8h1v-8zM6,-4v8h1v-8z" }));
  if (!SPAN_WORDS[kind])
    return made("svg", size, "", made("path", { class: `mark ${markLook(kind).look}`, d: markPath(kind) }));
  const pattern = { overdue: "amber", silent: "pattern silent", contested: "pattern contested" }[kind];
  return made("svg", size, "", box(`bar ${kind} c0`), ...(pattern ? [box(pattern)] : []));
}
