// The page of `timeline`, in a frame; the lease that is active there and the one of this page lead to each other.

import { make, notes } from "./dom.js";
import { call } from "./python.js";

const SETTLED = 400;
let url = "";
let frame = null;

/** Fill the view from what is open, and show a lease in it. */
export async function fill(place, { go, lease, isFirst }) {
  if (isFirst) {
    place.replaceChildren(make("p", { class: "muted" }, "Drawing …"));
    const found = await call("timeline");
    if (url) URL.revokeObjectURL(url);
    url = URL.createObjectURL(new Blob([found.html], { type: "text/html" }));
    const link = make("button", { type: "button", hidden: true });
    link.addEventListener("click", () => go("why", link.dataset.lease));
    const save = make("a", { href: url, download: "lease-timeline.html" }, "Save this page");
    frame = make("iframe", { title: "Timeline", src: url + hash(lease) });
    frame.addEventListener("load", () => follow(link));
    place.replaceChildren(...notes(found.notes), make("div", { class: "row bar" }, link, save), frame);
  } else if (lease && frame?.contentWindow) {
    frame.contentWindow.location.replace(url + hash(lease));
  }
}

const hash = (lease) => (lease ? `#${new URLSearchParams({ lease })}` : "");

/** Offer what `why` says of the lease that is active in the frame, whose address names it. */
function follow(link) {
  const page = frame.contentWindow;
  const read = () => {
    const lease = new URLSearchParams(page.location.hash.slice(1)).get("lease");
    link.hidden = !lease;
    if (!lease) return;
    link.dataset.lease = lease;
    link.textContent = `Why: ${lease}`;
  };
  for (const name of ["click", "keyup"]) page.addEventListener(name, () => setTimeout(read, SETTLED));
  read();
}
