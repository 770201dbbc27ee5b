// The note beside an item (on hover and on focus), and the details of the one that was chosen.
"use strict";

const MOST_TOLD = 30; // events of a lane in its details

/** Facts of an item: what it says, then pairs of a word and a value. */
function factsOf(item) {
  const facts = [];
  const put = (word, value) => {
    if (value) facts.push([word, value]);
  };
  const lane = item.lane || item;
  if (lane !== item) put(lane.parent ? "Candidate" : "Lease", lane.title);
  if (item.type === "lane") {
    put("Lease duration", lane.duration === null ? "" : length(lane.duration * SECOND));
    put("Handovers", String(lane.handovers));
    put("Renewals", (lane.ticks.length + d3.sum(lane.buckets, (one) => one.count)).toLocaleString("en"));
    return facts;
  }
  put(
    item.ends === null && item.type === "mark" ? "At" : "From",
    item.begins < book.from && item.type === "span"
      ? `${instant(book, item.begins, 6)}, as the holder says: the input begins later`
      : instant(book, item.begins, 6),
  );
  if (item.type === "span") put("Until", item.ends === null ? "the end of the input" : instant(book, item.ends, 6));
  else if (item.ends !== null) put("Until", instant(book, item.ends, 6));
  if (item.type === "span") put("Length", length(lengthOf(book, item)));
  put(UNLED.has(item.kind) ? "Last holder" : "Holder", item.holder);
  put("Writer", item.writer);
  put("Field manager", item.manager);
  const gap = lane.gaps.find(
    (one) =>
      one.span === item ||
      (item.type === "span" &&
        UNLED.has(item.kind) &&
        one.begins <= item.begins &&
        endOf(book, one) >= endOf(book, item)),
  );
  if (gap && gap.expired)
    put(
      "No leader",
      `for ${gapSpan(book, gap)}: the last renewal was at ${instant(book, gap.begins, 3)}`,
    );
  return facts;
}

function listOfFacts(facts) {
  const list = made("dl");
  for (const [word, value] of facts) list.append(made("dt", word), made("dd", value));
  return list;
}

/** What happened to a lane, in the order of time. */
function storyOf(lane) {
  const list = made("ol", "", "story");
  const marks = lane.marks.filter(isShown);
  for (const mark of marks.slice(0, MOST_TOLD)) {
    const entry = made("li");
    const button = made("button", instant(book, mark.begins, 3));
    button.type = "button";
    button.addEventListener("click", () => goTo(mark));
    entry.append(button, glyph(mark.kind), made("span", `${markWords(mark.kind)}: ${mark.text}`, "whole"));
    list.append(entry);
  }
  if (marks.length > MOST_TOLD) list.append(made("li", `and ${marks.length - MOST_TOLD} more: see the table`));
  return list;
}

function tipFor(items) {
  const tip = element("tip");
  const [item] = items;
  const content = [
    made(
      "strong",
      items.length > 1 ? `${items.length} here, from ${instant(book, item.begins)} on` : titleOf(book, item),
    ),
  ];
  if (items.length > 1) {
    const list = made("ul");
    for (const one of items.slice(0, 6))
      list.append(
        made("li", `${instant(book, one.begins, 3)} ${titleOf(book, one)}${one.text ? `: ${one.text}` : ""}`),
      );
    if (items.length > 6) list.append(made("li", `and ${items.length - 6} more: zoom in`));
    content.push(list);
  } else {
    if (item.text || item.summary) content.push(made("p", item.text || item.summary));
    content.push(listOfFacts(factsOf(item)));
  }
  tip.replaceChildren(...content);
}

/** Show the note for an element of the drawing, or hide it. */
function tipAt(node) {
  const tip = element("tip");
  tip.hidden = !node;
  if (!node) return;
  tipFor(node.items);
  const box = node.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const wanted =
    view.pointer !== null && chart.pageX !== undefined ? chart.pageX + 14 : Math.max(box.left, chart.left) + 8;
  tip.style.left = `${Math.max(8, Math.min(wanted, innerWidth - width - 12))}px`;
  tip.style.top = `${box.bottom + height + 12 < innerHeight ? box.bottom + 8 : Math.max(4, box.top - height - 8)}px`;
}

function paintTip() {
  const node =
    view.hovered || (document.activeElement === list && !view.isTipClosed ? list.querySelector(".active") : null);
  tipAt(node && node.isConnected ? node : null);
}

/** Fill the details; `items` are several if they lie too close to be drawn apart. */
function select(items) {
  view.selected = items[0];
  const section = element("details");
  const content = [];
  for (const item of items.slice(0, 50)) {
    const heading = made("h2");
    if (item.type === "mark") heading.append(glyph(item.kind));
    if (item.type === "span")
      heading.append(made("span", "", `swatch ${item.kind} c${item.lane.colors.get(item.holder)}`));
    heading.append(made("span", titleOf(book, item)));
    content.push(heading);
    if (item.text || item.summary) content.push(made("p", item.text || item.summary, "whole"));
    content.push(listOfFacts(factsOf(item)));
    if (item.type === "lane" && item.marks.length) content.push(storyOf(item));
  }
  if (items.length > 50) content.push(made("p", `and ${items.length - 50} more: zoom in, or see the table`));
  section.replaceChildren(...content);
  repaint();
}

/** Before a person chose anything, the details are those of the first lane. */
function selectFirst() {
  if (view.lanes.length) select([view.lanes[0]]);
  view.selected = null;
}

function itemsAt(event) {
  const node = event.target.closest(".item");
  return node && list.contains(node) ? node : null;
}

function listenForItems() {
  list.addEventListener("pointermove", (event) => {
    chart.pageX = event.clientX;
    view.hovered = itemsAt(event);
  });
  list.addEventListener("pointerleave", () => {
    view.hovered = null;
  });
  list.addEventListener("click", (event) => {
    const node = itemsAt(event);
    const [x] = d3.pointer(event, list);
    if (node) {
      view.active = node.items[0];
      select(node.items);
    }
    if (x > chart.left) fixCursor(Math.min(Math.max(chart.scale.invert(x), book.from), book.ends));
    view.isTipClosed = true;
  });
}
