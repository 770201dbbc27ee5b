// The leases that are open, and what `why` says of one.

import { badge, command, copier, element, make, notes, table } from "./dom.js";
import { call } from "./python.js";

const MAX_SHOWN = 200;
const EVENTS = "What Events say (clients write them; they are kept for an hour)";
let opened = null;
let chosen = "";

/** Take what was read: a row for each lease, the worst first. */
export function fill(found, go) {
  opened = { ...found, go, search: "", isAll: false };
  list();
}

function list() {
  const { rows, head, leases, severities, go, search, left_out: leftOut } = opened;
  const matches = (row) => row.join(" ").toLowerCase().includes(search.toLowerCase());
  const matching = leases.map((_, number) => number).filter((number) => matches(rows[number]));
  const shown = opened.isAll ? matching : matching.slice(0, MAX_SHOWN);
  const cells = shown.map((number) => {
    const [name, status, ...rest] = rows[number];
    const link = make("button", { type: "button", class: "link", click: () => go("why", leases[number]) }, name);
    const wrong = rest.pop();
    return [link, badge(status), ...rest, wrong === "-" ? "-" : make("span", { class: severities[number] }, wrong)];
  });
  const field = make("input", { type: "search", value: search, "aria-label": "Search leases", placeholder: "search leases" });
  field.addEventListener("input", () => {
    opened.search = field.value;
    list();
    element("leases").querySelector("input").focus();
  });
  field.setSelectionRange(search.length, search.length);
  const more = matching.length - shown.length;
  const all = make("button", { type: "button", click: () => { opened.isAll = true; list(); } }, `Show ${more} more`);
  element("leases").replaceChildren(
    make("h2", {}, sentence(opened.heading)),
    ...notes(opened.notes),
    ...(rows.length > 8 ? [field] : []),
    table(head.map(sentence), cells, (index) => (leases[shown[index]] === chosen ? { class: "chosen" } : {})),
    ...(more > 0 ? [all] : []),
    ...(leftOut ? [make("p", { class: "muted" }, `${leftOut} more are not shown, none of them worse than these: open fewer files.`)] : []),
    make("p", { class: "muted" }, opened.as_of),
  );
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1).toLowerCase();

/** Show what `why` says of a lease; of none, if none is named. */
export async function showAccount(lease, go) {
  const isNew = lease !== chosen;
  chosen = lease;
  list();
  if (!lease) return element("account").replaceChildren();
  const place = element("account");
  const account = await call("account", { lease });
  if (lease !== chosen) return undefined;
  place.replaceChildren(...parts(account, go));
  // What had the focus may be in a view that is no longer shown; the browser takes it away somewhat later.
  const active = document.activeElement;
  const isLost = active === document.body || !active.checkVisibility();
  if (isNew || isLost) place.querySelector("h2").focus({ preventScroll: true });
  if (isNew) place.scrollIntoView({ block: "nearest" });
  return undefined;
}

function lines(title, pairs) {
  if (!pairs.length) return [];
  const items = pairs.flatMap(([label, text]) => [make("dt", {}, label), make("dd", {}, text)]);
  return [title ? make("h3", {}, title) : "", make("dl", {}, ...items)];
}

function* parts(account, go) {
  const { lease, state, headline, facts, events, quoted, findings, advice } = account;
  yield make("h2", { tabindex: "-1" }, account.title, " ", badge(state));
  yield make("p", { class: "headline" }, headline);
  yield make("p", { class: "muted" }, account.as_of);
  yield make("div", { class: "row" },
    make("button", { type: "button", click: () => go("timeline", lease) }, "On the timeline"),
    make("button", { type: "button", click: () => go("why", "") }, "All leases"),
    copier(() => text(account), "Copy as text"));
  const worrying = findings.filter((one) => one.severity !== "info");
  if (worrying.length) yield make("h3", {}, "What is wrong");
  for (const one of worrying) yield finding(one, advice);
  yield make("h3", {}, "What to do");
  yield make("p", {}, advice.sentence);
  if (advice.command) yield command(advice.command);
  yield* lines("What is known", facts);
  yield* lines("What happened", events);
  yield* lines(EVENTS, quoted);
  const infos = findings.filter((one) => one.severity === "info");
  if (infos.length) yield make("h3", {}, "Good to know");
  for (const one of infos) yield finding(one, advice);
}

function finding(one, advice) {
  const head = make("p", { class: "head" }, badge(one.severity), make("span", { class: "check" }, one.check), make("span", { class: "muted" }, one.ends));
  const fix = one.fix && one.fix !== advice?.command ? command(one.fix) : "";
  return make("div", { class: `card ${one.severity}` }, head, make("p", {}, one.message), fix);
}

/** Return all that is shown of a lease as lines for a ticket; a heading has something below it. */
function text({ title, state, headline, as_of: asOf, facts, events, quoted, findings, advice }) {
  const pairs = (all) => all.map(([label, said]) => `${label.padEnd(16)}${said}`);
  const part = (head, rows) => (rows.length ? ["", head, ...rows] : []);
  const told = (one) => [
    `  ${one.severity}  ${one.check}${one.ends ? ` (${one.ends})` : ""}`,
    `    ${one.message}`,
    ...(one.fix && one.fix !== advice.command ? [`    -> ${one.fix}`] : []),
  ];
  const [infos, worrying] = [true, false].map((isInfo) => findings.filter((one) => (one.severity === "info") === isInfo));
  return [
    `${title}  ${state}: ${headline}`,
    asOf,
    ...part("What is wrong", worrying.flatMap(told)),
    ...part("What to do", [`  ${advice.sentence}`, ...(advice.command ? [`    ${advice.command}`] : [])]),
    ...part("What is known", pairs(facts)),
    ...part("What happened", pairs(events)),
    ...part(EVENTS, pairs(quoted)),
    ...part("Good to know", infos.flatMap(told)),
  ].join("\n");
}
