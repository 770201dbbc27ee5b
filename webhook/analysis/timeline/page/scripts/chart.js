// The lanes in view as rows, the axis, the cursor, and how time is moved and scaled.

const NARROW = 640; // pixels of a page on which names stand above the bars
const MEDIUM = 800;
const MIN_WINDOW = 1e5; // microseconds

const chart = { left: 270, width: 1000, line: MIN_LINE, isNarrow: false, scale: d3.scaleLinear(), whole: null };
const viewport = element("view");
const list = element("lanes");
const input = element("at");

/** Whether an event may zoom or drag: the wheel alone scrolls, and labels are for clicks. */
function isZoom(event) {
  if (event.type === "wheel") return event.ctrlKey || event.metaKey;
  if (event.type.startsWith("touch")) return event.touches.length > 1;
  return !event.button && d3.pointer(event, list)[0] > chart.left;
}

const zoom = d3.zoom().filter(isZoom);
zoom.on("zoom", (event) => {
  // At once, not when it is painted: what comes in the same frame starts from the window that a person chose.
  chart.scale = event.transform.rescaleX(chart.whole);
  if (event.sourceEvent) view.follows = false;
  repaint();
});

/** Take the measures of the page again; the window of time stays. */
function measure() {
  const shown = chart.whole && chart.scale.domain();
  chart.width = Math.max(list.clientWidth, 280);
  chart.isNarrow = chart.width < NARROW;
  chart.left = chart.isNarrow ? 12 : chart.width < MEDIUM ? 190 : 270;
  placeLanes();
  const total = Math.max(book.ends - book.from, MIN_WINDOW);
  const [left, right] = [chart.left, chart.width - (chart.isNarrow ? 12 : 26)];
  chart.whole = d3.scaleLinear([book.from - total * 0.005, book.ends + total * 0.015], [left, right]);
  zoom.extent([[left, 0], [right, 1]]).translateExtent([[left, -Infinity], [right, Infinity]]);
  zoom.scaleExtent([1, Math.max(1, (total * 1.02) / MIN_WINDOW)]);
  show(...(shown ?? chart.whole.domain()));
}

/** Give each lane its place, from top to bottom; in compact mode as many as can be are in view at once. */
function placeLanes() {
  document.body.classList.toggle("dense", view.isCompact);
  // What the window leaves below the head of the page; if that is too little, below the fields.
  const top = viewport.getBoundingClientRect().top;
  const below = innerHeight - top - scrollY - 4;
  const scrolled = innerHeight - (top - element("instant").getBoundingClientRect().top) - 44;
  const free = below >= view.lanes.length * MIN_LINE ? below : Math.max(200, scrolled);
  viewport.style.maxHeight = view.isCompact ? `${free}px` : "";
  chart.line = Math.max(MIN_LINE, Math.min(MAX_LINE, Math.floor(free / Math.max(1, view.lanes.length))));
  view.tops = [0, ...d3.cumsum(view.lanes, (lane) => layoutOf(lane).height)];
  list.style.height = `${view.tops.at(-1)}px`;
}

/** Make the window go from one instant to another. */
function show(from, until) {
  const [left, right] = chart.whole.range();
  const [first, last] = chart.whole.domain();
  const wide = Math.min(Math.max(until - from, MIN_WINDOW), last - first);
  const begins = Math.min(Math.max(from, first), last - wide);
  const scale = (right - left) / (chart.whole(begins + wide) - chart.whole(begins));
  d3.select(list).call(zoom.transform, d3.zoomIdentity.translate(left - scale * chart.whole(begins), 0).scale(scale));
}

/** Show that instant, without a change of scale if it can be helped. */
function reveal(begins, ends = begins) {
  const [from, until] = chart.scale.domain();
  if (begins >= from && begins <= until) return;
  const wide = until - from;
  const middle = ends - begins < wide ? (begins + ends) / 2 : begins + wide * 0.3;
  show(middle - wide / 2, middle + wide / 2);
}

