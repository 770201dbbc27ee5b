// The note beside an item (on hover and on focus), the details of the one that was chosen, and everything as a table.
"use strict";

const MAX_TOLD = 30; // events of a lane in its details
const PAGE = 100;
const MAX_ROWS_PRINTED = 400;
const UNBROKEN = 60; // characters of a name that stands on one line

/** What is known of an item: words and values. */
function factsOf(item) {
  const { lane, type, ends } = item;
  if (type === "lane")
    return [
      ["Lease duration", item.duration === null ? "" : length(item.duration * SECOND)],
      ["Handovers", String(item.handovers)],
      ["Renewals", item.renewals.toLocaleString("en")],
    ];
  const exact = (at) => instant(book, at, 6);
  const isEarly = type === "span" && item.begins < book.from;
  const isGap = (one) => one.begins <= item.begins && endOf(book, one) >= endOf(book, item);
  const gap = type === "span" && UNLED.has(item.kind) && lane.gaps.find((one) => one.expired && isGap(one));
  return [
    [lane.parent ? "Candidate" : "Lease", lane.title],
    [
      ends === null && type === "mark" ? "At" : "From",
      exact(item.begins) + (isEarly ? ", as the holder says: the input begins later" : ""),
    ],
    ["Until", ends !== null ? exact(ends) : type === "span" ? "the end of the input" : ""],
    ["Length", type === "span" ? length(lengthOf(book, item)) : ""],
    [UNLED.has(item.kind) ? "Last holder" : "Holder", item.holder],
    ["Writer", item.writer],
    ["Field manager", item.manager],
    ["No leader", gap && `for ${gapSpan(book, gap)}: the last renewal was at ${instant(book, gap.begins, 3)}`],
  ];
}

/** The text of an item, if it has one, and what is known of it. */
function described(item) {
  const text = item.text || item.summary;
  const facts = factsOf(item).filter(([, value]) => value);
  const pairs = facts.flatMap(([word, value]) => [made("dt", {}, word), made("dd", {}, value)]);
  return [...(text ? [made("p", { class: "whole" }, text)] : []), made("dl", {}, "", ...pairs)];
}

/** What happened to a lane, in the order of time. */
function storyOf(lane) {
  const marks = lane.marks.filter(isShown);
  const entries = marks.slice(0, MAX_TOLD).map((mark) => {
    const words = made("span", { class: "whole" }, `${markWords(mark.kind)}: ${mark.text}`);
    return made("li", {}, "", button(instant(book, mark.begins, 3), () => goTo(mark)), glyph(mark.kind), words);
  });
  const more = marks.length > MAX_TOLD ? [made("li", {}, `and ${marks.length - MAX_TOLD} more: see the table`)] : [];
  return made("ol", { class: "story" }, "", ...entries, ...more);
}

/** Show the note for an element of the drawing, or hide it. */
function paintTip() {
  const isFocused = document.activeElement === list && !view.isTipClosed;
  const node = view.hovered || (isFocused ? list.querySelector(".active") : null);
  const tip = element("tip");
  tip.hidden = !node || !node.isConnected;
  if (tip.hidden) return;
  const { items } = node;
  const [item] = items;
  const title = items.length > 1 ? `${items.length} here, from ${instant(book, item.begins)} on` : titleOf(book, item);
  const line = (one) => `${instant(book, one.begins, 3)} ${titleOf(book, one)}${one.text ? `: ${one.text}` : ""}`;
  const several = () => {
    const more = items.length > 6 ? [`and ${items.length - 6} more: zoom in`] : [];
    return [made("ul", {}, "", ...[...items.slice(0, 6).map(line), ...more].map((text) => made("li", {}, text)))];
  };
  tip.replaceChildren(made("strong", {}, title), ...(items.length > 1 ? several() : described(item)));
  const box = node.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const isPointed = view.pointer !== null && chart.pageX !== undefined;
  const wanted = isPointed ? chart.pageX + 14 : Math.max(box.left, chart.left) + 8;
  tip.style.left = `${Math.max(8, Math.min(wanted, innerWidth - width - 12))}px`;
  tip.style.top = `${box.bottom + height + 12 < innerHeight ? box.bottom + 8 : Math.max(4, box.top - height - 8)}px`;
}

