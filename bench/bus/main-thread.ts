/** What the page itself pays: time of a call, and memory over many subscriptions. */
import { figure, REFERENCE, type Figure } from "./figure.ts";
import { median } from "./median.ts";
import type { Plan } from "./plan.ts";
import { Stage } from "./stage.ts";

const TOPIC = "orders";
/** Publications of one topic wait for each other; several topics shorten the wait between two batches. */
const PUBLISH_TOPICS = 20;
const FOREIGN_KEYS = 1_000;
const BATCH = 100;
const BATCHES = 30;
const CYCLE_TOPICS = 100;

export async function mainThread(plan: Plan): Promise<Figure[]> {
  return [...(await publishCost()), ...(await memory(plan))];
}

async function publishCost(): Promise<Figure[]> {
  await using stage = await Stage.start();
  const topics = Array.from({ length: PUBLISH_TOPICS }, (_, index) => `orders.${index}`);
  const first = await stage.open({ topics });
  const second = await stage.open({ topics });
  // The reference pays for publications of a tab that does not own the topic.
  const owner = await stage.owner("orders.0", [first, second]);
  const tab = owner === first ? second : first;
  await tab.evaluate(countStorageCalls, FOREIGN_KEYS);
  const perCallUs: number[] = [];
  const refused = new Map<string, number>();
  for (let round = 0; round < BATCHES; round += 1) {
    const batch = await tab.evaluate(publishBatch, topics, BATCH);
    perCallUs.push(batch.perCallUs);
    for (const code of batch.refused) refused.set(code, (refused.get(code) ?? 0) + 1);
  }
  for (const [code, count] of refused) console.log(`  publications that ended with ${code}: ${count}`);
  const storageCalls = await tab.evaluate(() => (globalThis as { storageCalls?: number }).storageCalls ?? 0);
  return [
    figure(`publish() on the main thread, ${FOREIGN_KEYS} foreign localStorage keys`, median(perCallUs), "us", {
      atMost: 20,
      peer: { name: REFERENCE, value: 102_000 },
      runs: perCallUs,
    }),
    figure("storage calls of these publications", storageCalls, "calls", { exactly: 0 }),
    figure("of these publications not acknowledged", [...refused.values()].reduce((sum, count) => sum + count, 0), "messages", { exactly: 0 }),
  ];
}

/** Runs in the page: fills the storage with keys of others, and counts every call from then on. */
function countStorageCalls(keys: number): void {
  for (let index = 0; index < keys; index += 1) localStorage.setItem(`foreign/${index}`, "x".repeat(50));
  const counter = globalThis as { storageCalls?: number };
  counter.storageCalls = 0;
  const count = (target: object, method: string): void => {
    const original = (target as Record<string, (...given: unknown[]) => unknown>)[method];
    Object.defineProperty(target, method, {
      value(this: unknown, ...given: unknown[]) {
        counter.storageCalls = (counter.storageCalls ?? 0) + 1;
        return original?.apply(this, given);
      },
    });
  };
  for (const method of ["getItem", "setItem", "removeItem", "key", "clear"]) count(Storage.prototype, method);
  count(IDBFactory.prototype, "open");
}

/** Runs in the page: microseconds of each call, and the codes of publications that came to nothing. */
async function publishBatch(topics: readonly string[], count: number): Promise<{ perCallUs: number; refused: string[] }> {
  const calls: Promise<void>[] = [];
  const beganMs = performance.now();
  for (let index = 0; index < count; index += 1) {
    calls.push(P.bus.publish(topics[index % topics.length] ?? "", { seq: index, text: "an order" }));
  }
  const perCallUs = ((performance.now() - beganMs) * 1_000) / count;
  const outcomes = await Promise.allSettled(calls);
  const refused = outcomes.flatMap((outcome) =>
    outcome.status === "rejected" ? [String((outcome.reason as { code?: unknown }).code)] : [],
  );
  return { perCallUs, refused };
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
