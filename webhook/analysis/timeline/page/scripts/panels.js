// What is shown, the note beside an item, and the details of the one that was chosen.

const MAX_TOLD = 30; // events of a lane in its details
const MAX_RUN = 3; // events of one kind in a row that are told one by one

const events = document.querySelector("meta[name=events]").content;
const byNumber = new Intl.Collator("en", { numeric: true });
const byName = (a, b) => byNumber.compare(a.title, b.title);
const byWorst = (a, b) => b.trouble - a.trouble || unledTime(b) - unledTime(a) || findWorstRank(a) - findWorstRank(b);
const byChanges = (a, b) => b.handovers - a.handovers || byWorst(a, b);
const ORDERS = { trouble: byWorst, name: () => 0, changes: byChanges };
let sought = []; // the words that were typed

/** The rank of the gravest thing that happened to a lane. */
function findWorstRank(lane) {
  return d3.min(lane.marks, (mark) => KINDS.indexOf(mark.kind)) ?? KINDS.length;
}

/** Whether an item has every word that was typed. */
function isShown(item) {
  return sought.every((word) => item.sought.includes(word));
}

/** Choose the lanes again, after a change of what is wanted or of the data. */
function refilter() {
  sought = element("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const isSought = (lane) => !sought.length || lane.items.some(isShown) || sought.every((word) => lane.title.toLowerCase().includes(word));
  const all = [...book.lanes.values()];
  view.lanes = all.filter((lane) => isSought(lane) && (!view.onlyTrouble || lane.trouble > TROUBLE.warning));
  // On the live page no lane moves away from where a person looks, unless that was chosen.
  const order = ORDERS[view.order] ?? ORDERS[events ? "name" : "trouble"];
  view.lanes.sort((a, b) => order(a, b) || byName(a, b));
  view.version += 1;
  placeLanes();
  fillTitle();
  element("overall").replaceChildren(summarize(view.lanes));
  const bad = all.filter((lane) => lane.trouble > TROUBLE.warning).length;
  put(element("bad"), {}, `Only with trouble (${bad.toLocaleString("en")})`);
  element("gap").disabled = !view.lanes.some((lane) => lane.gaps.length);
  if (!view.lanes.length) element("details").replaceChildren();
  repaint();
}

/** What was worst about a lease, in a few words, and where that is; null if nothing was wrong. */
function worstOf(lane) {
  const last = lane.spans.at(-1);
  const steal = lane.marks.find((mark) => mark.kind === "steal");
  const gap = d3.greatest(lane.gaps, lengthOf);
  const open = lane.gaps.find((one) => one.ends === null);
  if (lane.problem) return { words: "cannot be drawn, a defect of this program", text: lane.problem, item: lane };
  if (last && isFrozen(last)) return { words: "frozen, no other replica can take it", text: last.title, item: last };
  if (steal) return { words: `taken from its holder at ${instant(steal.begins)}`, text: steal.text, item: steal };
  if (open ?? gap) return { words: gapWords(open ?? gap), text: "", item: (open ?? gap).span ?? lane };
  const mark = d3.least(lane.marks.filter((one) => MARKS[one.kind][0].startsWith("grave")), (one) => KINDS.indexOf(one.kind));
  return mark ? { words: `${mark.title} at ${instant(mark.begins)}`, text: mark.text, item: mark } : null;
}

/** The title says the worst thing, and leads to it. */
function fillTitle() {
  const head = document.querySelector("h1");
  const lane = d3.least(view.lanes, (a, b) => byWorst(a, b) || byName(a, b));
  const worst = lane && worstOf(lane);
  if (worst) head.replaceChildren(button(`${lane.title}:`, () => goTo(worst.item)), ` ${worst.words}`);
  else if (book.lanes.size && !view.lanes.length) head.replaceChildren("No lease matches");
  else {
    const isSeen = view.lanes.some((one) => one.items.length);
    head.replaceChildren(view.lanes.length ? `${count(view.lanes.length, "lease")}, ${isSeen ? "no trouble was" : "nothing is"} seen` : "No lease yet");
  }
  document.title = head.textContent;
}

/** Everything in a few sentences and numbers. */
function summarize(leases) {
  const all = count(book.lanes.size, "lease");
  if (!leases.length) return book.lanes.size ? `None of ${all} matches.` : "No lease has been seen.";
  const beyond = book.leftOut ? ` (${(book.lanes.size + book.leftOut).toLocaleString("en")} are in the input; name some, or a namespace, to see others)` : "";
  const shown = (leases.length === book.lanes.size ? all : `${leases.length} of ${all}`) + beyond;
  const times = `${book.hasDates ? "" : `${dateOf(book.from)}, `}${instant(book.from)} to ${instant(book.ends)} ${zoneName()}`;
  const handovers = count(d3.sum(leases, (lane) => lane.handovers), "handover");
  const lane = d3.least(leases, (a, b) => byWorst(a, b) || byName(a, b));
  const text = worstOf(lane)?.text;
  const more = text ? `${text.slice(0, 400)}${text.length > 400 ? "…" : "."} ` : "";
  return `${more}${shown}, ${times} (${length(book.ends - book.from)}), ${handovers}.`;
}

/** List the kinds that there are. */
function fillLegend() {
  const lanes = [...book.lanes.values()];
  const found = new Set(lanes.flatMap((lane) => [...lane.items, ...lane.doubts].map((item) => item.kind)));
  if (lanes.some((lane) => lane.renewals)) found.add("renewals");
  const entry = (kind) => make("span", { class: "kind" }, glyph(kind), WORDS.get(kind) ?? kind);
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
function describeItem(item) {
  const text = item.type === "span" ? "" : item.text ?? chipsOf(item).join(", ");
  const facts = factsOf(item).filter(([, value]) => value);
  const pairs = facts.flatMap(([word, value]) => [make("dt", {}, word), make("dd", {}, value)]);
  return [...(text ? [make("p", { class: "whole" }, text)] : []), make("dl", {}, ...pairs)];
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
    const words = make("span", { class: "whole" }, `${title}: ${mark.text}`);
    return make("li", {}, button(instant(mark.begins, 3), () => goTo(mark)), glyph(mark.kind), words);
  });
  const more = told.length > MAX_TOLD ? [make("li", {}, `and ${told.length - MAX_TOLD} more: search for one of them, or zoom in`)] : [];
  return make("ol", { class: "story" }, ...entries, ...more);
}

