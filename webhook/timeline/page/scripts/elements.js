// What the person chose, what draws it again, and elements: every text becomes text, whatever is in it.
"use strict";

const view = {
  lanes: [], // those that fit the search
  active: null, // the item that the keyboard is on: a lane, a span or a mark
  hovered: null, // the element beneath the pointer
  cursor: null, // a fixed instant
  pointer: null, // the instant beneath the pointer
  follows: true, // of the live page: the window moves with the time
  version: 0, // of what is shown
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
    if (isWhole) for (const paint of [paintLanes, paintAxis]) paint();
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

const SHAPES = new Set(["svg", "g", "rect", "path", "line", "text"]);

/** A new element with attributes, and texts and elements in it. */
function made(name, attributes = {}, ...content) {
  const space = SHAPES.has(name) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
  const one = document.createElementNS(space, name);
  put(one, attributes);
  one.append(...content);
  return one;
}

function button(text, act) {
  const one = made("button", { type: "button" }, text);
  one.addEventListener("click", act);
  return one;
}
