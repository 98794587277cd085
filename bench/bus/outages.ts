/** How long survivors stand still when an owner goes, and what they miss. */
import { caughtUp, moreMessages, steady } from "@motet/browser-tests/bus-page";
import { outage, percentile } from "@motet/browser-tests/checker";
import { nowMs, type Tab } from "@motet/browser-tests/driver";
import type { HostPreference } from "motet";
import { figure, REFERENCE, type Figure, type Judgement } from "./figure.ts";
import type { Plan } from "./plan.ts";
import { faults, logOf, Stage, type Faults } from "./stage.ts";

const SPACING_MS = 20;
const BALLAST = "ballast";

interface Scenario {
  readonly name: string;
  /** Who it happens to; with a coordinator apart, that one owns another topic. */
  readonly victim: "owner" | "owner and coordinator" | "creator of the SharedWorker";
  /** Makes it happen; resolves with the time of it. */
  readonly act: (tab: Tab) => Promise<number>;
  readonly undo?: (tab: Tab) => Promise<unknown>;
  /** The victim's page lives on and must have missed nothing either. */
  readonly victimLives?: boolean;
  readonly runs: (plan: Plan) => number;
  /** Messages that every survivor has to receive after it: the length of the run. */
  readonly messages: number;
  readonly bounds: readonly Bound[];
  readonly judgeFaults: boolean;
}

interface Bound {
  readonly name: string;
  readonly fraction: number;
  readonly atMostMs?: number;
  readonly peerMs?: number;
}

const fast = (plan: Plan): number => plan.runs;
const slow = (plan: Plan): number => plan.slowRuns;
const p50 = (atMostMs: number, peerMs?: number): Bound => ({ name: "p50", fraction: 0.5, atMostMs, ...peer(peerMs) });
const p99 = (atMostMs: number): Bound => ({ name: "p99", fraction: 0.99, atMostMs });
const worst = (atMostMs?: number, peerMs?: number): Bound => ({
  name: "max",
  fraction: 1,
  ...(atMostMs === undefined ? {} : { atMostMs }),
  ...peer(peerMs),
});
const peer = (peerMs: number | undefined): { peerMs?: number } => (peerMs === undefined ? {} : { peerMs });

const kill = (tab: Tab): Promise<number> => tab.kill();
const crash = (tab: Tab): Promise<number> => tab.crash();
const ends = { runs: fast, messages: 40, judgeFaults: true } as const;

const SCENARIOS: readonly Scenario[] = [
  { ...ends, name: "owner killed (kill -9)", victim: "owner", act: kill, bounds: [p50(60, 10_000), worst(300, 10_200)] },
  { ...ends, name: "owner crashed (Page.crash)", victim: "owner", act: crash, bounds: [p50(60, 10_000), worst(300, 10_200)] },
  { ...ends, name: "owner who is coordinator killed", victim: "owner and coordinator", act: kill, bounds: [p50(100, 10_000), worst(400, 10_200)] },
  { ...ends, name: "owner who is coordinator crashed", victim: "owner and coordinator", act: crash, bounds: [p50(100, 10_000), worst(400, 10_200)] },
  { ...ends, name: "creator of the SharedWorker killed", victim: "creator of the SharedWorker", act: kill, bounds: [p50(150), worst(500)] },
  {
    ...ends,
    name: "owner's bus closed by close()",
    victim: "owner",
    act: async (tab) => {
      const atMs = nowMs();
      await tab.evaluate(() => P.bus.close());
      return atMs;
    },
    bounds: [p50(30, 50), worst()],
  },
  { ...ends, name: "owner's tab closed by its user", victim: "owner", act: (tab) => tab.close(), bounds: [p50(60), p99(150)] },
  {
    ...ends,
    name: "owner's main thread blocked 2 s",
    victim: "owner",
    act: async (tab) => {
      const atMs = nowMs();
      await tab.evaluate(() => P.block(2_000));
      return atMs;
    },
    victimLives: true,
    runs: slow,
    bounds: [p50(60, 2_000), worst(60, 2_000)],
  },
  {
    ...ends,
    name: "owner frozen without an event (SIGSTOP)",
    victim: "owner",
    act: (tab) => tab.stop(),
    undo: (tab) => tab.cont(),
    victimLives: true,
    runs: slow,
    bounds: [worst(4_000)],
  },
  {
    ...ends,
    name: "owner frozen with the freeze event",
    victim: "owner",
    act: (tab) => tab.freeze(),
    undo: (tab) => tab.resume(),
    victimLives: true,
    runs: slow,
    bounds: [worst(300)],
  },
];

