// Keeps the files of this page, so that it starts without a network. What is opened in the page never comes here.

const VERSION = "$files";
const FILES = $listed;
const PAGE = "./";
const isOurs = (url) => url.origin === location.origin && url.pathname.startsWith(new URL(`${VERSION}/`, location).pathname);

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(caches.open(VERSION).then((cache) => cache.addAll([PAGE, ...FILES])));
});
self.addEventListener("activate", (event) => {
  const forget = async () => {
    for (const name of await caches.keys()) if (name !== VERSION) await caches.delete(name);
    await self.clients.claim();
  };
  event.waitUntil(forget());
});
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  if (isOurs(url)) event.respondWith(kept(request));
  else if (request.mode === "navigate") event.respondWith(newest(request));
});

/** A file of this version, which never changes. */
async function kept(request) {
  const cache = await caches.open(VERSION);
  const found = await cache.match(request.url);
  if (found) return found;
  const response = await fetch(request);
  if (response.ok) await cache.put(request.url, response.clone());
  return response;
}

/** The page itself, from the server if it answers. */
async function newest(request) {
  const cache = await caches.open(VERSION);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(PAGE, response.clone());
    return response;
  } catch (error) {
    const found = await cache.match(PAGE);
    if (found) return found;
    throw error;
  }
}
