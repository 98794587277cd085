/* oxlint-disable unicorn/require-post-message-target-origin -- workers, ports and channels, no windows */
// A page on the bus that does what the bench asks and writes down what its handlers saw.
import { answerClock, clockAhead, now } from "./clock.js";

const parameters = new URLSearchParams(location.search);
const name = parameters.get("name") ?? "page";
const instrumented = parameters.has("instrument");
const instrument = instrumented ? await import("./instrument.js") : undefined;
const { connect } = await import("motet");

const log = [];
const leanLogs = new Map();
const waiting = new Map();
const bareArrivals = [];
let bareWorker;

const pause = (forMs) => new Promise((resolve) => { setTimeout(resolve, forMs); });
const positionOf = (position) => (position ? { position } : {});

function subscribe(topic) {
  const subscription = P.bus.subscribe(
    topic,
    (message, meta) => {
      const atMs = now();
      log.push({
        kind: "message",
        channel: topic,
        seq: message.seq,
        atMs,
        ...positionOf(meta.position),
        ...(meta.replayed ? { replayed: true } : {}),
      });
      waiting.get(message.seq)?.(atMs);
    },
    { onGap: ({ reason, from, to }) => log.push({ kind: "gap", channel: topic, atMs: now(), reason, from, ...(to ? { to } : {}) }) },
  );
  subscription.ready.then((position) => log.push({ kind: "ready", channel: topic, atMs: now(), ...positionOf(position) }), () => undefined);
}

function subscribeLean(topic, capacity) {
  const seqs = new Int32Array(capacity);
  const lean = { count: 0, firstMs: 0, lastMs: 0, seqs };
  leanLogs.set(topic, lean);
  const subscription = P.bus.subscribe(
    topic,
    (message) => {
      const atMs = now();
      if (lean.count === 0) lean.firstMs = atMs;
      lean.lastMs = atMs;
      if (lean.count < capacity) seqs[lean.count] = message.seq;
      lean.count += 1;
    },
    {
      onGap: ({ reason, from, to }) => {
        log.push({ kind: "gap", channel: topic, atMs: now(), reason, from, ...(to ? { to } : {}), after: lean.count });
      },
    },
  );
  subscription.ready.then((position) => log.push({ kind: "ready", channel: topic, atMs: now(), ...positionOf(position) }), () => undefined);
}

async function roundTrips(topic, count, waitMs) {
  const trips = [];
  for (let index = 0; index < count; index += 1) {
    const seq = -1 - index;
    const arrived = new Promise((resolve) => { waiting.set(seq, resolve); });
    const sentMs = now();
    P.bus.publish(topic, { seq }).catch(() => undefined);
    trips.push((await arrived) - sentMs);
    waiting.delete(seq);
    await pause(waitMs);
  }
  return trips;
}

async function alternate(topic, count, waitMs) {
  const published = [];
  const posted = [];
  for (let index = 0; index < count; index += 1) {
    published.push(now());
    P.bus.publish(topic, { seq: index + 1, text: "a quote of the size that feeds have, more or less, in one line" }).catch(() => undefined);
    await pause(waitMs);
    posted.push(now());
    bareWorker.postMessage(JSON.stringify({ seq: index + 1, text: "a quote of the size that feeds have, more or less, in one line" }));
    await pause(waitMs);
  }
  return { published, posted };
}

async function startBare(role, url) {
  if (role === "receiver") {
    const down = new BroadcastChannel("bench/bare/down");
    down.onmessage = ({ data }) => { bareArrivals[JSON.parse(data).seq] = now(); };
    return;
  }
  bareWorker = new Worker("bare-worker.js");
  const started = new Promise((resolve) => { bareWorker.onmessage = resolve; });
  bareWorker.postMessage({ role, url });
  await started;
}

async function askWorker(what) {
  const channel = new BroadcastChannel(`bench/worker/${name}`);
  const answered = new Promise((resolve) => {
    channel.addEventListener("message", ({ data }) => data.answer === what && resolve(data.value));
  });
  instrument.quietPost.call(channel, { ask: what });
  const value = await answered;
  channel.close();
  return value;
}

const P = {
  log,
  bus: undefined,
  connectMs: 0,
  now,
  subscribe,
  subscribeLean,
  lean: (topic) => {
    const { count, firstMs, lastMs, seqs } = leanLogs.get(topic);
    return { count, firstMs, lastMs, lastSeq: seqs[Math.min(count, seqs.length) - 1] ?? 0 };
  },
  leanSeqs: (topic) => {
    const { count, seqs } = leanLogs.get(topic);
    return [...seqs.subarray(0, count)];
  },
  roundTrips,
  alternate,
  startBare,
  bareArrivals,
  forgetBareArrivals: () => { bareArrivals.length = 0; },
  clockAhead,
  posts: async () => instrument.counts.posts + (await askWorker("posts")),
  wasmPages: async () => ({ page: instrument.wasmPages(), node: await askWorker("wasmPages") }),
  arrivals: () => askWorker("arrivals"),
  block: (forMs) => {
    const until = performance.now() + forMs;
    while (performance.now() < until);
  },
};
window.P = window.busPage = P;
answerClock(`page:${name}`);

const options = JSON.parse(parameters.get("connect"));
if (instrumented) options.workerUrl = new URL(`bench-worker.js?name=${name}`, location.href).href;
const beganMs = performance.now();
P.bus = await connect(options);
for (const topic of JSON.parse(parameters.get("topics") ?? "[]")) subscribe(topic);
await P.bus.ready();
P.connectMs = performance.now() - beganMs;
P.ready = true;
