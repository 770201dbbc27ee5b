// What is shown, the note beside an item, and the details of the one that was chosen.

const MAX_TOLD = 30; // events of a lane in its details
const MAX_RUN = 3; // events of one kind in a row that are told one by one

const events = document.querySelector("meta[name=events]").content;
const byNumber = new Intl.Collator("en", { numeric: true });
const byName = (a, b) => byNumber.compare(a.title, b.title);
const isStolen = (lane) => gravest(lane) === KINDS.indexOf("steal");
const byWorst = (a, b) => isStolen(b) - isStolen(a) || gapLength(b) - gapLength(a) || gravest(a) - gravest(b);
let sought = []; // the words that were typed

/** The rank of the gravest thing that happened to a lane. */
function gravest(lane) {
  return d3.min(lane.marks, (mark) => KINDS.indexOf(mark.kind)) ?? KINDS.length;
}

/** Whether an item has every word that was typed. */
function isShown(item) {
  return sought.every((word) => item.sought.includes(word));
}

/** Choose the lanes again, after a change of what is wanted or of the data. */
function refilter() {
  sought = element("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  view.lanes = [...book.lanes.values()].filter((lane) => !sought.length || lane.items.some(isShown));
  // On the live page no lane moves away from where a person looks.
  view.lanes.sort((a, b) => (events ? 0 : byWorst(a, b)) || byName(a, b));
  view.tops = [0, ...d3.cumsum(view.lanes, (lane) => lane.height)];
  view.version += 1;
  list.style.height = `${view.tops.at(-1)}px`;
  element("overall").replaceChildren(...overall(view.lanes));
  element("gap").disabled = !view.lanes.some((lane) => lane.gaps.length);
  repaint();
}

/** The whole page in a few sentences: the worst lease, as a button that goes to it, and numbers. */
function overall(leases) {
  const all = count(book.lanes.size, "lease");
  const shown = leases.length === book.lanes.size ? all : `${leases.length} of ${all}`;
  const times = `${book.hasDates ? "" : `${dateOf(book.from)}, `}${instant(book.from)} to ${instant(book.ends)} UTC`;
  const handovers = count(d3.sum(leases, (lane) => lane.handovers), "handover");
  const whole = `${shown}, ${times} (${length(book.ends - book.from)}), ${handovers}.`;
  const worst = d3.least(leases.filter((lane) => isStolen(lane) || lane.gaps.length), byWorst);
  if (!worst) return [`${whole} None was ever without a leader.`];
  const steal = worst.marks.find((mark) => mark.kind === "steal");
  const gap = d3.greatest(worst.gaps, lengthOf);
  const what = steal ? `at ${instant(steal.begins)} ${steal.text}` : gapWords(gap);
  return [button(worst.title, () => goTo(steal ?? gap.span)), `: ${what}. ${whole}`];
}

/** List the kinds that there are. */
function fillLegend() {
  const lanes = [...book.lanes.values()];
  const found = new Set(lanes.flatMap((lane) => [...lane.items, ...lane.doubts].map((item) => item.kind)));
  if (lanes.some((lane) => lane.renewals)) found.add("renewals");
  const entry = (kind) => made("span", { class: "kind" }, glyph(kind), WORDS.get(kind) ?? kind);
  element("legend").replaceChildren(...[...KINDS, "renewals"].filter((kind) => found.has(kind)).map(entry));
}

element("search").addEventListener("input", () => {
  viewport.scrollTop = 0;
  refilter();
});

/** What is known of an item: words and values. */
function factsOf(item) {
  const { lane, type, begins, ends } = item;
  if (type === "lane")
    return [
      ["Lease duration", item.duration && length(item.duration * SECOND)],
      ["Handovers", String(item.handovers)],
      ["Renewals", item.renewals.toLocaleString("en")],
    ];
  const early = type === "span" && begins < book.from ? ", as the holder says: the input begins later" : "";
  return [
    ["Lease", lane.title],
    [type === "mark" && ends === null ? "At" : "From", instant(begins, 6) + early],
    ["Until", ends !== null ? instant(ends, 6) : type === "span" && "the end of the input"],
    ["Length", type === "span" && length(lengthOf(item))],
    [UNLED.has(item.kind) ? "Last holder" : "Holder", item.holder],
    ["Writer", item.writer],
    ["Field manager", item.manager],
  ];
}

/** The text of an item, if it has one, and what is known of it. */
function described(item) {
  const text = item.type === "span" ? "" : item.text ?? chipsOf(item).join(", ");
  const facts = factsOf(item).filter(([, value]) => value);
  const pairs = facts.flatMap(([word, value]) => [made("dt", {}, word), made("dd", {}, value)]);
  return [...(text ? [made("p", { class: "whole" }, text)] : []), made("dl", {}, ...pairs)];
}

/** What happened to a lane, in the order of time; of many of one kind in a row the first. */
function storyOf(lane) {
  const runs = [];
  for (const mark of lane.marks.filter(isShown)) {
    if (runs.at(-1)?.[0].kind === mark.kind) runs.at(-1).push(mark);
    else runs.push([mark]);
  }
  const told = runs.flatMap((run) => (run.length > MAX_RUN ? [run] : run.map((mark) => [mark])));
  const entries = told.slice(0, MAX_TOLD).map((run) => {
    const [mark] = run;
    const title = run.length > 1 ? `${WORDS.get(mark.kind)}, ${d3.sum(run, (one) => one.count)} times, the first` : mark.title;
    const words = made("span", { class: "whole" }, `${title}: ${mark.text}`);
    return made("li", {}, button(instant(mark.begins, 3), () => goTo(mark)), glyph(mark.kind), words);
  });
  const more = told.length > MAX_TOLD ? [made("li", {}, `and ${told.length - MAX_TOLD} more: search for one of them, or zoom in`)] : [];
  return made("ol", { class: "story" }, ...entries, ...more);
}

/** Show the note for what is pointed at or active, or hide it. */
function paintTip() {
  const isFocused = document.activeElement === list && !view.isTipClosed;
  const node = view.hovered ?? (isFocused ? list.querySelector(".active") : null);
  const tip = element("tip");
  tip.hidden = !node?.isConnected;
  if (tip.hidden) return;
  const { items } = node;
  const line = (one) => `${instant(one.begins, 3)} ${one.title}${one.type === "mark" ? `: ${one.text}` : ""}`;
  const lines = [...items.slice(0, 6).map(line), ...(items.length > 6 ? [`and ${items.length - 6} more: zoom in`] : [])];
  const several = () => [made("ul", {}, ...lines.map((text) => made("li", {}, text)))];
  const title = items.length > 1 ? `${items.length} here, from ${instant(items[0].begins)} on` : items[0].title;
  tip.replaceChildren(made("strong", {}, title), ...(items.length > 1 ? several() : described(items[0])));
  const box = node.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const wanted = view.hovered ? view.pageX + 14 : Math.max(box.left, chart.left) + 8;
  tip.style.left = `${Math.max(8, Math.min(wanted, innerWidth - width - 12))}px`;
  tip.style.top = `${box.bottom + height + 12 < innerHeight ? box.bottom + 8 : Math.max(4, box.top - height - 8)}px`;
}

/** Fill the details; `items` are several if they lie too close to be drawn apart. */
function select(items) {
  const content = items.slice(0, 50).flatMap((item) => {
    const color = item.type === "span" && item.lane.colors.get(item.holder);
    const swatch = item.type === "span" ? [made("span", { class: `swatch ${item.kind} c${color}` })] : [];
    const sign = item.type === "mark" ? [glyph(item.kind)] : swatch;
    const story = item.type === "lane" && item.marks.length ? [storyOf(item)] : [];
    return [made("h2", {}, ...sign, made("span", {}, item.title)), ...described(item), ...story];
  });
  if (items.length > 50) content.push(made("p", {}, `and ${items.length - 50} more: zoom in`));
  element("details").replaceChildren(...content);
  repaint();
}

list.addEventListener("pointermove", (event) => {
  view.pageX = event.clientX;
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
