// The same as text: a table of leases, and one of all spans and events, sorted as the person likes.
"use strict";

const PAGE = 100;
const PRINTED = 400;
const UNBROKEN = 60; // characters of a name that stands on one line
const table = { shows: "leases", page: 0, sorted: null, isDown: false, version: -1 };

const COLUMNS = {
  leases: [
    ["Lease", (lane) => lane.title],
    ["Holder at the end", (lane) => stateWords(stateAt(book, lane, book.ends))],
    ["Handovers", (lane) => lane.handovers],
    ["Longest without a leader", (lane) => gapLength(lane), (lane) => gapWords(lane)],
    [
      "From",
      (lane) => (longestGap(book, lane) || { begins: Infinity }).begins,
      (lane) => {
        const gap = longestGap(book, lane);
        return gap ? instant(book, gap.begins, 3) : "";
      },
    ],
    ["Events", (lane) => d3.sum(lane.marks, (mark) => mark.count)],
    ["In words", (lane) => lane.summary],
  ],
  events: [
    ["From", (item) => item.begins, (item) => instant(book, item.begins, 3)],
    [
      "Until",
      (item) => (item.ends === null ? (item.type === "span" ? Infinity : item.begins) : item.ends),
      (item) => (item.ends !== null ? instant(book, item.ends, 3) : item.type === "span" ? "the end" : ""),
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

function gapWords(lane) {
  const gap = longestGap(book, lane);
  return gap
    ? gapSpan(book, gap) + (gap.ends === null ? ", still" : "")
    : "never";
}

function stateWords(state) {
  return state.note ? `${state.short}, ${state.note}` : state.short;
}

function sortedRows() {
  const key = `${view.version} ${table.shows} ${table.sorted} ${table.isDown}`;
  if (table.key === key) return table.rows;
  const leases = view.lanes;
  const rows =
    table.shows === "leases"
      ? leases.filter((lane) => !lane.parent)
      : leases.flatMap((lane) => [...lane.items, ...lane.doubts].filter(isShown));
  const [, value] = COLUMNS[table.shows][table.sorted ?? 0];
  const order = table.isDown ? (a, b) => d3.descending(value(a), value(b)) : (a, b) => d3.ascending(value(a), value(b));
  table.key = key;
  table.rows = table.sorted === null && table.shows === "leases" ? rows : d3.sort(rows, order);
  return table.rows;
}

function paintTable() {
  const shown = `${table.shows} ${table.page} ${table.sorted} ${table.isDown} ${view.version} ${chart.isPrinting} ${book.ends}`;
  if (table.painted === shown) return;
  table.painted = shown;
  const rows = sortedRows();
  const pages = Math.max(1, Math.ceil(rows.length / PAGE));
  table.page = Math.min(table.page, pages - 1);
  const first = chart.isPrinting ? 0 : table.page * PAGE;
  const part = rows.slice(first, first + (chart.isPrinting ? PRINTED : PAGE));
  const columns = COLUMNS[table.shows];
  const head = document.createElement("tr");
  columns.forEach(([title], index) => {
    const cell = made("th");
    cell.scope = "col";
    const isSorted = table.sorted === index;
    cell.setAttribute("aria-sort", isSorted ? (table.isDown ? "descending" : "ascending") : "none");
    const button = made("button", `${title}${isSorted ? (table.isDown ? " ▼" : " ▲") : ""}`);
    button.type = "button";
    button.value = index;
    cell.append(button);
    head.append(cell);
  });
  const focused = document.activeElement;
  const wasColumn = focused && focused.closest("thead") && element("table").contains(focused) ? focused.value : null;
  element("table").tHead.replaceChildren(head);
  if (wasColumn !== null) head.querySelectorAll("button")[wasColumn].focus();
  element("table").tBodies[0].replaceChildren(...part.map((item) => rowOf(item, columns)));
  element("page").textContent = rows.length
    ? `${first + 1} to ${first + part.length} of ${rows.length.toLocaleString("en")}`
    : "no rows";
  element("before").disabled = table.page === 0;
  element("after").disabled = table.page >= pages - 1;
  element("of-leases").setAttribute("aria-pressed", table.shows === "leases");
  element("of-events").setAttribute("aria-pressed", table.shows === "events");
}

function rowOf(item, columns) {
  const row = document.createElement("tr");
  row.dataset.kind = item.kind;
  columns.forEach(([title, value, words], index) => {
    const text = String((words || value)(item));
    const cell = made(index ? "td" : "th", index ? text : "");
    if (text.split(/\s/).every((word) => word.length <= UNBROKEN)) cell.className = /\s/.test(text) ? "words" : "name";
    if (title === "Text" || title === "In words") cell.classList.add("long");
    if (title === "From" || title === "Until" || title === "Length") cell.classList.add("time");
    if (!index) {
      cell.scope = "row";
      const button = made("button", text);
      button.type = "button";
      button.title = "Show it in the lanes";
      button.addEventListener("click", () => goTo(item.type === "doubt" ? item.span : item, item.begins));
      cell.append(button);
    }
    row.append(cell);
  });
  return row;
}

function turnTo(shows) {
  table.shows = shows;
  table.page = 0;
  table.sorted = shows === "events" ? 0 : null;
  table.isDown = false;
  repaint();
}

function listenForTable() {
  element("table").tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const column = Number(button.value);
    table.isDown = table.sorted === column ? !table.isDown : false;
    table.sorted = column;
    table.page = 0;
    repaint();
  });
  element("of-leases").addEventListener("click", () => turnTo("leases"));
  element("of-events").addEventListener("click", () => turnTo("events"));
  element("before").addEventListener("click", () => {
    table.page -= 1;
    repaint();
  });
  element("after").addEventListener("click", () => {
    table.page += 1;
    repaint();
  });
}
