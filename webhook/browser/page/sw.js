// Keeps the files of this page, so that it starts without a network. What is opened in the page never comes here.

const VERSION = "$files";
const FILES = $listed;
const PAGE = "./";
// Caches belong to the origin, which other sites may share, and other copies of this page.
const OWN = `lease-webhook ${registration.scope} `;
const CACHE = OWN + VERSION;
const isPage = ({ pathname }) => [PAGE, `${PAGE}index.html`].some((path) => pathname === new URL(path, location).pathname);
const isOurs = (url) => url.origin === location.origin && url.pathname.startsWith(new URL(`${VERSION}/`, location).pathname);

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll([PAGE, ...FILES])));
});
self.addEventListener("activate", (event) => {
  const forget = async () => {
    for (const name of await caches.keys()) if (name !== CACHE && (name.startsWith(OWN) || await isOfBefore(name))) await caches.delete(name);
    await self.clients.claim();
  };
  event.waitUntil(forget());
});

/** Whether a cache is of a version of this page that gave it no name of its own. */
async function isOfBefore(name) {
  if (!/^v-[0-9a-f]{16}$/.test(name)) return false;
  const requests = await (await caches.open(name)).keys();
  return requests.every(({ url }) => url.startsWith(registration.scope));
}

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  if (isOurs(url)) event.respondWith(kept(request));
  else if (request.mode === "navigate" && isPage(url)) event.respondWith(newest(request));
});

/** A file of this version, which never changes. */
async function kept(request) {
  const cache = await caches.open(CACHE);
  const found = await cache.match(request.url);
  if (found) return found;
  const response = await fetch(request);
  if (response.ok) await cache.put(request.url, response.clone());
  return response;
}

/** The page itself, from the server if it answers. */
async function newest(request) {
  const cache = await caches.open(CACHE);
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