function zoomBy(factor) {
  const [from, until] = chart.scale.domain();
  const at = view.cursor;
  const middle = at !== null && at >= from && at <= until ? at : (from + until) / 2;
  show(middle - (middle - from) * factor, middle + (until - middle) * factor);
}

function moveBy(part) {
  const [from, until] = chart.scale.domain();
  show(from + (until - from) * part, until + (until - from) * part);
}

/** Move the window with a wheel that turns sideways. */
function moveByWheel(event) {
  const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
  const across = event.shiftKey ? event.deltaX || event.deltaY : isSideways ? event.deltaX : 0;
  if (!across || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  view.follows = false;
  moveBy(across / (chart.width - chart.left));
}

/** Scroll so that the whole lane is in view. */
function scrollTo(lane) {
  const index = view.lanes.indexOf(lane);
  const bottom = view.tops[index + 1] - viewport.clientHeight;
  viewport.scrollTop = Math.max(bottom, Math.min(viewport.scrollTop, view.tops[index]));
}

/** Make the rows those of the lanes in view; a lane keeps its row. */
function paintLanes() {
  const { scrollTop, clientHeight } = viewport;
  const first = Math.max(0, d3.bisectRight(view.tops, scrollTop) - 2);
  const lanes = view.lanes.slice(first, d3.bisectLeft(view.tops, scrollTop + clientHeight + 1) + 1);
  const rows = new Map([...list.children].map((row) => [row.id, row]));
  const shown = lanes.map((lane) => rows.get(`row-${encodeURIComponent(lane.id)}`) ?? newRow(lane));
  if (shown.some((row, index) => row !== list.children[index]) || shown.length !== list.children.length)
    list.replaceChildren(...shown);
  shown.forEach((row, index) => paintRow(row, lanes[index]));
  put(list, { "aria-activedescendant": list.querySelector(".active")?.id ?? "" });
  element("none").hidden = view.lanes.length > 0;
}

const SHORT = 5; // letters of a namespace that are not worth an ellipsis
const TAIL = 12; // letters of a name that are always in view

function newRow(lane) {
  const id = encodeURIComponent(lane.id);
  // Between both, the slash stays in view, and some letters of a long namespace.
  const isLong = lane.namespace.length > SHORT;
  const spaces = lane.namespace ? [lane.namespace, "/"].map((text) => make("span", {}, text)) : [];
  const namespace = make("span", { class: `namespace${isLong ? " long" : ""}` }, ...spaces);
  // Where a name does not fit, its middle is left out: names of replicas and of tenants differ at their ends.
  const end = Math.max(0, lane.name.length - TAIL);
  const parts = [lane.name.slice(0, end), lane.name.slice(end)].map((text) => make("span", {}, text));
  const title = make("div", { class: "title", title: lane.title }, namespace, make("span", { class: "name" }, ...parts));
  const state = ["", "who", "remark"].map((name) => make("span", { class: name }));
  const texts = [title, make("div", { class: "state" }, ...state), make("div", { class: "spoken" })];
  const label = make("div", { class: "label item", role: "option", id: `${id}-lane` }, ...texts);
  const sentence = make("div", { class: "sentence", "aria-hidden": true });
  const drawing = make("svg", { class: "drawing", role: "presentation" });
  return make("div", { role: "group", id: `row-${id}`, "aria-label": lane.title }, drawing, label, sentence);
}

/** Pixels of the label of a lane: beside the bar, or above it. */
function labelWidth() {
  return chart.isNarrow ? chart.width - 4 : chart.left - 12;
}

/** The facts of a lane, shortly: what was grave, how often it changed hands, the longest time without a leader. */
function chipsOf(lane) {
  const numbers = d3.rollups(lane.marks, (some) => d3.sum(some, (one) => one.count), (one) => one.kind);
  const grave = numbers.filter(([kind]) => MARKS[kind][0].startsWith("grave"));
  const gap = d3.greatest(lane.gaps, lengthOf);
  const last = lane.spans.at(-1);
  return [
    ...(lane.problem ? [`cannot be drawn: ${lane.problem}`] : []),
    ...(last && isFrozen(last) ? [last.title.split(", and ").at(-1)] : []),
    ...grave.map(([kind, number]) => WORDS.get(kind) + (number > 1 ? ` ${number} times` : "")),
    ...(gap ? [gapWords(gap)] : []),
    ...(lane.gaps.length > 1 ? [`${length(unledTime(lane))} in ${lane.gaps.length} times without a leader`] : []),
    ...(last?.kind === "never-held" ? ["never held: any replica may take it"] : []),
    ...(lane.handovers ? [count(lane.handovers, "handover")] : []),
    ...(lane.isClaimed ? ["a part of its times is by its writers' clocks"] : []),
    ...(lane.isMoment ? ["one moment only, not what happened before"] : []),
  ];
}

/** As many of the facts as fit beside each other, and how many more there are, which the details have. */
function fitChips(texts, width) {
  const widthOfChip = (text) => widthOf(text) + 24; // its padding, its border and the gap after it
  for (let number = texts.length; number > 0; number -= 1) {
    const shown = number < texts.length ? [...texts.slice(0, number), `${texts.length - number} more`] : texts;
    if (d3.sum(shown, widthOfChip) <= width || number === 1) return shown;
  }
  return [];
}

function paintRow(row, lane) {
  const index = view.lanes.indexOf(lane);
  const [left, right] = chart.whole.range();
  const [drawing, label, sentence] = row.children;
  const layout = layoutOf(lane);
  const kinds = [view.isCompact && "compact", chart.isNarrow && "narrow", index % 2 && "odd"].filter(Boolean);
  put(row, { class: ["lane", ...kinds].join(" ") });
  Object.assign(row.style, { transform: `translateY(${view.tops[index]}px)`, height: `${layout.height}px` });
  label.items = [lane];
  Object.assign(label.style, { width: `${labelWidth()}px`, height: chart.isNarrow ? `${layout.bar.y - 2}px` : "" });
  put(label, { class: `label item${view.active === lane ? " active" : ""}`, "aria-selected": view.active === lane });
  put(label.lastChild, {}, chipsOf(lane).join(", "));
  const wide = right - left;
  if (sentence.lane !== lane || sentence.isLocal !== book.isLocal || sentence.wide !== wide) {
    Object.assign(sentence, { lane, isLocal: book.isLocal, wide });
    sentence.replaceChildren(...fitChips(chipsOf(lane), wide).map((text) => make("span", { class: "chip" }, text)));
  }
  sentence.hidden = layout.sentence === null;
  Object.assign(sentence.style, { left: `${left}px`, width: `${right - left}px`, top: `${layout.sentence}px` });
  put(drawing, { width: chart.width, height: layout.height });
  drawLane(drawing, lane, left, right);
}

const RANK = ["frozen", "contested", "leaderless", "overdue", "chosen", "silent", "unrecorded", "removed", "written", "several", "none", "never-held"];
const MAX_READ = 3; // lanes whose state the reading says in words

const LABEL_GAP = 12; // pixels between two labels of the axis, at least

/** The instants at which the axis is labeled, with their texts: as many as fit beside each other, from `first` on. */
function axisLabels(dates, left, right, first) {
  const most = Math.max(2, Math.floor((right - left) / 70));
  for (let number = most; number > 0; number -= 1) {
    const ticks = dates.ticks(number);
    const step = d3.min(d3.pairs(ticks, (one, next) => next - one)) ?? Infinity;
    const half = ticks.filter((date) => Math.round(date / step) % 2 === 0);
    for (const [dated, apart] of [[ticks, step], [half, 2 * step]]) {
      const format = formatOf(apart, dates);
      const labels = dated.map((date) => ({ date, text: format(date), x: dates(date) }));
      const inside = labels.filter(({ x, text }) => x - widthOf(text) / 2 >= first && x + widthOf(text) / 2 <= chart.width);
      if (inside.length && isClear(inside)) return inside;
    }
  }
  return [];
}

/** Whether labels leave room between them. */
function isClear(labels) {
  return d3.pairs(labels).every(([one, next]) => next.x - one.x >= (widthOf(one.text) + widthOf(next.text)) / 2 + LABEL_GAP);
}

/** How instants are written that lie so many milliseconds apart: no finer than they differ. */
function formatOf(step, dates) {
  const write = book.isLocal ? d3.timeFormat : d3.utcFormat;
  const [first, last] = dates.domain();
  const day = d3.utcFormat("%Y-%m-%d");
  const date = last - first > 3 * 86400000 || (step < 86400000 && day(first) !== day(last)) ? "%e %b " : "";
  if (step >= 28 * 86400000) return write(step >= 360 * 86400000 ? "%Y" : "%b %Y");
  if (step >= 86400000) return write("%e %b");
  const midnight = write(date ? "%e %b" : "%H:%M");
  const time = write(step < 1000 ? "%H:%M:%S.%L" : step < 60000 ? "%H:%M:%S" : "%H:%M");
  const isMidnight = write("%H:%M:%S.%L");
  const digits = step < 1000 ? 3 - Math.min(2, Math.floor(Math.log10(Math.max(1, step)))) : 0;
  return (at) => (step >= 60000 && isMidnight(at) === "00:00:00.000" ? midnight(at) : digits ? time(at).slice(0, 9 + digits) : time(at));
}

function paintAxis() {
  const [from, until] = chart.scale.domain();
  const [left, right] = chart.scale.range();
  const domain = [from, until].map((at) => new Date((book.base + at) / 1000));
  const dates = (book.isLocal ? d3.scaleTime : d3.scaleUtc)(domain, [left, right]);
  // On a narrow page the date has a line of its own.
  const bottom = chart.isNarrow ? 39 : 23;
  const today = `${dateOf(Math.max(from, book.from))}, ${zoneName()}`;
  const labels = axisLabels(dates, left, right, chart.isNarrow ? 0 : 12 + widthOf(today) + LABEL_GAP);
  const texts = new Map(labels.map(({ date, text }) => [Number(date), text]));
  const ticks = d3.axisTop(dates).tickValues(labels.map(({ date }) => date)).tickFormat((date) => texts.get(Number(date)));
  const day = make("text", { class: "day", x: 12, y: 15 }, today);
  const svg = element("axis");
  put(svg, { width: chart.width, height: bottom + 1 });
  svg.replaceChildren(make("g", { transform: `translate(0,${bottom})` }), day);
  d3.select(svg.firstChild).call(ticks.tickSizeOuter(0));
}

/** Say which lanes are in view, and what is below. */
function paintBelow() {
  const { scrollTop, clientHeight } = viewport;
  const first = Math.max(0, d3.bisectRight(view.tops, scrollTop + 2) - 1);
  const last = Math.min(view.lanes.length, Math.max(first + 1, d3.bisectRight(view.tops, scrollTop + clientHeight + 2) - 1));
  const below = view.lanes.slice(last);
  element("below").hidden = view.lanes.length === 0 || (first === 0 && !below.length);
  const bad = below.filter((lane) => lane.trouble > TROUBLE.warning).length;
  const [from, until, all, more, ill] = [first + 1, last, view.lanes.length, below.length, bad].map((one) => one.toLocaleString("en"));
  const rest = below.length ? `, ${more} more below${bad ? `, ${ill} of them with trouble` : ""}` : "";
  const words = `Leases ${from} to ${until} of ${all}${rest}`;
  put(element("range"), {}, words);
  element("fit").hidden = view.isCompact;
}

function paintCursor() {
  const fixed = view.pointer ?? view.cursor;
  const at = fixed ?? book.ends;
  const line = element("cursor");
  const x = fixed === null ? NaN : chart.scale(fixed);
  line.hidden = !(x >= chart.left && x <= chart.scale.range()[1]);
  line.classList.toggle("fixed", view.pointer === null);
  Object.assign(line.style, { left: `${x}px`, height: `${Math.max(view.tops.at(-1), viewport.clientHeight)}px` });
  for (const row of list.children) paintState(row.querySelector(".state"), row.children[1].items[0], at);
  if (document.activeElement !== input) {
    input.value = instant(at, 3);
    input.setAttribute("aria-invalid", false);
  }
  put(element("reading"), {}, (fixed === null ? "At the end: " : `At ${instant(at, 3)}: `) + describeInstant(at));
}

/** Write beside a lane what is so at an instant. */
function paintState(node, lane, at) {
  const { kind, span, who, note } = stateAt(lane, at);
  const [swatch, words, remark] = node.children;
  put(node, { class: `state ${kind}` });
  put(swatch, { class: span ? `swatch ${span.kind} c${lane.colors.get(span.holder)}` : "" });
  const font = `${note && kind !== "silent" ? "600 " : ""}${view.isCompact ? 11 : 13}px`;
  // Above a bar, the remark stands on the same line.
  const beside = chart.isNarrow && note ? widthOf(note, font) + 10 : 0;
  const room = view.isCompact ? (labelWidth() - 16) * 0.4 - 18 : labelWidth() - 46 - beside;
  put(words, { title: who }, fitText(who, room, true, font));
  put(remark, {}, note);
}

/** What is so at an instant, over all lanes in words: of the lane that was chosen, and of those without a sure leader. */
function describeInstant(at) {
  if (!view.lanes.length) return "no lease matches.";
  if (at < book.from || at > book.ends)
    return `outside of what was read, ${instant(book.from)} to ${instant(book.ends)}.`;
  const states = view.lanes.map((lane) => ({ ...stateAt(lane, at), isChosen: lane === view.active?.lane }));
  const others = states.filter((state) => state.kind !== "held");
  const number = (kind, words) => {
    const some = others.filter((state) => state.kind === kind).length;
    return some ? `, ${some.toLocaleString("en")} ${some === 1 ? words[0] : words[1]}` : "";
  };
  const worst = d3.sort(others, (state) => RANK.indexOf(state.kind));
  const named = [...new Set([...states.filter((state) => state.isChosen), ...(states.length > MAX_READ ? worst : states)])];
  const sentences = named.slice(0, MAX_READ).map((state) => `${state.words}.`);
  if (named.length > MAX_READ) sentences.push(`And ${named.length - MAX_READ} more.`);
  const rest = number("frozen", ["is frozen", "are frozen"]) + number("never-held", ["was never held", "were never held"]);
  const [led, all] = [states.length - others.length, states.length].map((one) => one.toLocaleString("en"));
  return `${led} of ${all} leases have a leader${rest}. ${sentences.join(" ")}`;
}

/** Fix the cursor at an instant, null frees it. */
function fixCursor(at) {
  view.cursor = at;
  refuse("");
  repaintCursor();
}

/** Say that what was typed is not an instant; "" takes that back. */
function refuse(typed) {
  input.setAttribute("aria-invalid", Boolean(typed));
  put(element("refused"), {}, typed && `"${typed.trim().slice(0, 40)}" is not a time. Write it as ${instant(book.from)}`);
}

/** Take what was typed as an instant. */
function takeTyped() {
  const { value } = input;
  if (!value.trim()) return fixCursor(null);
  const at = typedInstant(value, view.cursor ?? d3.mean(chart.scale.domain()));
  if (Number.isNaN(at)) return refuse(value);
  view.pointer = null;
  fixCursor(at);
  return reveal(at);
}

function clampToRange(at) {
  return Math.min(Math.max(at, book.from), book.ends);
}

viewport.addEventListener("pointermove", (event) => {
  const [x] = d3.pointer(event, list);
  const [left, right] = chart.scale.range();
  view.pointer = x >= left && x <= right ? clampToRange(chart.scale.invert(x)) : null;
  repaintCursor();
});
viewport.addEventListener("pointerleave", () => {
  view.pointer = null;
  repaintCursor();
});
input.addEventListener("change", takeTyped);
input.addEventListener("input", () => refuse(""));
input.addEventListener("keydown", (event) => event.key === "Enter" && takeTyped());
