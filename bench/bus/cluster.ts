/** What a cluster of tabs costs, and how soon a tab is part of it. */
import { caughtUp, moreMessages, steady } from "@motet/browser-tests/bus-page";
import { establishedConnections, type Tab } from "@motet/browser-tests/driver";
import { figure, REFERENCE, type Figure } from "./figure.ts";
import { median } from "./median.ts";
import type { Plan } from "./plan.ts";
import { faults, logOf, PUBLISHERS, Stage } from "./stage.ts";

const TOPIC = "prices";
const CONNECTION_TABS = 6;
const CONNECTION_TOPICS = 12;
/** Joining is over by then; what is counted after it is an idle cluster. */
const SETTLED_AFTER_MS = 3_000;

export async function cluster(plan: Plan): Promise<Figure[]> {
  return [
    ...(await connections()),
    ...(await secondTab(plan)),
    ...(await backForward(plan)),
    ...(await quiet(plan)),
  ];
}

async function connections(): Promise<Figure[]> {
  const count = async (host: "dedicated" | "shared"): Promise<number> => {
    await using stage = await Stage.start({ connect: { host } });
    const topics = Array.from({ length: CONNECTION_TOPICS }, (_, index) => `topic.${index}`);
    for (let index = 0; index < CONNECTION_TABS; index += 1) await stage.open({ topics });
    return establishedConnections(stage.server.port) - PUBLISHERS;
  };
  const title = `connections of ${CONNECTION_TABS} tabs with ${CONNECTION_TOPICS} topics`;
  const peer = { name: REFERENCE, value: 6 };
  return [
    figure(title, await count("dedicated"), "connections", { atMost: 3, peer }),
    figure(`${title}, shared mode`, await count("shared"), "connections", { exactly: 1, peer }),
  ];
}

async function secondTab({ slowRuns }: Plan): Promise<Figure[]> {
  await using stage = await Stage.start();
  await stage.open({ topics: [TOPIC] });
  const runs: number[] = [];
  for (let index = 0; index < slowRuns; index += 1) {
    const tab = await stage.open();
    runs.push(await tab.evaluate(() => P.connectMs));
    await tab.close();
  }
  return [figure("second tab: connect to ready", median(runs), "ms", { atMost: 150, runs })];
}

async function backForward({ slowRuns }: Plan): Promise<Figure[]> {
  await using stage = await Stage.start();
  await stage.open({ topics: [TOPIC] });
  const tab = await stage.open({ topics: [TOPIC] });
  const stream = stage.publisher.pace(TOPIC, steady(20));
  await moreMessages(tab, 20);
  const shownMs: number[] = [];
  for (let index = 0; index < slowRuns; index += 1) {
    await tab.leave(stage.site.url("/away.html"));
    await absence();
    const { persisted, reasons } = await tab.back();
    if (!persisted) throw new Error(`the page was not restored from the back/forward cache: ${reasons.join()}`);
    const shown = (await tab.lifecycle()).findLast(({ type }) => type === "pageshow");
    shownMs.push(shown?.atMs ?? Number.NaN);
    await moreMessages(tab, 30);
  }
  await stream.stop();
  const accepted = await stage.accepted(TOPIC);
  await caughtUp(tab, TOPIC, accepted);
  const log = await logOf(tab, TOPIC, true);
  const runs = shownMs.map((atMs) => {
    const newest = accepted.findLast((publication) => publication.atMs <= atMs);
    const delivered = log.entries.find((entry) => entry.kind === "message" && entry.seq === newest?.seq);
    return Math.max(0, (delivered?.atMs ?? Number.NaN) - atMs);
  });
  const { lost, repeated, gaps } = faults(accepted, [log]);
  return [
    figure("pageshow to caught up", median(runs), "ms", { atMost: 250, runs }),
    figure("lost over the back/forward cache", lost, "messages", { exactly: 0 }),
    figure("repeated over the back/forward cache", repeated, "messages", { exactly: 0 }),
    figure("gap events over the back/forward cache", gaps, "events"),
  ];
}

/** The page is away while messages flow: what it has to catch up with. */
function absence(): Promise<void> {
  return pause(500);
}

async function quiet({ idleTabs, idleForMs }: Plan): Promise<Figure[]> {
  await using stage = await Stage.start();
  const tabs: Tab[] = [];
  for (let index = 0; index < idleTabs; index += 1) tabs.push(await stage.open({ topics: [TOPIC], instrument: true }));
  await pause(SETTLED_AFTER_MS);
  const posts = async (): Promise<number> => {
    const counts = await Promise.all(tabs.map((tab) => tab.evaluate(() => P.posts())));
    return counts.reduce((sum, count) => sum + count, 0);
  };
  const before = await posts();
  const beganMs = performance.now();
  await pause(idleForMs);
  const after = await posts();
  const perSecond = ((after - before) * 1_000) / (performance.now() - beganMs);
  return [figure(`messages a second of ${idleTabs} idle tabs`, perSecond, "1/s", { atMost: 2 })];
}

function pause(forMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, forMs);
  });
}
