// What a policy denies in the open files, as `check` lists it.

import { badge, element, make, notes, table } from "./dom.js";
import { loadPolicy, onPolicy, policy, policyEditor, showProblem } from "./policy.js";
import { call } from "./python.js";
import { showRule } from "./rule.js";

const MAX_SHOWN = 300;
let context = null;
let last = null;

element("policy-of-check").append(policyEditor("check-policy", 6));

/** Evaluate what is open, unless the same was just evaluated. */
export async function fill(place, given) {
  context = { place, ...given };
  if (given.isFirst) last = null;
  await evaluate();
}

async function evaluate() {
  await loadPolicy();
  const { place, go } = context;
  const asked = JSON.stringify([policy(), element("all-logs").checked]);
  if (asked === last) return;
  last = asked;
  try {
    const found = await call("check", { policy: policy(), all_logs: element("all-logs").checked });
    if (asked !== last) return;
    showProblem(null);
    draw(place, found, go);
  } catch (error) {
    if (asked !== last) return;
    last = null;
    if (!error.problem) throw error;
    showProblem(error.problem);
    place.replaceChildren(make("p", { class: "muted" }, "The policy is refused: nothing is evaluated."));
  }
}

function draw(place, found, go) {
  const head = ["rule", "deny", "warn", "audit"];
  const rules = found.rules.map((one) => [rule(one.rule), ...head.slice(1).map((mode) => String(one[mode] || "-"))]);
  const cards = found.outcomes.slice(0, MAX_SHOWN).map((one) => card(one, go));
  const more = found.outcomes.length - cards.length + found.left_out;
  place.replaceChildren(
    make("h2", {}, found.summary),
    ...notes(found.notes),
    ...(rules.length ? [table(head, rules)] : []),
    ...cards,
    ...(cards.length ? [] : [make("p", { class: "muted" }, "Of the writes that were evaluated, none is denied, and none warned about.")]),
    ...(more > 0 ? [make("p", { class: "muted" }, `${more} more are not shown: open fewer files.`)] : []),
  );
}

const rule = (id) => make("button", { type: "button", class: "link", click: () => showRule(id) }, id);

function card(one, go) {
  if (one.error) return make("div", { class: "card error" }, make("p", { class: "head" }, badge("unreadable"), one.source), make("p", {}, one.error));
  const subject = one.lease ? make("button", { type: "button", class: "link", click: () => go("why", one.lease) }, one.subject) : make("span", {}, one.subject);
  const texts = one.allowed ? one.warnings : [one.message];
  return make("div", { class: `card ${one.verdict}` },
    make("p", { class: "head" }, badge(one.verdict), subject, make("span", { class: "muted" }, [one.user && `by ${one.user}`, one.source].filter(Boolean).join(", "))),
    ...texts.map((text) => make("p", {}, text)),
    make("p", { class: "row" }, ...[...new Set(one.findings.map((finding) => finding.rule))].map(rule)));
}

let waiting = 0;
const again = () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => context && !element("check").hidden && context.during(evaluate()).catch(context.show), 400);
};
onPolicy(again);
element("all-logs").addEventListener("change", again);
