// What is open, which view is shown, and the address, which keeps view and lease, never data.

import { fill as fillAudit } from "./audit.js";
import { fill as fillCheck } from "./check.js";
import { element, make } from "./dom.js";
import { call, stop, watch } from "./python.js";
import { isReviewText, show as showReview, start as startReview } from "./review.js";
import { fill as fillTimeline } from "./timeline.js";
import { fill as fillWhy, showAccount } from "./why.js";

const VIEWS = ["why", "audit", "timeline", "check", "review"];
const FILLERS = { audit: fillAudit, timeline: fillTimeline, check: fillCheck };
const MAX_PASTED = 4_000_000;
const state = { view: "why", lease: "", isOpen: false, filled: new Set(), opening: 0 };

// ---- the address ----------------------------------------------------------------------------------------------------

function addressOf(view, lease) {
  return `#${new URLSearchParams(lease ? { view, lease } : { view })}`;
}

/** Go to a view, and to a lease if one is named; the address says both, and Back returns. */
export function go(view, lease = state.lease) {
  const address = addressOf(view, lease);
  if (address !== location.hash) history.pushState(null, "", address);
  take();
}

function take() {
  const told = new URLSearchParams(location.hash.slice(1));
  state.view = VIEWS.includes(told.get("view")) ? told.get("view") : "why";
  state.lease = told.get("lease") ?? "";
  for (const view of VIEWS) {
    element(view).hidden = view !== state.view;
    const tab = element(`tab-${view}`);
    tab.setAttribute("aria-selected", String(view === state.view));
    tab.tabIndex = view === state.view ? 0 : -1;
  }
  fill();
}

// ---- views ----------------------------------------------------------------------------------------------------------

/** Fill the view that is shown from what is open, once; without anything open it says so. */
async function fill() {
  const { view, lease } = state;
  if (view === "review") return;
  if (!state.isOpen) return sayNothingIsOpen(view);
  try {
    if (view === "why") return await showAccount(lease, go);
    const key = view === "timeline" ? "timeline" : view;
    const isFirst = !state.filled.has(key);
    state.filled.add(key);
    await during(FILLERS[view](element(view === "check" ? "checked" : view), { go, lease, isFirst, during, show }));
  } catch (error) {
    state.filled.delete(view);
    show(error);
  }
}

function sayNothingIsOpen(view) {
  const place = element(view === "why" ? "leases" : view === "check" ? "checked" : view);
  const wanted = state.lease ? ` The address names ${state.lease}: open the file again that has it.` : "";
  place.replaceChildren(make("p", { class: "muted" }, `Nothing is open.${wanted}`));
  if (view === "why") element("account").replaceChildren();
}

// ---- what is open ---------------------------------------------------------------------------------------------------

function say(text) {
  element("status").textContent = text;
}

/** Show an error until the next attempt. */
export function show(error) {
  element("error").textContent = error ? error.message : "";
  element("error").hidden = !error;
}

let busy = 0;

/** Show that Python works, while it does so for longer than a moment. */
export async function during(promise) {
  busy += 1;
  const shown = setTimeout(() => (element("busy").hidden = false), 300);
  try {
    return await promise;
  } finally {
    clearTimeout(shown);
    busy -= 1;
    if (!busy) element("busy").hidden = true;
    if (!busy) element("progress").removeAttribute("value");
  }
}

watch.progress = (share) => (element("progress").value = share);
watch.started = () => {
  if (!state.isOpen && !state.opening) say("");
  // Only now, so that what Python needs is not fetched twice at the same time.
  if ("serviceWorker" in navigator) navigator.serviceWorker.register(new URL("../../sw.js", import.meta.url)).catch(() => {});
};

/** Give every file a name that is its own; `-` is standard input to the commands. */
function named(files) {
  const names = new Set();
  return files.map((file) => {
    const plain = (file.webkitRelativePath || file.name).replace(/^-/, "_");
    let path = plain;
    for (let number = 2; names.has(path); number += 1) path = `${number}-${plain}`;
    names.add(path);
    return { path, file };
  });
}

