/** B26: a node that several pages share, when its pages or itself die. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { BusFixture, faults, NO_FAULTS } from "./bus-fixture.ts";
import { moreMessages, steady } from "./bus-page.ts";
import { percentile } from "./checker.ts";
import { until, type Tab } from "./driver/index.ts";
import { accepted, outcome, publishFrom, relayedBus } from "./relay-fixture.ts";

const TOPIC = "prices";
const SPACING_MS = 20;
const SOON_MS = 15_000;
/** How soon the subscriptions of a dead page are dropped. */
const DROPPED_MS = 300;
/** The same for each single one on a busy machine: far below any timeout that could do it instead of a lock. */
const DROPPED_MS_MAX = 1_500;

const nodeIds = (tabs: readonly Tab[]): Promise<(string | undefined)[]> =>
  Promise.all(tabs.map((tab) => tab.evaluate(() => B.bus.snapshot().self.nodeId)));

/** Ends the SharedWorker of `mortal-shared-worker.js`, which all its pages could do. */
const endWorker = (tab: Tab): Promise<void> =>
  tab.evaluate(() => {
    const channel = new BroadcastChannel("mortal");
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel, no window
    channel.postMessage("end");
    channel.close();
  });

describe("B26: a shared node whose page is killed", () => {
  test("B26: drops the page's subscriptions at once, and goes on serving the others", async (t) => {
    const scene = await relayedBus(t, { connect: { host: "shared" } });
    // The first tab's process runs the SharedWorker.
    const first = await scene.open({ topics: [TOPIC] });
    const others: Tab[] = [];
    for (const number of [1, 2, 3, 4, 5]) others.push(await scene.open({ topics: [TOPIC, `mine.${number}`] }));
    await scene.bus.browser.assertSeparateProcesses();
    scene.bus.publisher.pace(TOPIC, steady(SPACING_MS));
    const tookMs: number[] = [];
    for (const [index, tab] of others.entries()) {
      const mine = `mine.${index + 1}`;
      assert.ok(scene.relay.subscriptions().includes(mine));
      const killedMs = await tab.kill();
      await until(`${mine} is given up`, SOON_MS, () => !scene.relay.subscriptions().includes(mine));
      const given = scene.relay.commands.find(({ kind, channel }) => kind === "unsubscribe" && channel === mine);
      tookMs.push((given?.atMs ?? Infinity) - killedMs);
      await moreMessages(first, 5);
    }
    t.diagnostic(`given up after ${tookMs.map(Math.round).join(", ")} ms`);
    assert.ok(percentile(tookMs, 0.5) <= DROPPED_MS, `given up after ${tookMs.join()} ms`);
    assert.ok(percentile(tookMs, 1) <= DROPPED_MS_MAX, `given up after ${tookMs.join()} ms`);
    assert.deepEqual(scene.relay.subscriptions(), [TOPIC]);
    assert.deepEqual(faults((await scene.bus.judge([first])).verdicts), NO_FAULTS);
  });

  test("B26: forgets the page's calls, and other pages' publications to the same topic do not wait for them", async (t) => {
    const scene = await relayedBus(t, { connect: { host: "shared" } });
    const [first, killed] = await scene.openMany(2, { topics: [TOPIC] }) as [Tab, Tab];
    scene.relay.rules = { reply: ({ kind }) => (kind === "publish" ? "hold" : "pass") };
    const lost = publishFrom(killed, TOPIC, 1).catch(() => undefined);
    await accepted(scene.bus, 1);
    await killed.kill();
    scene.relay.rules = {};
    assert.equal(outcome(await publishFrom(first, TOPIC, 2)), "ok");
    scene.relay.release();
    assert.equal(outcome(await publishFrom(first, TOPIC, 3)), "ok");
    await first.waitFor("has all", SOON_MS, () => B.log.filter(({ kind }) => kind === "message").length === 3);
    await lost;
  });
});

describe("B26: a SharedWorker that dies without a word", () => {
  const connect = { host: "shared", sharedWorkerUrl: "/mortal-shared-worker.js" } as const;

  test("B26: is noticed and started again, and takes up what its pages want", async (t) => {
    const scene = await relayedBus(t, { connect });
    const tabs = await scene.openMany(3, { topics: [TOPIC, "chat"] });
    for (const topic of [TOPIC, "chat"]) scene.bus.publisher.pace(topic, steady(SPACING_MS));
    for (const tab of tabs) await moreMessages(tab, 20);
    const before = await nodeIds(tabs);
    assert.equal(new Set(before).size, 1);
    await endWorker(tabs[1] as Tab);
    const after = await until("all pages have one new node", SOON_MS, async () => {
      const ids = await nodeIds(tabs);
      return new Set(ids).size === 1 && ids[0] !== undefined && ids[0] !== before[0] && ids;
    });
    assert.equal(after.length, tabs.length);
    for (const tab of tabs) await moreMessages(tab, 50);
    assert.deepEqual(scene.relay.subscriptions(), ["chat", TOPIC]);
    assert.deepEqual(faults((await scene.bus.judge(tabs)).verdicts), NO_FAULTS);
  });

  test("B26: is started again five times a minute at most, and then the page says that it is degraded", async (t) => {
    const bus = await BusFixture.start(t, { connect });
    const tab = await bus.open({ topics: [TOPIC] });
    for (let ends = 0; ends < 6; ends += 1) {
      const [before] = await nodeIds([tab]);
      await tab.waitFor("runs", SOON_MS, () => B.bus.status.state === "running");
      await endWorker(tab);
      await tab.waitFor("has lost its node", SOON_MS, (id?: string) => B.bus.snapshot().self.nodeId !== id, before);
    }
    await tab.waitFor("is degraded", SOON_MS, () => B.bus.status.state === "degraded");
    const told = await tab.evaluate(() => [B.bus.status.error?.code, B.bus.snapshot().counters["nodeRestarts"]]);
    assert.deepEqual(told, ["NODE_UNAVAILABLE", 5]);
  });
});

test("B26: a SharedWorker that could not load its module serves the page that comes when it can", async (t) => {
  const file = new URL("../../packages/motet/dist/wasm/node/motet_web_bg.wasm", import.meta.url);
  let missing = true;
  const bus = await BusFixture.start(t, {
    connect: { host: "shared", wasmUrl: { node: "/node.wasm" } },
    site: {
      handlers: {
        "/node.wasm": (_, response) => {
          if (missing) response.writeHead(503).end();
          else response.setHeader("content-type", "application/wasm").end(readFileSync(file));
        },
      },
    },
  });
  const first = await bus.open();
  await first.waitFor("is told", SOON_MS, () => B.bus.status.state === "degraded");
  missing = false;
  const second = await bus.open({ topics: [TOPIC] });
  const found = await second.evaluate(() => ({ host: B.bus.status.host, errors: B.errors.length }));
  assert.deepEqual(found.host, { kind: "shared-worker", reason: "wanted: shared" });
  // An attempt of the first page that was under way may fail for both.
  assert.ok(found.errors <= 1, `${found.errors} errors`);
  await first.waitFor(
    "runs in it as well",
    SOON_MS,
    () => B.bus.status.host?.kind === "shared-worker" && B.bus.snapshot().self.nodeId !== undefined,
  );
  const [one, other] = await nodeIds([first, second]);
  assert.equal(one, other);
});
