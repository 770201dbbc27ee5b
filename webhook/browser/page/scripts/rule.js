// The page of a rule.

import { element, make } from "./dom.js";
import { call } from "./python.js";

/** Show what a rule says, why, and how to fix a write. */
export async function showRule(id) {
  const rule = await call("rule", { name: id });
  const numbers = Object.entries(rule.numbers).map(([name, value]) => `${name}: ${value}`).join(", ");
  const facts = [
    ["On", `${rule.kinds.join(", ")}: ${rule.operations.join(", ")}`],
    ["Mode", Object.entries(rule.modes).map(([preset, mode]) => `${mode} in ${preset}`).join(", ")],
    ["Numbers", numbers],
    ["Fields", rule.fields.join(", ")],
    ["Source", rule.source],
  ].filter(([, text]) => text);
  const dialog = element("rule");
  const close = make("button", { type: "button", click: () => dialog.close() }, "Close");
  dialog.replaceChildren(
    make("h2", { id: "rule-title" }, rule.id),
    make("p", {}, rule.text),
    make("dl", {}, ...facts.flatMap(([label, text]) => [make("dt", {}, label), make("dd", {}, text)])),
    ...[["Why", rule.why], ["Who is affected", rule.who], ["How to fix", rule.fix]].flatMap(([title, text]) => (text ? [make("h3", {}, title), make("p", {}, text)] : [])),
    close,
  );
  dialog.showModal();
}
