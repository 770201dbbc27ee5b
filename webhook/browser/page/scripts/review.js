// One write before a policy: a review, or a manifest with its stored object and its writer.

import { badge, copier, element, make, table } from "./dom.js";
import { loadPolicy, onPolicy, policy, policyEditor, setPreset, showProblem } from "./policy.js";
import { call } from "./python.js";
import { showRule } from "./rule.js";

const FIELDS = ["object", "old", "user", "groups", "at"];
const KINDS = /\bkind["']?\s{0,9}:\s{0,9}["']?(AdmissionReview|Lease|LeaseCandidate)\b/;
const MANY = /"kind"\s*:\s*"Event"|\bkind["']?\s{0,9}:\s{0,9}["']?(LeaseList|List)\b|"type"\s*:\s*"(ADDED|MODIFIED|DELETED)"/;
let page = null;
let asked = 0;

/** Return whether a text is a review or a manifest, and neither a log, a watch nor a list. */
export const isReviewText = (text) => KINDS.test(text) && !MANY.test(text);

/** Put a text into the view, and what else is known of it. */
export function show({ object, at = "", preset = "" }) {
  Object.assign(element("object"), { value: object });
  for (const id of ["old", "user", "groups"]) element(id).value = "";
  element("at").value = at;
  element("of-manifest").open = !/AdmissionReview/.test(object);
  if (preset) setPreset(preset);
  evaluate();
}

/** Begin: with an editor, and a policy in it when Python is there. */
export function start(given) {
  page = given;
  element("policy-of-review").append(policyEditor("review-policy", 14));
  loadPolicy().catch(page.show);
  evaluate();
}

let waiting = 0;
const soon = () => {
  clearTimeout(waiting);
  waiting = setTimeout(evaluate, 300);
};
for (const id of FIELDS) element(id).addEventListener("input", soon);
onPolicy(soon);

async function evaluate() {
  const text = element("object").value;
  const place = element("verdicts");
  asked += 1;
  const number = asked;
  if (!text.trim()) {
    place.replaceChildren(make("p", { class: "muted" }, "Paste a review or a manifest, or choose an example above."));
    return;
  }
  const groups = element("groups").value.split(",").map((group) => group.trim()).filter(Boolean);
  const given = { text, old: element("old").value, user: element("user").value.trim(), groups, now: element("at").value.trim() };
  try {
    const found = await page.during(loadPolicy().then(() => call("review", { ...given, policy: policy() })));
    if (number !== asked) return;
    showProblem(null);
    place.replaceChildren(...found.map(verdict));
  } catch (error) {
    if (number !== asked) return;
    showProblem(error.problem ?? null);
    const said = error.problem ? "The policy is refused: nothing is evaluated." : error.message;
    place.replaceChildren(make("p", { class: error.problem ? "muted" : "note bad" }, said));
  }
}

const rule = (id) => make("button", { type: "button", class: "link", click: () => showRule(id) }, id);

function verdict(one) {
  if (one.error) return make("div", { class: "card error" }, make("p", { class: "head" }, badge("unreadable")), make("p", {}, one.error));
  const rows = one.findings.map((finding) => [rule(finding.rule), badge(finding.mode), make("span", { class: "field" }, `${finding.field}${finding.line > 1 ? `, line ${finding.line}` : ""}`), [finding.detail, make("p", { class: "muted" }, `How to fix: ${finding.fix}`)]]);
  const unknown = one.unknownFields.map((field) => make("p", { class: "warning" }, `${field.line ? `line ${field.line}: ` : ""}${field.message}`));
  const who = one.user ? `by ${one.user}` : "its writer is not known: rules about the writer are not evaluated";
  return make("div", { class: `card ${one.verdict}` },
    make("p", { class: "head headline" }, badge(one.verdict), make("strong", {}, one.subject), make("span", { class: "muted" }, who)),
    ...(one.kubectl ? [make("h3", {}, "What kubectl prints"), make("div", { class: "command" }, make("pre", {}, one.kubectl), copier(one.kubectl))] : []),
    ...unknown,
    ...(rows.length ? [make("h3", {}, "What the rules found"), table(["rule", "mode", "field", "finding"], rows)] : [make("p", { class: "muted" }, "No rule found anything.")]),
    make("p", { class: "row" }, copier(one.review, "Copy as a fixture"), copier(curl(one.review), "Copy as curl")),
    make("details", {}, make("summary", {}, "The answer to the API server"), make("pre", {}, one.response)));
}

/** The review as a request to the webhook of `make run`; the body is one line, so nothing in it ends the text early. */
function curl(review) {
  return `curl -s --cacert certs/ca.crt -H 'Content-Type: application/json' --data-binary @- https://127.0.0.1:8443/validate <<'REVIEW'\n${review}\nREVIEW\n`;
}
