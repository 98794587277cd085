/** What every page with a bus shows, and what those who drive it wait for. */
import type { Bus } from "motet";
import type { Accepted, PageEntry } from "./checker.ts";
import { until, type Tab } from "./driver/index.ts";

/** What such a page offers to `Tab.evaluate`, beside what is its own. */
export interface BusPage {
  readonly ready?: true;
  readonly bus: Bus;
  readonly log: readonly PageEntry[];
}

declare global {
  var busPage: BusPage;
}

const READY_WITHIN_MS = 15_000;
const CAUGHT_UP_WITHIN_MS = 15_000;
const RECEIVED_WITHIN_MS = 20_000;

/** Waits until the page has told that it is subscribed to these topics. */
export async function subscribed(tab: Tab, topics: readonly string[]): Promise<void> {
  await tab.waitFor(`is subscribed to ${topics.join() || "nothing"}`, READY_WITHIN_MS, (names: readonly string[]) => {
    if (globalThis.busPage?.ready !== true) return false;
    return names.every((name) => busPage.log.some((entry) => entry.kind === "ready" && entry.channel === name));
  }, topics);
}

/** Waits until the page has received so many more messages than it had. */
export async function moreMessages(tab: Tab, count: number, withinMs = RECEIVED_WITHIN_MS): Promise<void> {
  const had = await tab.evaluate(() => busPage.log.filter((entry) => entry.kind === "message").length);
  await tab.waitFor(`receives ${count} more messages`, withinMs, (least: number) =>
    busPage.log.filter((entry) => entry.kind === "message").length >= least, had + count);
}

/** Waits until the page has the last message of a topic; if it never comes, the checker will say so. */
export async function caughtUp(tab: Tab, topic: string, accepted: readonly Accepted[]): Promise<void> {
  const last = accepted.findLast(({ channel }) => channel === topic);
  if (last === undefined) return;
  const arrived = tab.waitFor(`has the last message of ${topic}`, CAUGHT_UP_WITHIN_MS, (name: string, seq: number) =>
    busPage.log.some((entry) => entry.kind === "message" && entry.channel === name && entry.seq === seq), topic, last.seq);
  await arrived.catch(() => undefined);
}

/** What the page wrote down, of one topic or of all. */
export function entriesOf(tab: Tab, topic?: string): Promise<PageEntry[]> {
  // An argument that is undefined does not reach the page as such.
  return tab.evaluate((name: string | null) =>
    busPage.log.filter((entry) => name === null || entry.channel === name), topic ?? null);
}

/** The tab among these whose node owns a topic. */
export function ownerAmong(topic: string, tabs: readonly Tab[]): Promise<Tab> {
  return oneOf(`owns ${topic}`, tabs, (tab) =>
    tab.evaluate((name: string) => {
      const { self, routes } = busPage.bus.snapshot();
      return routes.some((route) => route.topic === name && route.owner === self.nodeId);
    }, topic),
  );
}

/** The tab among these whose node is coordinator. */
export function coordinatorAmong(tabs: readonly Tab[]): Promise<Tab> {
  return oneOf("is coordinator", tabs, (tab) =>
    tab.evaluate(() => {
      const { self, nodes } = busPage.bus.snapshot();
      return nodes.some((node) => node.nodeId === self.nodeId && node.role === "coordinator");
    }),
  );
}

function oneOf(what: string, tabs: readonly Tab[], accepts: (tab: Tab) => Promise<boolean>): Promise<Tab> {
  return until(`one of the tabs ${what}`, READY_WITHIN_MS, async () => {
    for (const tab of tabs) if (await accepts(tab)) return tab;
    return undefined;
  });
}

/** A payload every `waitMs`, for ever. */
export function* steady(waitMs: number): Generator<{ waitMs: number; payload: object }> {
  for (;;) yield { waitMs, payload: {} };
}