const MAX_NOTED = 6; // lines of a note

/** Items that follow one another and say the same, together. */
function groupAlike(items) {
  const groups = d3.groups(items, (one) => `${one.kind}\n${one.title}\n${one.type === "mark" ? one.text : ""}`);
  return groups.map(([, some]) => some);
}

/** Items that say the same as one line. */
function lineOf(some) {
  const [first, last] = [some[0], some.at(-1)];
  const number = d3.sum(some, (one) => one.count);
  const text = first.type === "mark" ? `: ${first.text}` : "";
  if (some.length === 1) return `${instant(first.begins, 3)} ${first.title}${text}`;
  return `${instant(first.begins, 3)} to ${instant(last.ends ?? last.begins, 3)} ${WORDS.get(first.kind)}, ${number} times${text}`;
}

/** Show the note for what is pointed at or active, or hide it. */
function paintTip() {
  const isFocused = document.activeElement === list && !view.isTipClosed;
  const node = view.hovered ?? (isFocused ? list.querySelector(".active") : null);
  const tip = element("tip");
  tip.hidden = !node?.isConnected;
  const key = tip.hidden ? "" : `${view.version} ${node.id} ${node.items.length} ${book.isLocal}`;
  if (tip.hidden || tip.key === key) {
    tip.key = key;
    return;
  }
  tip.key = key;
  const { items } = node;
  const told = groupAlike(items);
  const lines = told.slice(0, MAX_NOTED).map(lineOf);
  if (told.length > MAX_NOTED) lines.push(`and ${told.length - MAX_NOTED} more: zoom in`);
  const several = () => [make("ul", {}, ...lines.map((text) => make("li", {}, text)))];
  const number = d3.sum(items, (one) => one.count);
  const title = items.length > 1 ? `${number} here, from ${instant(items[0].begins)} on` : items[0].title;
  tip.replaceChildren(make("strong", {}, title), ...(items.length > 1 ? several() : describeItem(items[0])));
  tip.scrollTop = 0;
  // Only one that does not fit has to be reached by the pointer.
  tip.classList.toggle("long", tip.scrollHeight > tip.clientHeight);
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
    const swatch = item.type === "span" ? [make("span", { class: `swatch ${item.kind} c${color}` })] : [];
    const sign = item.type === "mark" ? [glyph(item.kind)] : swatch;
    const story = item.type === "lane" && item.marks.length ? [storyOf(item)] : [];
    const link = make("a", { class: "link", href: `#${new URLSearchParams([["lease", item.lane.id]])}` }, "link to this lease");
    return [make("h2", {}, ...sign, make("span", {}, item.title), ...(item.type === "lane" ? [link] : [])), ...describeItem(item), ...story];
  });
  if (items.length > 50) content.push(make("p", {}, `and ${items.length - 50} more: zoom in`));
  element("details").replaceChildren(...content);
  repaint();
}

let leaving = 0;

/** Point at an element, or at none: then its note stays for a moment, so that a long one can be reached. */
function hover(node) {
  clearTimeout(leaving);
  if (node || !element("tip").classList.contains("long")) view.hovered = node;
  else
    leaving = setTimeout(() => {
      view.hovered = null;
      repaintCursor();
    }, 250);
}

list.addEventListener("pointermove", (event) => {
  view.pageX = event.clientX;
  hover(event.target.closest(".item"));
});
list.addEventListener("pointerleave", () => hover(null));
element("tip").addEventListener("pointerenter", () => clearTimeout(leaving));
element("tip").addEventListener("pointerleave", () => hover(null));
list.addEventListener("click", (event) => {
  const node = event.target.closest(".item");
  const [x] = d3.pointer(event, list);
  if (node) {
    Object.assign(view, { active: node.items[0], isChosen: true });
    select(node.items);
  }
  if (x > chart.left) fixCursor(clampToRange(chart.scale.invert(x)));
  view.isTipClosed = true;
});
