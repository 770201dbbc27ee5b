// What the person chose: filters, the window of time, the cursor, the item in focus; and who must know of a change.
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

/** The instant that is read: beneath the pointer, else the fixed one, else the end. */
function readInstant() {
  return view.pointer ?? view.cursor ?? book.ends;
}

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
  readScroll();
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

/** A new element with a text and a class. */
function made(name, text = "", className = "") {
  const one = document.createElement(name);
  one.textContent = text;
  if (className) one.className = className;
  return one;
}
