// Elements are made of text: nothing here takes markup, so no name of a file or a lease becomes any.

export const element = (id) => document.getElementById(id);

/** Return an element with attributes, or properties if a value is a function, and children, which may be text. */
export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null) made.setAttribute(key, String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

/** Return a badge with a word; only words that the style knows are classes. */
export function badge(word) {
  return make("span", { class: `badge ${/^[a-z-]+$/.test(word) ? word : ""}` }, word);
}

/** Return a button that copies a text. */
export function copier(text, label = "Copy") {
  const button = make("button", { type: "button" }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied: the browser does not allow it";
    }
    setTimeout(() => (button.textContent = label), 2000);
  });
  return button;
}

/** Return a command with a button that copies it; a sentence without a command is just text. */
export function command(text) {
  if (!text) return "";
  if (!/\b(kubectl|lease-webhook) /.test(text)) return make("p", {}, text);
  const line = make("div", { class: "command" }, make("pre", {}, text), copier(text));
  return /\blease-webhook (?!#)/.test(text) ? make("div", {}, line, theCommand()) : line;
}

/** Return a line that leads to how to install the command, which no browser has. */
export function theCommand() {
  return make("p", { class: "muted" }, "This needs the command: ", make("a", { href: "#command", click: showTheCommand }, "how to install it"), ".");
}

function showTheCommand(event) {
  // The address is that of the views.
  event.preventDefault();
  element("command").scrollIntoView({ block: "center" });
  element("command").focus({ preventScroll: true });
}

/** Return a table that becomes cards on a narrow screen; `rows` have cells that are text, elements or lists of them. */
export function table(head, rows, labelOf = () => ({})) {
  const cell = (content, column) => make("td", { "data-head": head[column], class: content === "-" ? "empty" : null }, Array.isArray(content) ? make("div", {}, ...content) : content);
  const body = rows.map((cells, number) => make("tr", labelOf(number), ...cells.map(cell)));
  const heads = make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)));
  return make("div", { class: "scroll" }, make("table", { class: "cards" }, make("thead", {}, heads), make("tbody", {}, ...body)));
}

export function notes(texts) {
  return texts.map((text) => make("p", { class: "note" }, text));
}
