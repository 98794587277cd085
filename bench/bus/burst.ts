/** As many messages as the tabs can take. */
import { subscribed } from "@motet/browser-tests/bus-page";
import { percentile, type PageEntry, type PageLog } from "@motet/browser-tests/checker";
import type { Tab } from "@motet/browser-tests/driver";
import { publishBurst } from "./burst-publisher.ts";
import { figure, REFERENCE, type Figure } from "./figure.ts";
import { median } from "./median.ts";
import type { PlacedGap } from "./page-api.ts";
import type { Plan } from "./plan.ts";
import { faults, Stage, type Faults } from "./stage.ts";

const PAYLOAD_BYTES = 200;
const TABS = 3;
const SINGLE = "single";
const ARRIVED_WITHIN_MS = 20_000;

export async function burst({ burst: { messages, rounds }, samples }: Plan): Promise<Figure[]> {
  await using stage = await Stage.start();
  const tabs: Tab[] = [];
  for (let index = 0; index < TABS; index += 1) tabs.push(await stage.open({ topics: [SINGLE] }));
  await stage.browser.assertSeparateProcesses(tabs);
  const [first] = tabs;
  if (first === undefined) throw new Error("tabs were opened");
  // A hidden page's timers are slow; the pace of the single messages is this page's.
  await first.show();
  const singles = Math.min(samples, 200);
  const beforeMs = percentile(await roundTrips(first, singles), 0.95);
  const rates: number[] = [];
  const found: Faults[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const topic = `burst.${round}`;
    rates.push(await once(stage, tabs, topic, messages));
    found.push(await judged(stage, tabs, topic, messages));
  }
  const afterMs = percentile(await roundTrips(first, singles), 0.95);
  const sum = (name: keyof Faults): number => found.reduce((total, each) => total + each[name], 0);
  const title = `burst of ${messages} x ${PAYLOAD_BYTES} bytes to ${TABS} tabs`;
  return [
    figure(`${title}, slowest tab`, median(rates), "messages/s", {
      atLeast: 80_000,
      peer: { name: REFERENCE, value: 7_400 },
      runs: rates,
    }),
    figure("lost in the bursts", sum("lost"), "messages", { exactly: 0 }),
    figure("repeated in the bursts", sum("repeated"), "messages", { exactly: 0 }),
    figure("not delivered, told by gap events", sum("coveredByGaps"), "messages"),
    figure("single message there and back, p95, after the bursts", afterMs, "ms", {
      peer: { name: "before the bursts", value: beforeMs },
      target: { text: "<= 1.25 x before", met: afterMs <= 1.25 * beforeMs },
    }),
  ];
}

function roundTrips(tab: Tab, count: number): Promise<number[]> {
  return tab.evaluate((topic: string, samples: number) => P.roundTrips(topic, samples, 15), SINGLE, count);
}

/** Messages a second in the slowest tab, from its first delivery to its last. */
async function once(stage: Stage, tabs: readonly Tab[], topic: string, messages: number): Promise<number> {
  for (const tab of tabs) {
    await tab.evaluate((name: string, capacity: number) => P.subscribeLean(name, capacity), topic, messages);
    await subscribed(tab, [topic]);
  }
  await publishBurst(stage.server.websocketUrl, topic, messages, PAYLOAD_BYTES);
  const rates = await Promise.all(tabs.map((tab) => rate(tab, topic, messages)));
  return Math.min(...rates);
}

async function rate(tab: Tab, topic: string, messages: number): Promise<number> {
  const all = tab.waitFor("has the whole burst", ARRIVED_WITHIN_MS, (name: string, last: number) => P.lean(name).lastSeq === last, topic, messages);
  // What is missing then is the checker's to find.
  await all.catch(() => undefined);
  const { count, firstMs, lastMs } = await tab.evaluate((name: string) => P.lean(name), topic);
  return (count * 1_000) / (lastMs - firstMs);
}

async function judged(stage: Stage, tabs: readonly Tab[], topic: string, messages: number): Promise<Faults> {
  const logs: PageLog[] = [];
  for (const tab of tabs) {
    const { lastMs } = await tab.evaluate((name: string) => P.lean(name), topic);
    const seqs = await tab.evaluate((name: string) => P.leanSeqs(name), topic);
    const told = await tab.evaluate((name: string) => P.log.filter(({ channel }) => channel === name), topic);
    const entries = seqs.map((seq): PageEntry => ({ kind: "message", channel: topic, seq, atMs: lastMs }));
    // From the last to the first, so that the places of the others stay right.
    for (const entry of told.toReversed()) {
      if (entry.kind === "gap") console.log(`  ${tab.name}: gap event, ${entry.reason}, ${entry.from?.offset} to ${entry.to?.offset}`);
      entries.splice((entry as PlacedGap).after ?? 0, 0, entry);
    }
    logs.push({ page: tab.name, entries, complete: true });
  }
  return faults(await stage.accepted(topic, messages), logs);
}