/** Fill the details; `items` are several if they lie too close to be drawn apart. */
function select(items) {
  view.selected = items[0];
  const content = items.slice(0, 50).flatMap((item) => {
    const heading = made("h2");
    if (item.type === "mark") heading.append(glyph(item.kind));
    const color = item.type === "span" && item.lane.colors.get(item.holder);
    if (item.type === "span") heading.append(made("span", { class: `swatch ${item.kind} c${color}` }));
    heading.append(made("span", {}, titleOf(book, item)));
    const story = item.type === "lane" && item.marks.length ? [storyOf(item)] : [];
    return [heading, ...described(item), ...story];
  });
  if (items.length > 50) content.push(made("p", {}, `and ${items.length - 50} more: zoom in, or see the table`));
  element("details").replaceChildren(...content);
  repaint();
}

/** Before a person chose anything, the details are those of the first lane. */
function selectFirst() {
  if (view.lanes.length) select([view.lanes[0]]);
  view.selected = null;
}

function listenForItems() {
  list.addEventListener("pointermove", (event) => {
    chart.pageX = event.clientX;
    view.hovered = event.target.closest(".item");
  });
  list.addEventListener("pointerleave", () => {
    view.hovered = null;
  });
  list.addEventListener("click", (event) => {
    const node = event.target.closest(".item");
    const [x] = d3.pointer(event, list);
    if (node) {
      view.active = node.items[0];
      select(node.items);
    }
    if (x > chart.left) fixCursor(within(chart.scale.invert(x)));
    view.isTipClosed = true;
  });
}

const table = { shows: "leases", page: 0, sorted: null, isDown: false };

function gapWords(lane) {
  const gap = longestGap(book, lane);
  return gap ? gapSpan(book, gap) + (gap.ends === null ? ", still" : "") : "never";
}

function stateWords(lane) {
  const { short, note } = stateAt(book, lane, book.ends);
  return note ? `${short}, ${note}` : short;
}

function timeWords(item, at, open = "") {
  return at === null || at === undefined ? open : instant(book, at, 3);
}

/** By table, its columns: the title, what sorts a row, and what the row says, if that is different. */
const COLUMNS = {
  leases: [
    ["Lease", (lane) => lane.title],
    ["Holder at the end", stateWords],
    ["Handovers", (lane) => lane.handovers],
    ["Longest without a leader", (lane) => gapLength(lane), gapWords],
    ["From", (lane) => longestGap(book, lane)?.begins ?? Infinity, (lane) => timeWords(lane, longestGap(book, lane)?.begins)],
    ["Events", (lane) => d3.sum(lane.marks, (mark) => mark.count)],
    ["In words", (lane) => lane.summary],
  ],
  events: [
    ["From", (item) => item.begins, (item) => timeWords(item, item.begins)],
    [
      "Until",
      (item) => item.ends ?? (item.type === "span" ? Infinity : item.begins),
      (item) => timeWords(item, item.ends, item.type === "span" ? "the end" : ""),
    ],
    [
      "Length",
      (item) => (item.type === "mark" ? 0 : lengthOf(book, item)),
      (item) => (item.type === "mark" ? "" : length(lengthOf(book, item))),
    ],
    ["Lease", (item) => item.lane.title],
    ["What", (item) => (item.type === "mark" ? markTitle(item) : SPAN_WORDS[item.kind])],
    ["Holder", (item) => item.holder],
    ["Writer", (item) => item.writer || item.manager],
    ["Text", (item) => item.text],
  ],
};

