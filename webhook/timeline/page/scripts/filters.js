// Which lanes and kinds are shown, and in which order.
"use strict";

const filters = { search: "", namespace: "", lease: "", holder: "", writer: "", order: "", eventful: false };
const byNumber = new Intl.Collator("en", { numeric: true });
const byName = (a, b) => byNumber.compare(a.title, b.title);
const ORDERS = {
  name: byName,
  gap: (a, b) => gapLength(b) - gapLength(a) || d3.ascending(worstRank(a), worstRank(b)) || byName(a, b),
  handovers: (a, b) => b.handovers - a.handovers || byName(a, b),
  events: (a, b) => b.marks.length - a.marks.length || byName(a, b),
};

function gapLength(lane) {
  const gap = longestGap(book, lane);
  return gap ? lengthOf(book, gap) : 0;
}

/** The rank of the gravest thing that happened to a lane. */
function worstRank(lane) {
  return d3.min(lane.marks, (mark) => markLook(mark.kind).rank) ?? Infinity;
}

function contains(text, part) {
  return text.toLowerCase().includes(part);
}

/** Whether an item is of a kind that is shown and fits what was typed; the table shows these, too. */
function isShown(item) {
  if (view.hidden.has(item.kind)) return false;
  const { holder, writer, search } = filters;
  if (!contains(item.holder, holder) || !contains(item.writer, writer)) return false;
  return [item.lane.title, item.holder, item.writer, item.text].some((text) => contains(text, search));
}

/** Whether a span is drawn in the background, as a filter is about others. */
function isDimmed(span) {
  return Boolean(filters.holder || filters.writer) && !isShown(span);
}

function fits(lane) {
  const { namespace, lease, holder, writer, search } = filters;
  if ((namespace && lane.namespace !== namespace) || !contains(lane.title, lease)) return false;
  if (filters.eventful && !lane.gaps.length && !lane.handovers && !lane.marks.some(isShown)) return false;
  if (!holder && !writer && contains(lane.title, search)) return true;
  return lane.items.some(isShown) || lane.candidates.some(fits);
}

/** Choose the lanes again, after a change of filters or of the data. */
function refilter() {
  const leases = [...book.lanes.values()].filter(fits).sort(ORDERS[filters.order] || byName);
  view.lanes = leases.flatMap((lane) => (view.hidden.has("offered") ? [lane] : [lane, ...lane.candidates]));
  view.version = (view.version || 0) + 1;
  placeLanes();
  element("overall").textContent = overall(leases);
  element("gap").disabled = !view.lanes.some((lane) => lane.gaps.length);
  repaint();
}

/** The whole page in a few sentences. */
function overall(leases) {
  const all = book.lanes.size;
  const shown = leases.length === all ? count(all, "lease") : `${leases.length} of ${count(all, "lease")}`;
  const [from, until] = [book.from, book.ends].map((at) => parts(book.base + at));
  const isOneDay = from.date === until.date;
  const times = `${from.date}${isOneDay ? "," : ""} ${from.time} to ${isOneDay ? "" : `${until.date} `}${until.time} UTC`;
  const changed = d3.sum(leases, (lane) => lane.handovers);
  const handovers = changed === 1 ? "One handover" : `${changed || "No"} handovers`;
  const whole = `${shown}, ${times} (${length(book.ends - book.from)}). ${handovers}.`;
  const stolen = leases.filter((lane) => lane.marks.some((mark) => mark.kind === "steal"));
  const others = stolen.length > 1 ? ` and ${stolen.length - 1} more` : "";
  const steals = stolen.length
    ? `${brief(stolen[0].title)}${others} taken while it was held: two replicas may have acted as leader. `
    : "";
  const worst = d3.greatest(leases, gapLength);
  const gap = worst && longestGap(book, worst);
  if (!gap) return `${steals}${whole} None was ever without a leader.`;
  const since = `from ${moment(book, gap.begins)} on${gap.ends === null ? ", and still none" : ""}`;
  return `${steals}Longest time without a leader: ${brief(worst.title)}, ${gapSpan(book, gap)}, ${since}. ${whole}`;
}

function fillChoices() {
  const lanes = [...book.lanes.values()];
  const items = lanes.flatMap((lane) => lane.items);
  const chosen = element("namespace").value;
  const namespaces = d3.sort(new Set(lanes.map((lane) => lane.namespace)));
  const options = namespaces.map((name) => new Option(name || "(none)", name));
  element("namespace").replaceChildren(new Option("all", ""), ...options);
  element("namespace").value = chosen;
  const fill = (id, texts) => {
    const found = d3.sort(new Set(texts)).filter(Boolean).slice(0, 500);
    element(id).replaceChildren(...found.map((text) => new Option("", text.slice(0, 300))));
  };
  fill("leases", lanes.map((lane) => lane.title));
  fill("holders", items.map((item) => item.holder));
  fill("writers", items.map((item) => item.writer));
  fillKinds(lanes);
}

function fillKinds(lanes) {
  const everyLane = lanes.flatMap((lane) => [lane, ...lane.candidates]);
  const items = everyLane.flatMap((lane) => [...lane.items, ...(lane.parent ? [] : lane.doubts)]);
  const counts = d3.rollup(items, (some) => d3.sum(some, (item) => item.count), (item) => item.kind);
  counts.set("renewals", d3.sum(everyLane, (lane) => lane.renewals));
  const order = [...Object.keys(SPAN_WORDS), "renewals", ...d3.sort(Object.keys(MARKS), (kind) => MARKS[kind].rank)];
  const kinds = d3.sort([...counts.keys()].filter((kind) => counts.get(kind)), (kind) => order.indexOf(kind));
  const labels = kinds.map((kind) => {
    const box = made("input", { type: "checkbox", value: kind });
    box.checked = !view.hidden.has(kind);
    const words = made("span", {}, `${SPAN_WORDS[kind] || markWords(kind)} `);
    const number = made("span", { class: "count" }, counts.get(kind).toLocaleString("en"));
    return made("label", { class: "kind" }, "", box, glyph(kind), words, number);
  });
  element("kinds").replaceChildren(made("legend", {}, "Shown"), ...labels);
}

function listenForFilters() {
  const form = element("filters");
  form.addEventListener("submit", (event) => event.preventDefault());
  const read = () => {
    for (const id of ["search", "lease", "holder", "writer"]) filters[id] = element(id).value.trim().toLowerCase();
    for (const id of ["namespace", "order"]) filters[id] = element(id).value;
    filters.eventful = element("eventful").checked;
    viewport.scrollTop = 0;
    refilter();
  };
  form.addEventListener("input", read);
  element("clear").addEventListener("click", () => {
    form.reset();
    view.hidden.clear();
    fillKinds([...book.lanes.values()]);
    read();
  });
  element("kinds").addEventListener("change", ({ target }) => {
    view.hidden[target.checked ? "delete" : "add"](target.value);
    refilter();
  });
  filters.order = element("order").value;
}
