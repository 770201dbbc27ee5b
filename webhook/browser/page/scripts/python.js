// The worker in which Python runs, and calls to it, one after another.

let worker = null;
let number = 0;
let failure = "";
const waiting = new Map();
export const watch = { progress: () => {}, started: () => {} };

/** Begin a worker. It starts from a blob, so that the security policy of this page holds in it, too. */
function begin() {
  const source = `import ${JSON.stringify(new URL("worker.js", import.meta.url).href)};`;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  worker = new Worker(url, { type: "module" });
  worker.onmessage = ({ data }) => {
    if (data.progress !== undefined) return watch.progress(data.progress);
    if (data.started) return watch.started();
    if (data.failure) return fail(data.failure);
    if (data.fatal) return end(data.fatal);
    waiting.get(data.id)?.resolve(data.answer);
    return waiting.delete(data.id);
  };
  worker.onerror = (event) => fail(event.message || "its files cannot be read");
}

function rejectAll(sentence, isStopped = false) {
  for (const { reject } of waiting.values()) reject(Object.assign(new Error(sentence), { isStopped }));
  waiting.clear();
}

/** Python does not start: nothing can be asked. */
function fail(reason) {
  failure = `Python could not be started: ${reason}`;
  rejectAll(failure);
}

/** End the worker, and every call that waits, with a sentence; another worker begins, with nothing open. */
function end(sentence, isStopped = false) {
  worker?.terminate();
  rejectAll(sentence, isStopped);
  begin();
}

/** End what Python does, as people ask for; the errors of the calls that wait have `isStopped`. */
export function stop() {
  end("It was stopped.", true);
}

/** Call Python; rejects with one sentence. A policy that is refused is an error with its `problem`. */
export function call(name, given = {}, files = undefined) {
  if (failure) return Promise.reject(new Error(failure));
  if (!worker) begin();
  return new Promise((resolve, reject) => {
    number += 1;
    waiting.set(number, {
      reject,
      resolve: (answer) => {
        if (answer.problem) reject(Object.assign(new Error(answer.problem.problem), { problem: answer.problem }));
        else if (answer.error !== undefined) reject(new Error(answer.error));
        else resolve(answer.result);
      },
    });
    worker.postMessage({ id: number, name, given: JSON.stringify(given), files });
  });
}