export async function outages(plan: Plan): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const scenario of SCENARIOS) {
    const count = scenario.runs(plan);
    console.log(`  ${scenario.name}: ${count} runs`);
    figures.push(...(await measure(scenario, count)));
  }
  return figures;
}

interface Run extends Faults {
  readonly largestGapMs: number;
}

async function measure(scenario: Scenario, count: number): Promise<Figure[]> {
  const host: HostPreference = scenario.victim === "creator of the SharedWorker" ? "shared" : "dedicated";
  await using stage = await Stage.start({ connect: { host } });
  const runs: Run[] = [];
  for (let index = 0; index < count; index += 1) runs.push(await run(stage, scenario, `run.${index}`));
  const gapsMs = runs.map(({ largestGapMs }) => largestGapMs);
  const figures = scenario.bounds.map((bound) =>
    figure(`${scenario.name}: largest gap between deliveries, ${bound.name}`, percentile(gapsMs, bound.fraction), "ms", {
      ...(bound.atMostMs === undefined ? {} : { atMost: bound.atMostMs }),
      ...(bound.peerMs === undefined ? {} : { peer: { name: REFERENCE, value: bound.peerMs } }),
      ...(bound === scenario.bounds[0] ? { runs: gapsMs } : {}),
    }),
  );
  const sum = (name: keyof Faults): number => runs.reduce((total, found) => total + found[name], 0);
  const none: Judgement = scenario.judgeFaults ? { exactly: 0 } : {};
  figures.push(figure(`${scenario.name}: lost`, sum("lost"), "messages", none));
  figures.push(figure(`${scenario.name}: repeated`, sum("repeated"), "messages", none));
  figures.push(figure(`${scenario.name}: gap events`, sum("gaps"), "events", none));
  return figures;
}

async function run(stage: Stage, scenario: Scenario, topic: string): Promise<Run> {
  const tabs = await cast(stage, scenario, topic);
  const stream = stage.publisher.pace(topic, steady(SPACING_MS));
  for (const tab of tabs) await moreMessages(tab, 15);
  const victim = await victimOf(stage, scenario, topic, tabs);
  const survivors = tabs.filter((tab) => tab !== victim);
  // The pid is asked for beforehand: finding it out takes longer than what is measured.
  await victim.rendererPid();
  const before = await logOf(victim, topic, false);
  const atMs = await scenario.act(victim);
  for (const tab of survivors) await moreMessages(tab, scenario.messages);
  const untilMs = nowMs();
  await scenario.undo?.(victim);
  await stream.stop();

  const accepted = await stage.accepted(topic);
  const witnesses = scenario.victimLives === true ? tabs : survivors;
  for (const tab of witnesses) await caughtUp(tab, topic, accepted);
  const logs = await Promise.all(witnesses.map((tab) => logOf(tab, topic, true)));
  const gapsMs = logs
    .filter(({ page }) => page !== victim.name)
    .map((log) => outage(accepted, log, { fromMs: atMs, toMs: Math.min(untilMs, accepted.at(-1)?.atMs ?? untilMs) }).largestGapMs);
  const found = faults(accepted, scenario.victimLives === true ? logs : [...logs, before]);
  for (const { page, entries } of logs) {
    for (const entry of entries) {
      if (entry.kind === "gap") console.log(`    gap event in ${page}, ${page === victim.name ? "the victim" : "a survivor"}: ${entry.reason}, ${entry.from?.offset} to ${entry.to?.offset}`);
    }
  }
  for (const tab of tabs) if (tab.isOpen) await tab.close();
  return { largestGapMs: Math.max(...gapsMs), ...found };
}

/** Three tabs in processes of their own, in a cluster that no earlier run has touched. */
async function cast(stage: Stage, scenario: Scenario, topic: string): Promise<Tab[]> {
  const cluster = topic;
  const apart = scenario.victim === "owner";
  const first = await stage.open({ cluster, topics: [apart ? BALLAST : topic] });
  const second = await stage.open({ cluster, topics: [topic] });
  const third = await stage.open({ cluster, topics: [topic] });
  if (apart) await first.evaluate((name: string) => P.subscribe(name), topic);
  const tabs = [first, second, third];
  await stage.browser.assertSeparateProcesses(tabs);
  return tabs;
}

async function victimOf(stage: Stage, scenario: Scenario, topic: string, tabs: readonly Tab[]): Promise<Tab> {
  const [first] = tabs;
  if (scenario.victim === "creator of the SharedWorker" && first !== undefined) return first;
  const owner = await stage.owner(topic, tabs);
  const coordinator = await stage.coordinator(tabs);
  if ((owner === coordinator) !== (scenario.victim === "owner and coordinator")) {
    throw new Error(`${scenario.name}: ${owner.name} owns the topic, ${coordinator.name} is coordinator`);
  }
  return owner;
}