function sortedRows() {
  const key = `${view.version} ${table.shows} ${table.sorted} ${table.isDown}`;
  if (table.key === key) return table.rows;
  const isLeases = table.shows === "leases";
  const itemsIn = (lane) => [...lane.items, ...lane.doubts].filter(isShown);
  const rows = isLeases ? view.lanes.filter((lane) => !lane.parent) : view.lanes.flatMap(itemsIn);
  const [, value] = COLUMNS[table.shows][table.sorted ?? 0];
  const order = table.isDown ? d3.descending : d3.ascending;
  const isUnsorted = table.sorted === null && isLeases;
  Object.assign(table, { key, rows: isUnsorted ? rows : d3.sort(rows, (a, b) => order(value(a), value(b))) });
  return table.rows;
}

function paintTable() {
  const rows = sortedRows();
  const shown = `${table.key} ${table.page} ${chart.isPrinting} ${book.ends}`;
  if (table.painted === shown) return;
  table.painted = shown;
  const pages = Math.max(1, Math.ceil(rows.length / PAGE));
  table.page = Math.min(table.page, pages - 1);
  const first = chart.isPrinting ? 0 : table.page * PAGE;
  const part = rows.slice(first, first + (chart.isPrinting ? MAX_ROWS_PRINTED : PAGE));
  const columns = COLUMNS[table.shows];
  const heads = columns.map(([title], index) => {
    const order = table.sorted !== index ? "none" : table.isDown ? "descending" : "ascending";
    const arrow = { none: "", ascending: " ▲", descending: " ▼" }[order];
    return made("th", { scope: "col", "aria-sort": order }, "", button(title + arrow, null, { value: index }));
  });
  const { tHead, tBodies } = element("table");
  const focused = tHead.contains(document.activeElement) ? document.activeElement.value : null;
  tHead.replaceChildren(made("tr", {}, "", ...heads));
  if (focused) heads[focused].firstChild.focus();
  tBodies[0].replaceChildren(...part.map((item) => rowOf(item, columns)));
  const total = rows.length.toLocaleString("en");
  element("page").textContent = rows.length ? `${first + 1} to ${first + part.length} of ${total}` : "no rows";
  element("before").disabled = table.page === 0;
  element("after").disabled = table.page >= pages - 1;
  for (const one of ["leases", "events"]) element(`of-${one}`).setAttribute("aria-pressed", table.shows === one);
}

function rowOf(item, columns) {
  const show = () => goTo(item.type === "doubt" ? item.span : item, item.begins);
  const cells = columns.map(([title, value, words], index) => {
    const text = String((words || value)(item));
    const isShort = text.split(/\s/).every((word) => word.length <= UNBROKEN);
    const kinds = [isShort && (/\s/.test(text) ? "words" : "name")];
    kinds.push(["Text", "In words"].includes(title) && "long", ["From", "Until", "Length"].includes(title) && "time");
    const names = { class: kinds.filter(Boolean).join(" ") };
    if (index) return made("td", names, text);
    return made("th", { ...names, scope: "row" }, "", button(text, show, { title: "Show it in the lanes" }));
  });
  return made("tr", { "data-kind": item.kind }, "", ...cells);
}

function listenForTable() {
  const change = (changes) => {
    Object.assign(table, changes);
    repaint();
  };
  element("table").tHead.addEventListener("click", (event) => {
    const head = event.target.closest("button");
    if (!head) return;
    const sorted = Number(head.value);
    change({ isDown: table.sorted === sorted && !table.isDown, sorted, page: 0 });
  });
  const turnTo = (shows, sorted) => change({ shows, sorted, page: 0, isDown: false });
  element("of-leases").addEventListener("click", () => turnTo("leases", null));
  element("of-events").addEventListener("click", () => turnTo("events", 0));
  element("before").addEventListener("click", () => change({ page: table.page - 1 }));
  element("after").addEventListener("click", () => change({ page: table.page + 1 }));
}
