// Which lanes and kinds are shown, and in which order.
"use strict";

const filters = { search: "", namespace: "", lease: "", holder: "", writer: "", order: "", eventful: false };
const byNumber = new Intl.Collator("en", { numeric: true });
const ORDERS = {
  name: (a, b) => byNumber.compare(a.title, b.title),
  gap: (a, b) =>
    d3.descending(gapLength(a), gapLength(b)) || d3.ascending(worstRank(a), worstRank(b)) || ORDERS.name(a, b),
  handovers: (a, b) => d3.descending(a.handovers, b.handovers) || ORDERS.name(a, b),
  events: (a, b) => d3.descending(a.marks.length, b.marks.length) || ORDERS.name(a, b),
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
  if (filters.holder && !contains(item.holder, filters.holder)) return false;
  if (filters.writer && !contains(item.writer, filters.writer)) return false;
  return (
    !filters.search ||
    contains(item.lane.title, filters.search) ||
    [item.holder, item.writer, item.text].some((text) => contains(text, filters.search))
  );
}

/** Whether a span is drawn in the background, as a filter is about others. */
function isDimmed(span) {
  return Boolean(filters.holder || filters.writer) && !isShown(span);
}

function fits(lane) {
  if (filters.namespace && lane.namespace !== filters.namespace) return false;
  if (filters.lease && !contains(lane.title, filters.lease)) return false;
  if (filters.eventful && !lane.gaps.length && !lane.handovers && !lane.marks.some(isShown)) return false;
  if (!filters.holder && !filters.writer && !filters.search) return true;
  return (
    lane.items.some((item) => isShown(item)) ||
    (!filters.holder && !filters.writer && contains(lane.title, filters.search)) ||
    lane.candidates.some(fits)
  );
}

/** Choose the lanes again, after a change of filters or of the data. */
function refilter() {
  const leases = [...book.lanes.values()].filter(fits).sort(ORDERS[filters.order] || ORDERS.name);
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
  const from = parts(book.base + book.from);
  const until = parts(book.base + book.ends);
  const times =
    from.date === until.date
      ? `${from.date}, ${from.time} to ${until.time} UTC`
      : `${from.date} ${from.time} to ${until.date} ${until.time} UTC`;
  const changed = d3.sum(leases, (lane) => lane.handovers);
  const worst = d3.greatest(leases, gapLength);
  const gap = worst && longestGap(book, worst);
  const longest = gap
    ? `Longest time without a leader: ${brief(worst.title)}, ${gapSpan(book, gap)}, from ${moment(book, gap.begins)} on${gap.ends === null ? ", and still none" : ""}.`
    : "None was ever without a leader.";
  const stolen = leases.filter((lane) => lane.marks.some((mark) => mark.kind === "steal"));
  const steals = stolen.length
    ? `${brief(stolen[0].title)}${stolen.length > 1 ? ` and ${stolen.length - 1} more` : ""} taken while it was held: two replicas may have acted as leader. `
    : "";
  return `${steals}${gap ? `${longest} ` : ""}${shown}, ${times} (${length(book.ends - book.from)}). ${changed === 1 ? "One handover" : `${changed || "No"} handovers`}.${gap ? "" : ` ${longest}`}`;
}

function fillChoices() {
  const lanes = [...book.lanes.values()];
  const items = lanes.flatMap((lane) => lane.items);
  const namespaces = d3.sort(new Set(lanes.map((lane) => lane.namespace)));
  const chosen = element("namespace").value;
  element("namespace").replaceChildren(
    new Option("all", ""),
    ...namespaces.map((name) => new Option(name || "(none)", name)),
  );
  element("namespace").value = chosen;
  const fill = (id, texts) =>
    element(id).replaceChildren(
      ...d3
        .sort(texts)
        .filter(Boolean)
        .slice(0, 500)
        .map((text) => new Option("", text.slice(0, 300))),
    );
  fill("leases", new Set(lanes.map((lane) => lane.title)));
  fill("holders", new Set(items.map((item) => item.holder)));
  fill("writers", new Set(items.map((item) => item.writer)));
  fillKinds(lanes);
}

function fillKinds(lanes) {
  const everyLane = lanes.flatMap((lane) => [lane, ...lane.candidates]);
  const counts = d3.rollup(
    everyLane.flatMap((lane) => lane.items),
    (items) => d3.sum(items, (item) => item.count),
    (item) => item.kind,
  );
  for (const kind of ["silent", "contested"])
    counts.set(
      kind,
      d3.sum(lanes, (lane) => d3.sum(lane.doubts, (one) => one.kind === kind)),
    );
  counts.set(
    "renewals",
    d3.sum(everyLane, (lane) => lane.ticks.length + d3.sum(lane.buckets, (one) => one.count)),
  );
  const rank = (kind) =>
    SPAN_WORDS[kind] ? Object.keys(SPAN_WORDS).indexOf(kind) : kind === "renewals" ? 50 : 100 + markLook(kind).rank;
  const labels = d3
    .sort(counts.keys(), rank)
    .filter((kind) => counts.get(kind))
    .map((kind) => {
      const label = made("label", "", "kind");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = !view.hidden.has(kind);
      box.value = kind;
      label.append(
        box,
        glyph(kind),
        made("span", `${SPAN_WORDS[kind] || markWords(kind)} `),
        made("span", counts.get(kind).toLocaleString("en"), "count"),
      );
      return label;
    });
  element("kinds").replaceChildren(made("legend", "Shown"), ...labels);
}

function listenForFilters() {
  const form = element("filters");
  form.addEventListener("submit", (event) => event.preventDefault());
  const read = () => {
    for (const id of ["search", "lease", "holder", "writer"]) filters[id] = element(id).value.trim().toLowerCase();
    filters.namespace = element("namespace").value;
    filters.order = element("order").value;
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
  element("kinds").addEventListener("change", (event) => {
    if (event.target.checked) view.hidden.delete(event.target.value);
    else view.hidden.add(event.target.value);
    refilter();
  });
  filters.order = element("order").value;
}
