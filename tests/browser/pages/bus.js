// A page on the bus that does what a test asks and writes down what its handlers saw, for the checker to judge.
import { connect } from "motet";

const now = () => performance.timeOrigin + performance.now();
const parameters = new URLSearchParams(location.search);
const log = [];
const statuses = [];
const errors = [];
const subscriptions = new Map();
const workers = new Set();

const OriginalWorker = globalThis.Worker;
if (OriginalWorker !== undefined) {
  globalThis.Worker = class extends OriginalWorker {
    constructor(...given) {
      super(...given);
      workers.add(this);
    }
  };
}

const told = (error) => ({ code: error?.code ?? null, name: error?.name ?? "", message: String(error?.message ?? error) });

function subscribe(topic, options = {}, key = topic) {
  const subscription = B.bus.subscribe(
    topic,
    (message, meta) => {
      log.push({
        kind: "message",
        channel: topic,
        handler: key,
        seq: message.seq,
        atMs: now(),
        ...(meta.position ? { position: meta.position } : {}),
        ...(meta.replayed ? { replayed: true } : {}),
      });
    },
    {
      ...options,
      onGap: ({ reason, from, to }) => {
        log.push({ kind: "gap", channel: topic, handler: key, atMs: now(), reason, ...(from ? { from } : {}), ...(to ? { to } : {}) });
      },
    },
  );
  subscriptions.set(key, subscription);
  subscription.ready.then(
    (position) => log.push({ kind: "ready", channel: topic, handler: key, atMs: now(), ...(position ? { position } : {}) }),
    (error) => errors.push({ source: "ready", topic, ...told(error) }),
  );
}

const B = {
  log,
  statuses,
  errors,
  bus: undefined,
  subscribe,
  unsubscribe: (key) => subscriptions.get(key)(),
  /** The value, or the typed error as plain data, so that a test can look at either. */
  settle: (promise) => promise.then((value) => ({ ok: true, value }), (error) => ({ ok: false, error: told(error) })),
  killWorker: () => workers.forEach((worker) => worker.terminate()),
  workers: () => workers.size,
  block: (forMs) => {
    const until = performance.now() + forMs;
    while (performance.now() < until);
  },
};
window.B = window.busPage = B;

B.bus = await connect(JSON.parse(parameters.get("connect") ?? "{}"));
B.bus.status.subscribe((status) => statuses.push({ ...status, atMs: now() }));
B.bus.onError((error) => errors.push({ source: error.source, ...told(error.error ?? error) }));
for (const topic of JSON.parse(parameters.get("topics") ?? "[]")) subscribe(topic);
B.ready = true;
