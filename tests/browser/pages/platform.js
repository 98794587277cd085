/* oxlint-disable unicorn/require-post-message-target-origin -- workers, ports and channels, no windows */
// A page that does with locks, channels and workers what a test asks of it, and notes what happened and when.
const now = () => performance.timeOrigin + performance.now();
const events = [];
const note = (what, detail) => events.push({ what, atMs: now(), ...detail });

let worker;
const channels = new Map();

/** Starts the dedicated worker of this page; its notes arrive in `events`. */
function startWorker() {
  worker = new Worker("platform-worker.js");
  worker.onmessage = ({ data }) => events.push(data);
}

function openChannel(name) {
  const channel = new BroadcastChannel(name);
  channel.onmessage = ({ data }) => note("channel", { data });
  channels.set(name, channel);
}

/** Asks for a lock in the page itself; returns a function that takes the request back or releases the lock. */
function pageLock(name, options = {}) {
  const abort = new AbortController();
  let release = () => abort.abort();
  const held = (lock) => {
    note("granted", { lock: lock.name });
    return new Promise((resolve) => {
      release = resolve;
    });
  };
  navigator.locks
    .request(name, { signal: options.steal ? undefined : abort.signal, ...options }, held)
    .catch((error) => note("lost", { lock: name, error: error.name }));
  return () => release();
}

let shared;
function startShared() {
  shared = new SharedWorker("platform-shared.js");
  for (const type of ["error", "close", "messageerror"]) {
    shared.addEventListener(type, () => note(`shared-${type}`));
    shared.port.addEventListener(type, () => note(`port-${type}`));
  }
  shared.port.onmessage = ({ data }) => events.push(data);
}

window.T = {
  events,
  startWorker,
  startShared,
  openChannel,
  pageLock,
  releases: new Map(),
  lock: (name, options) => window.T.releases.set(name, pageLock(name, options)),
  release: (name) => window.T.releases.get(name)(),
  post: (name, data) => channels.get(name).postMessage(data),
  closeChannel: (name) => channels.get(name).close(),
  tell: (message) => worker.postMessage(message),
  tellShared: (message) => shared.port.postMessage(message),
  terminate: () => worker.terminate(),
  onPagehide: (action) => addEventListener("pagehide", action),
  ready: true,
};
