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

const painters = [];
let isPainting = 0;

/** Draw everything again before the next frame. */
function repaint() {
  if (!isPainting) isPainting = requestAnimationFrame(paintNow);
}

function paintNow() {
  cancelAnimationFrame(isPainting);
  isPainting = 0;
  for (const paint of painters) paint();
}

function element(id) {
  return document.getElementById(id);
}

/** A new element with a text and a class. */
function made(name, text = "", className = "") {
  const one = document.createElement(name);
  one.textContent = text;
  if (className) one.className = className;
  return one;
}
