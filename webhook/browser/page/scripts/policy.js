// The editor of a policy file: one text in two views, with the line of an error, presets, and what the schema says.

import { make } from "./dom.js";
import { call } from "./python.js";

const MAX_KEYS = 80;
const shared = { text: "", preset: "", presets: {}, schema: {}, problem: null, editors: [], changed: [] };
let loading = null;

export const policy = () => shared.text;

/** Have the presets and the JSON Schema of policy files, and a policy; without them nothing can be evaluated. */
export function loadPolicy() {
  loading ??= ask().then(begin, (error) => {
    loading = null;
    throw error;
  });
  return loading;
}

async function ask() {
  for (;;) {
    try {
      return await call("start");
    } catch (error) {
      // "Stop" is about the files that are read: the next worker is asked.
      if (!error.isStopped) throw error;
    }
  }
}

/** Begin with what was typed or chosen while Python started, else with the preset that the commands use by default. */
function begin({ presets, schema, default: preset }) {
  Object.assign(shared, { presets, schema, text: shared.text || presets[shared.preset || preset] });
  refresh();
}

function setPolicy(text) {
  Object.assign(shared, { text, problem: null });
  refresh();
  for (const changed of shared.changed) changed();
}

/** Set a preset, also before its text is known. */
export function setPreset(name) {
  shared.preset = name;
  setPolicy(shared.presets[name] ?? "");
}

export function onPolicy(changed) {
  shared.changed.push(changed);
}

/** Show what is wrong with the policy, with its line; null if nothing is. */
export function showProblem(problem) {
  shared.problem = problem;
  refresh();
}

function refresh() {
  for (const editor of shared.editors) editor();
}

/** Return an editor of the policy. */
export function policyEditor(id, rows) {
  const area = make("textarea", { id, class: "code", rows, spellcheck: "false", autocapitalize: "off", "aria-describedby": `${id}-problem` });
  const numbers = make("pre", { class: "numbers", "aria-hidden": "true" });
  const problem = make("p", { class: "note bad", id: `${id}-problem`, role: "status", hidden: true });
  const said = make("p", { class: "muted", id: `${id}-said` });
  const keys = make("div", { class: "keys" });
  const presets = make("div", { class: "row" }, make("label", { for: id, class: "muted" }, "Policy"));
  const number = () => {
    const count = area.value.split("\n").length;
    const line = shared.problem?.line ?? 0;
    const texts = Array.from({ length: count }, (_, index) => (index + 1 === line ? make("b", {}, String(line)) : String(index + 1)));
    numbers.replaceChildren(...texts.flatMap((text) => [text, "\n"]));
    numbers.scrollTop = area.scrollTop;
  };
  const help = () => describe(area, said, keys, insert);
  const insert = (word) => {
    area.setRangeText(word, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input"));
    area.focus();
  };
  area.addEventListener("input", () => {
    setPolicy(area.value);
    help();
  });
  area.addEventListener("scroll", () => (numbers.scrollTop = area.scrollTop));
  for (const name of ["click", "keyup", "focus"]) area.addEventListener(name, help);
  shared.editors.push(() => {
    if (area.value !== shared.text) area.value = shared.text;
    const { problem: found } = shared;
    area.setAttribute("aria-invalid", String(Boolean(found)));
    problem.hidden = !found;
    problem.textContent = found ? [found.line ? `line ${found.line}` : "", found.path, found.problem].filter(Boolean).join(": ") : "";
    if (!presets.querySelector("button"))
      presets.append(...Object.keys(shared.presets).map((name) => make("button", { type: "button", click: () => setPreset(name) }, name)));
    number();
  });
  refresh();
  return make("div", {}, presets, make("div", { class: "editor" }, numbers, area), problem, said, keys);
}

// ---- what the schema says --------------------------------------------------------------------------------------------

/** The keys around the caret, from the outermost one, by the indentation of the lines above. */
function pathAt(text, caret) {
  const lines = text.slice(0, caret).split("\n");
  const last = lines.pop();
  const indentOf = (line) => line.length - line.trimStart().length;
  let limit = last.trim() ? indentOf(last) : Infinity;
  // Blanks belong to one part of these expressions alone: else they take the square of a line's length.
  const own = /^\s*(?:- \s*)?([\w-]+):/.exec(last);
  const path = own ? [own[1]] : [];
  if (!last.trim()) limit = Math.max(indentOf(last), last.length);
  for (const line of lines.reverse()) {
    const key = /^(\s*(?:- \s*)?)([\w-]+):/.exec(line);
    if (!key || line.trim().startsWith("#")) continue;
    const isItem = key[1].includes("-");
    if (key[1].length < limit || (isItem && indentOf(line) < limit)) {
      if (key[1].length < limit) path.unshift(key[2]);
      limit = indentOf(line);
    }
    if (limit === 0) break;
  }
  return path;
}

function resolve(node) {
  const found = node?.$ref ? { ...shared.schema.$defs[node.$ref.split("/").pop()], ...node, $ref: undefined } : node;
  const options = found?.anyOf?.filter((one) => one.type !== "null" && (one.$ref || one.type));
  const inner = options?.length ? { ...resolve(options[0]), ...found, anyOf: undefined } : found;
  return inner?.items && !inner.properties ? { ...inner, properties: resolve(inner.items)?.properties } : inner;
}

function describe(area, said, keys, insert) {
  const path = pathAt(area.value, area.selectionStart);
  let node = resolve(shared.schema);
  let known = [];
  for (const key of path) {
    const next = resolve(node?.properties?.[key]);
    if (!next) break;
    known.push(key);
    node = next;
  }
  if (known.length < path.length - 1) known = [];
  const described = known.length ? `${known.join(".")}: ${node.description ?? "no description"}` : "";
  const words = node?.enum ?? Object.keys(node?.properties ?? {});
  said.textContent = described || "Keys of a policy file:";
  const isValue = Boolean(node?.enum);
  const buttons = words.slice(0, MAX_KEYS).map((word) => make("button", { type: "button", title: resolve(node?.properties?.[word])?.description ?? null, click: () => insert(isValue ? String(word) : `${word}: `) }, String(word)));
  keys.replaceChildren(...buttons);
}
