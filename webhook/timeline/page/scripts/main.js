// Brings it all together once the page is there.
"use strict";

function fillNotes() {
  const notes = element("notes");
  const put = (title, texts) => {
    if (!texts.length) return;
    const items = made("ul");
    for (const text of texts.slice(0, 50)) items.append(made("li", text));
    notes.append(made("h3", title), items);
  };
  notes.replaceChildren();
  put("What was left out or drawn together", book.thinned);
  put("Read from", [
    ...book.sources,
    ...(book.readAt === null
      ? []
      : [`at ${new Date(book.readAt / 1000).toISOString().slice(0, 19)}Z, by the clock of the computer that read it`]),
  ]);
}

function print(isPrinting) {
  chart.isPrinting = isPrinting;
  document.body.classList.toggle("printing", isPrinting);
  measure();
  repaint();
  paintNow();
}

function begin() {
  painters.drawing.push(paintLanes, paintAxis, paintOverview, paintTable);
  painters.cursor.push(paintCursor, paintTip);
  const events = document.querySelector("meta[name=events]").content;
  if (events) element("order").value = "name";
  listenForFilters();
  fillChoices();
  fillNotes();
  refilter();
  d3.select(list).call(zoom).on("dblclick.zoom", null);
  measure();
  listenForCursor();
  listenForItems();
  listenForTable();
  listenForKeys();
  viewport.addEventListener("scroll", repaint, { passive: true });
  list.addEventListener(
    "wheel",
    (event) => {
      if (event.ctrlKey || event.metaKey) return;
      const across = event.shiftKey
        ? event.deltaX || event.deltaY
        : Math.abs(event.deltaX) > Math.abs(event.deltaY)
          ? event.deltaX
          : 0;
      if (!across) return;
      event.preventDefault();
      view.follows = false;
      moveBy(across / (chart.width - chart.left));
    },
    { passive: false },
  );
  new ResizeObserver(() => {
    measure();
    repaint();
  }).observe(viewport);
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  matchMedia("print").addEventListener("change", (event) => print(event.matches));
  selectFirst();
  if (events) listenForLanes(events);
  repaint();
  paintNow();
}

begin();
