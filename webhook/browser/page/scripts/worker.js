// Runs lease-webhook in CPython for WebAssembly. Files are read where they are, piece by piece; none is copied.

import { loadPyodide } from "../pyodide/pyodide.mjs";

const INPUTS = "/inputs";
const here = new URL("..", import.meta.url).href;
const full =
  "Python ended: the memory or the stack of this tab is full, as by a file with too many leases or with values nested " +
  "thousands of levels deep. The command reads it: lease-webhook why --input FILE";
let isMounted = false;

async function start() {
  const packages = fetch(`${here}packages.zip`).then((response) => response.arrayBuffer());
  // No package is loaded by a name: what is used is in packages.zip.
  const lockFileContents = await fetch(`${here}pyodide/pyodide-lock.json`).then((response) => response.json());
  const python = await loadPyodide({ indexURL: `${here}pyodide/`, lockFileContents, fullStdLib: false });
  python.unpackArchive(await packages, "zip", { extractDir: "/packages" });
  let last = 0;
  const progress = (read, size) => {
    const now = Date.now();
    if (now - last < 100) return;
    last = now;
    postMessage({ progress: size ? Math.min(1, read / size) : 0 });
  };
  python.globals.set("progress", progress);
  const answer = python.runPython(`
import sys
sys.path.insert(0, "/packages")
sys.stdin = None
from functools import partial
from webhook.browser.calls import Page, answer
partial(answer, Page(lambda read, size: progress(read, size)))
`);
  postMessage({ started: true });
  return { python, answer };
}

/** Make files readable by Python, in its current folder. */
function mount(python, files) {
  const { FS } = python;
  FS.chdir("/");
  if (isMounted) FS.unmount(INPUTS);
  else FS.mkdir(INPUTS);
  FS.mount(FS.filesystems.WORKERFS, { blobs: files.map(({ path, file }) => ({ name: path, data: file })) }, INPUTS);
  isMounted = true;
  FS.chdir(INPUTS);
}

const ready = start();
ready.catch((error) => postMessage({ failure: error.message.trim().split("\n").at(-1) }));

let last = ready;
onmessage = ({ data }) => {
  last = last.then(async () => {
    const { python, answer } = await ready;
    try {
      if (data.files) mount(python, data.files);
      postMessage({ id: data.id, answer: JSON.parse(answer(data.name, data.given)) });
    } catch (error) {
      // Python itself never raises here, so it is WebAssembly that ended.
      postMessage({ id: data.id, fatal: error instanceof RangeError || python._api?.fatal_error ? full : `Python ended: ${error.message}` });
    }
  });
};
