/** What the page itself pays: time of a call, and memory over many subscriptions. */
import { figure, REFERENCE, type Figure } from "./figure.ts";
import { median } from "./median.ts";
import type { Plan } from "./plan.ts";
import { Stage } from "./stage.ts";

const TOPIC = "orders";
const FOREIGN_KEYS = 1_000;
const BATCH = 100;
const BATCHES = 30;
const CYCLE_TOPICS = 100;

export async function mainThread(plan: Plan): Promise<Figure[]> {
  return [...(await publishCost()), ...(await memory(plan))];
}

async function publishCost(): Promise<Figure[]> {
  await using stage = await Stage.start();
  const first = await stage.open({ topics: [TOPIC] });
  const second = await stage.open({ topics: [TOPIC] });
  const owner = await stage.owner(TOPIC, [first, second]);
  const tab = owner === first ? second : first;
  const { perCallUs, storageCalls, refused } = await tab.evaluate(async (topic: string, keys: number, batch: number, batches: number) => {
    for (let index = 0; index < keys; index += 1) localStorage.setItem(`foreign/${index}`, "x".repeat(50));
    let storageCalls = 0;
    for (const method of ["getItem", "setItem", "removeItem", "key", "clear"] as const) {
      const original = Storage.prototype[method] as (...given: unknown[]) => unknown;
      Object.defineProperty(Storage.prototype, method, {
        value(this: Storage, ...given: unknown[]) {
          storageCalls += 1;
          return original.apply(this, given);
        },
      });
    }
    const open = indexedDB.open.bind(indexedDB);
    Object.defineProperty(indexedDB, "open", {
      value: (name: string) => {
        storageCalls += 1;
        return open(name);
      },
    });
    const perCallUs: number[] = [];
    let seq = 0;
    let refused = 0;
    for (let round = 0; round < batches; round += 1) {
      const calls: Promise<void>[] = [];
      const beganMs = performance.now();
      for (let index = 0; index < batch; index += 1) calls.push(P.bus.publish(topic, { seq: ++seq, text: "an order" }));
      perCallUs.push(((performance.now() - beganMs) * 1_000) / batch);
      const outcomes = await Promise.allSettled(calls);
      refused += outcomes.filter(({ status }) => status === "rejected").length;
    }
    return { perCallUs, storageCalls, refused };
  }, TOPIC, FOREIGN_KEYS, BATCH, BATCHES);
  return [
    figure(`publish() on the main thread, ${FOREIGN_KEYS} foreign localStorage keys`, median(perCallUs), "us", {
      atMost: 20,
      peer: { name: REFERENCE, value: 102_000 },
      runs: perCallUs,
    }),
    figure("storage calls of these publications", storageCalls, "calls", { exactly: 0 }),
    figure("of these publications not acknowledged", refused, "messages", { exactly: 0 }),
  ];
}

interface Footprint {
  readonly heapBytes: number;
  readonly pageWasm: number;
  readonly nodeWasm: number;
}

async function memory({ cycles }: Plan): Promise<Figure[]> {
  await using stage = await Stage.start({
    browser: ["--enable-precise-memory-info", "--js-flags=--expose-gc"],
    connect: { lingerMs: 0 },
  });
  const tab = await stage.open({ topics: [TOPIC], instrument: true });
  const round = (): Promise<void> =>
    tab.evaluate(async (topics: number) => {
      const subscriptions = Array.from({ length: topics }, (_, index) => P.bus.subscribe(`cycle.${index}`, () => undefined));
      await Promise.all(subscriptions.map(({ ready }) => ready));
      for (const end of subscriptions) end();
    }, CYCLE_TOPICS);
  const footprint = (): Promise<Footprint> =>
    tab.evaluate(async () => {
      const page = globalThis as unknown as { gc(): void; performance: { memory: { usedJSHeapSize: number } } };
      const wasm = await P.wasmPages();
      page.gc();
      page.gc();
      return { heapBytes: page.performance.memory.usedJSHeapSize, pageWasm: wasm.page, nodeWasm: wasm.node };
    });
  const rounds = Math.ceil(cycles / CYCLE_TOPICS);
  for (let index = 0; index < Math.ceil(rounds / 5); index += 1) await round();
  const before = await footprint();
  for (let index = 0; index < rounds; index += 1) await round();
  const after = await footprint();
  const title = `${rounds * CYCLE_TOPICS} subscribe/unsubscribe cycles`;
  return [
    figure(`${title}: JavaScript heap`, (after.heapBytes - before.heapBytes) / 1e6, "MB", { atMost: 1 }),
    figure(`${title}: WebAssembly pages of the page`, after.pageWasm - before.pageWasm, "pages", { exactly: 0 }),
    figure(`${title}: WebAssembly pages of the node`, after.nodeWasm - before.nodeWasm, "pages", { exactly: 0 }),
  ];
}