/** Read files: whatever was open before is closed. */
async function open(files) {
  if (!files.length) return;
  show(null);
  state.opening += 1;
  const opening = state.opening;
  const mounted = named(files);
  const total = files.reduce((sum, file) => sum + file.size, 0);
  Object.assign(state, { isOpen: false, filled: new Set() });
  element("recognized").replaceChildren();
  say(`Reading ${files.length === 1 ? mounted[0].path : `${files.length} files`}, ${(total / 1e6).toFixed(1)} MB …`);
  try {
    const found = await during(call("open", { paths: mounted.map(({ path }) => path) }, mounted));
    if (opening !== state.opening) return;
    recognize(found);
    state.isOpen = true;
    if (!found.leases.includes(state.lease)) state.lease = "";
    fillWhy(found, go);
    const isReviews = files.length === 1 && found.recognized[0].kind === "review" && files[0].size < MAX_PASTED;
    if (isReviews) showReview({ object: await files[0].text() });
    go(isReviews ? "review" : state.view === "review" ? "why" : state.view, state.lease);
  } catch (error) {
    if (opening !== state.opening) return;
    say("");
    await recoverAsReview(files, error);
  }
}

/** What shows no lease may still be something to evaluate: a manifest of a candidate, or a broken one. */
async function recoverAsReview(files, error) {
  const text = files.length === 1 && files[0].size < MAX_PASTED && !/\.gz$/.test(files[0].name) ? await files[0].text() : "";
  if (isReviewText(text)) {
    showReview({ object: text });
    go("review", "");
    return;
  }
  fill();
  show(error);
}

function recognize(found) {
  say("");
  const lines = found.recognized.map(({ path, says }) => make("li", {}, make("code", {}, path), `: ${says}`));
  element("recognized").replaceChildren(...lines.slice(0, 12), ...(lines.length > 12 ? [make("li", {}, `and ${lines.length - 12} more`)] : []));
}

/** Read pasted text: as a file, unless it is a review or a manifest, which has a view of its own. */
function paste(text) {
  if (!text.trim()) return;
  element("paste").value = "";
  if (isReviewText(text)) {
    show(null);
    showReview({ object: text });
    go("review", "");
    return;
  }
  open([new File([text], "pasted")]);
}

/** All files of a drop, those of folders too. */
async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((entry) => entry.isDirectory)) return [...transfer.files];
  const files = [];
  const visit = async (entry) => {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      files.push(file);
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) return;
      for (const one of some) await visit(one);
    }
  };
  for (const entry of entries) await visit(entry);
  return files;
}

async function openExample(example) {
  const base = new URL("../examples/", import.meta.url);
  const load = async (name) => new File([await (await fetch(new URL(name, base))).blob()], name.replaceAll("/", "-"));
  if (example.review) {
    show(null);
    showReview({ object: await (await load(example.review)).text(), at: example.at, preset: example.preset });
    go("review", "");
  } else {
    await open(await Promise.all(example.files.map(load)));
  }
}

async function listExamples() {
  const examples = await (await fetch(new URL("../examples/index.json", import.meta.url))).json();
  const groups = Map.groupBy(examples, (example) => example.group);
  for (const [group, some] of groups) {
    const options = some.map((example) => make("option", { value: examples.indexOf(example) }, example.title));
    element("examples").append(make("optgroup", { label: group }, ...options));
  }
  element("examples").addEventListener("change", () => {
    const example = examples[Number(element("examples").value || -1)];
    element("examples").value = "";
    if (example) openExample(example).catch(show);
  });
}

// ---- what people do -------------------------------------------------------------------------------------------------

element("choose").addEventListener("click", () => element("files").click());
element("choose-folder").addEventListener("click", () => element("folder").click());
for (const id of ["files", "folder"])
  element(id).addEventListener("change", () => {
    open([...element(id).files]);
    element(id).value = "";
  });
element("paste").addEventListener("paste", (event) => {
  event.preventDefault();
  const files = [...event.clipboardData.files];
  if (files.length) open(files);
  else paste(event.clipboardData.getData("text"));
});
element("paste").addEventListener("change", () => paste(element("paste").value));
element("stop").addEventListener("click", () => {
  Object.assign(state, { isOpen: false, filled: new Set() });
  state.opening += 1;
  stop();
  say("");
  fill();
});
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", (event) => event.relatedTarget || document.body.classList.remove("dropping"));
addEventListener("drop", async (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  if (event.dataTransfer.items.length) open(await dropped(event.dataTransfer));
});
addEventListener("popstate", take);
for (const view of VIEWS) element(`tab-${view}`).addEventListener("click", () => go(view));
element("tabs").addEventListener("keydown", (event) => {
  const here = VIEWS.indexOf(state.view);
  const number = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: -1 }[event.key];
  if (number === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const next = VIEWS.at(number % VIEWS.length);
  go(next);
  element(`tab-${next}`).focus();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  element(state.view).focus();
});

say("Starting Python …");
listExamples().catch(show);
startReview({ during, show });
take();
