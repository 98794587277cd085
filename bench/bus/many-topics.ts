/** Very many topics in one tab: subscribing, leaving, moving elsewhere. */
import { until, type Tab } from "@motet/browser-tests/driver";
import { figure, REFERENCE, type Figure } from "./figure.ts";
import { median } from "./median.ts";
import type { Plan } from "./plan.ts";
import { Stage } from "./stage.ts";

const ROUNDS = 5;
const MOVED_WITHIN_MS = 30_000;

export async function manyTopics({ topics, slowRuns }: Plan): Promise<Figure[]> {
  await using stage = await Stage.start();
  const readyMs: number[] = [];
  const closeMs: number[] = [];
  const movedMs: number[] = [];
  for (let round = 0; round < Math.min(ROUNDS, slowRuns); round += 1) {
    const cluster = `many.${round}`;
    const first = await stage.open({ cluster });
    readyMs.push(await subscribeAll(first, cluster, topics));
    const second = await stage.open({ cluster });
    await subscribeAll(second, cluster, topics);
    await watchRoutes(second, topics);
    const { fromMs, toMs } = await first.evaluate(async () => {
      const fromMs = P.now();
      await P.bus.close();
      return { fromMs, toMs: P.now() };
    });
    closeMs.push(toMs - fromMs);
    const atMs = await until("all topics are served by the other tab", MOVED_WITHIN_MS, () =>
      second.evaluate(() => (globalThis as { servedAtMs?: number }).servedAtMs),
    );
    movedMs.push(atMs - fromMs);
    await first.close();
    await second.close();
  }
  return [
    figure(`${topics} topics: first subscribe to all ready`, median(readyMs), "ms", {
      atMost: 150,
      peer: { name: REFERENCE, value: 4_500 },
      runs: readyMs,
    }),
    figure(`${topics} topics: close()`, median(closeMs), "ms", {
      atMost: 50,
      peer: { name: REFERENCE, value: 66_000 },
      runs: closeMs,
    }),
    figure(`${topics} topics: close() to all served elsewhere`, median(movedMs), "ms", { atMost: 300, runs: movedMs }),
  ];
}

/** Milliseconds from the first call to the last `ready`. */
function subscribeAll(tab: Tab, prefix: string, count: number): Promise<number> {
  return tab.evaluate(async (name: string, topics: number) => {
    const beganMs = performance.now();
    const ready: Promise<unknown>[] = [];
    for (let index = 0; index < topics; index += 1) {
      ready.push(P.bus.subscribe(`${name}.${index}`, () => undefined).ready);
    }
    await Promise.all(ready);
    return performance.now() - beganMs;
  }, prefix, count);
}

/** From now on the page notes when its own node holds all server subscriptions. */
async function watchRoutes(tab: Tab, count: number): Promise<void> {
  // A hidden page's timers are slow.
  await tab.show();
  await tab.evaluate((topics: number) => {
    const look = setInterval(() => {
      if (P.bus.snapshot().transportSubscribed.length < topics) return;
      (globalThis as { servedAtMs?: number }).servedAtMs = P.now();
      clearInterval(look);
    }, 5);
  }, count);
}
