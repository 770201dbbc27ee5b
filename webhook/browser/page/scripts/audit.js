// What `audit` finds, the worst first; each lease is one click from its history.

import { badge, command, make, notes } from "./dom.js";
import { call } from "./python.js";

const SEVERITIES = ["error", "warning", "info"];
const MAX_SHOWN = 300;
const hidden = new Set(["info"]);

/** Fill the view from what is open, if that has changed. */
export async function fill(place, { go, isFirst }) {
  if (!isFirst) return;
  place.replaceChildren(make("p", { class: "muted" }, "Auditing …"));
  const found = await call("audit");
  draw(place, found, go);
}

function draw(place, found, go) {
  const filters = SEVERITIES.map((severity) => {
    const count = found.findings.filter((one) => one.severity === severity).length;
    const box = make("input", { type: "checkbox", checked: !hidden.has(severity) });
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(severity);
      else hidden.add(severity);
      draw(place, found, go);
    });
    return make("label", {}, box, `${severity} (${count})`);
  });
  const matching = found.findings.filter((one) => !hidden.has(one.severity));
  const cards = matching.slice(0, MAX_SHOWN).map((one) => card(one, go));
  const more = matching.length - cards.length + found.left_out;
  place.replaceChildren(
    make("h2", {}, "What is wrong, the worst first"),
    make("p", {}, found.summary),
    ...notes(found.notes),
    make("div", { class: "row" }, ...filters),
    ...cards,
    ...(cards.length ? [] : [make("p", { class: "muted" }, "No finding matches the filters.")]),
    ...(more > 0 ? [make("p", { class: "muted" }, `${more} more are not shown: leave out what is less severe, or open fewer files.`)] : []),
  );
}

function card(one, go) {
  const subject = one.lease
    ? make("button", { type: "button", class: "link", click: () => go("why", one.lease) }, one.subject)
    : make("span", {}, one.subject);
  const head = make("p", { class: "head" }, badge(one.severity), subject, make("span", { class: "check" }, one.check));
  return make("div", { class: `card ${one.severity}` }, head, make("p", {}, one.message), command(one.fix));
}
