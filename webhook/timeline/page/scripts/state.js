// What the person chose, what draws it again, and elements: every text becomes text, whatever is in it.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const book = newBook(data.begins);
merge(book, data);

const view = {
  lanes: [], // those that fit the filters, each lease followed by its candidates
  active: null, // the item that the keyboard is on: a lane, a span or a mark
  selected: null, // the item that the details show
  hovered: null,
  cursor: null, // a fixed instant
  pointer: null, // the instant beneath the pointer
  hidden: new Set(), // kinds that are not shown
  follows: true, // of the live page: the window moves with the time
};

const painters = { drawing: [], cursor: [] };
let frame = 0;
let isWhole = false;

/** Draw everything again before the next frame. */
function repaint() {
  isWhole = true;
  repaintCursor();
}

/** Draw only the cursor again, and what it says. */
function repaintCursor() {
  if (!frame) frame = requestAnimationFrame(paintNow);
}

function paintNow() {
  cancelAnimationFrame(frame);
  frame = 0;
  // Taken from the browser before anything is written: afterwards it would have to measure again.
  chart.top = viewport.scrollTop;
  chart.height = viewport.clientHeight;
  if (isWhole) for (const paint of painters.drawing) paint();
  isWhole = false;
  for (const paint of painters.cursor) paint();
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

const SHAPES = new Set(["svg", "g", "rect", "path", "line", "text"]);

/** A new element with attributes, a text and children. */
function made(name, attributes = {}, text = "", ...children) {
  const one = SHAPES.has(name)
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  put(one, attributes);
  one.append(...(text ? [text] : []), ...children);
  return one;
}

function button(text, act, attributes = {}) {
  const one = made("button", { type: "button", ...attributes }, text);
  if (act) one.addEventListener("click", act);
  return one;
}

/** Make the children of a node those of `items`, in order; an item keeps the element of its key. */
function sync(parent, items, enter, update, key = (one) => one.key) {
  const old = new Map([...parent.children].map((node) => [node.key, node]));
  items.forEach((item, index) => {
    const node = old.get(key(item)) ?? enter(item);
    node.key = key(item);
    const place = parent.children[index];
    if (place !== node) parent.insertBefore(node, place ?? null);
    update(node, item);
  });
  while (parent.children.length > items.length) parent.lastChild.remove();
}
