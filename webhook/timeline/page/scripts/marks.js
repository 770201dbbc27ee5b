// The marks of a lane: what happened at one moment, as shapes above its bars.
"use strict";

const MARK_WIDTH = 14;
const MARK_SPACE = 19; // with the number of several
const MARK_SPREAD = 30; // between the first and the last of those that are drawn as one

/** Marks in pixels; those that would lie upon each other become one with a number. */
function placedMarks(lane, x, left, right) {
  const found = [];
  for (const mark of lane.marks) {
    const at = x(mark.begins);
    if (at < left - 1 || at > right + 1 || !isShown(mark)) continue;
    const before = found.at(-1);
    if (
      before &&
      at - before.last < (before.items.length > 1 ? MARK_SPACE : MARK_WIDTH) &&
      at - before.first < MARK_SPREAD
    ) {
      before.items.push(mark);
      before.last = at;
      before.number += mark.count;
    } else {
      found.push({ key: mark.key, first: at, last: at, items: [mark], number: mark.count });
    }
  }
  return found;
}

function enterMark(enter) {
  const group = enter.append("g").attr("class", "item").attr("role", "option");
  group.append("line").attr("class", "stem");
  group
    .append("rect")
    .attr("class", "target")
    .attr("width", MARK_WIDTH + 2)
    .attr("height", MARK_WIDTH + 4)
    .attr("x", -MARK_WIDTH / 2 - 1)
    .attr("y", -MARK_WIDTH / 2 - 2);
  group.append("path");
  return group;
}

function updateMark(node, one, bar) {
  const worst = d3.least(one.items, (mark) => markLook(mark.kind).rank);
  const { number } = one;
  const [stem, , path] = node.children;
  if (isOther(node, one.items)) {
    put(node, {
      id: `${worst.lane.dom}-${one.key}`,
      "data-kind": worst.kind,
      "data-count": number,
      "data-begins": one.items[0].begins,
      "data-kinds": [...new Set(one.items.map((mark) => mark.kind))].join(" "),
      "aria-label": markLabel(one, number),
    });
  }
  node.items = one.items;
  put(node, {
    class: classesOf(one, false),
    "aria-selected": one.items.includes(view.selected),
    transform: `translate(${((one.first + one.last) / 2).toFixed(1)},${bar.top - 11})`,
  });
  put(stem, { y1: 6, y2: 11 + (number === 1 ? bar.height : 0) });
  put(path, { class: `mark ${markLook(worst.kind).look}`, d: markPath(worst.kind) });
}

function markLabel(one, number) {
  const [mark] = one.items;
  if (one.items.length === 1)
    return `${markTitle(mark)} at ${instant(book, mark.begins, 3)}: ${mark.text.slice(0, 500)}`;
  return `${number} events from ${instant(book, mark.begins)} on: ${[...new Set(one.items.map(markTitle))].slice(0, 6).join(", ")}`;
}
