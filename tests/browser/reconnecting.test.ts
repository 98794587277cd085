/** B15: what follows when the connection to the server is lost. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { faults, NO_FAULTS } from "./bus-fixture.ts";
import { moreMessages, steady } from "./bus-page.ts";
import { until, type Tab } from "./driver/index.ts";
import { relayedBus, type RelayedBus } from "./relay-fixture.ts";
import type { Command, Connection } from "./relay.ts";

const TOPIC = "prices";
const TOPICS = ["a", "b", "c", "d", "e", "f"] as const;
const SPACING_MS = 20;
const SOON_MS = 15_000;
/** Delays grow from this, doubling, up to 30 s; what is drawn lies between nothing and the bound. */
const FIRST_DELAY_MS_MAX = 100;
/** What a busy machine may add to a delay. */
const SLACK_MS = 5_000;
/** How soon an attempt follows the network's return on a busy machine; the delay that it cuts short is drawn from up to 25 s. */
const AT_ONCE_MS = 3_000;

const subscribes = ({ relay }: RelayedBus): Command[] => relay.commands.filter(({ kind }) => kind === "subscribe");

/** What each connection subscribed, as sorted lists in a sorted list: who it was does not matter. */
function subscribedTogether(commands: readonly Command[]): string[] {
  const connections = [...new Set(commands.map(({ connection }) => connection))];
  const channelsOf = (of: number): string[] =>
    commands.flatMap(({ connection, channel }) => (connection === of && channel !== undefined ? [channel] : []));
  return connections.map((connection) => channelsOf(connection).sort().join()).sort();
}

const recovering = (tab: Tab): Promise<unknown> =>
  tab.waitFor("is recovering", SOON_MS, () => B.bus.status.state === "recovering");
const running = (tab: Tab): Promise<unknown> =>
  tab.waitFor("runs", SOON_MS, () => B.bus.status.state === "running");

const routes = (tab: Tab): Promise<Record<string, string>> =>
  tab.evaluate(() => Object.fromEntries(B.bus.snapshot().routes.map(({ topic, owner, generation }) => [topic, `${owner}/${generation}`])));

/** No two of these were under way at the same time. */
function assertOneAtATime(connections: readonly Connection[]): void {
  for (const [index, { atMs }] of connections.entries()) {
    for (const { closedAtMs } of connections.slice(0, index)) {
      assert.ok(closedAtMs !== undefined && closedAtMs <= atMs, "a second attempt began while the first was under way");
    }
  }
}

describe("B15: after the connections are lost", () => {
  test("B15: each owner subscribes exactly what it owned, nothing moves, and nothing is missed", async (t) => {
    const scene = await relayedBus(t);
    const tabs = await scene.openMany(4, { topics: TOPICS });
    const before = subscribedTogether(subscribes(scene));
    const routesBefore = await routes(tabs[0] as Tab);
    assert.deepEqual(Object.keys(routesBefore).sort(), [...TOPICS]);
    for (const topic of ["a", "b"]) scene.bus.publisher.pace(topic, steady(SPACING_MS));
    for (const tab of tabs) await moreMessages(tab, 20);
    for (const round of [1, 2, 3]) {
      const known = scene.relay.commands.length;
      scene.relay.cut();
      await until(`all topics are subscribed after cut ${round}`, SOON_MS, () => scene.relay.subscriptions().join() === TOPICS.join());
      for (const tab of tabs) await moreMessages(tab, 20);
      const since = scene.relay.commands.slice(known).filter(({ kind }) => kind === "subscribe");
      assert.deepEqual(subscribedTogether(since), before);
    }
    assert.deepEqual(await routes(tabs[0] as Tab), routesBefore);
    assert.deepEqual(faults((await scene.bus.judge(tabs)).verdicts), NO_FAULTS);
  });

  test("B15: what was given up meanwhile is not subscribed again, and what was wanted meanwhile is", async (t) => {
    const scene = await relayedBus(t);
    const tab = await scene.open({ topics: ["kept", "dropped"] });
    scene.relay.refuse(true);
    scene.relay.cut();
    await recovering(tab);
    await tab.evaluate(() => {
      B.unsubscribe("dropped");
      B.subscribe("added");
    });
    await tab.waitFor("gave the topic up", SOON_MS, () => [...B.bus.snapshot().owned].sort().join() === "added,kept");
    scene.relay.refuse(false);
    await until("the others are subscribed", SOON_MS, () => scene.relay.subscriptions().join() === "added,kept");
    assert.equal(subscribes(scene).filter(({ channel }) => channel === "dropped").length, 1);
  });

  test("B15: the server is restarted and its streams begin anew: every tab is told of one gap, and misses nothing else", async (t) => {
    const scene = await relayedBus(t);
    const tabs = await scene.openMany(3, { topics: [TOPIC] });
    scene.bus.publisher.pace(TOPIC, steady(SPACING_MS));
    for (const tab of tabs) await moreMessages(tab, 20);
    await scene.bus.server.stop();
    await scene.bus.server.restart();
    await scene.bus.publisher.connected();
    for (const tab of tabs) await moreMessages(tab, 50);
    const { verdicts } = await scene.bus.judge(tabs);
    assert.deepEqual(faults(verdicts), { ...NO_FAULTS, gaps: tabs.length });
    assert.deepEqual(verdicts.map(({ gaps }) => gaps.length), tabs.map(() => 1));
  });

  test("B15: a clean close by the server is followed by a new connection while topics are owned", async (t) => {
    const scene = await relayedBus(t);
    const tab = await scene.open({ topics: [TOPIC] });
    scene.bus.publisher.pace(TOPIC, steady(SPACING_MS));
    for (const code of [1_000, 3_001, 3_012]) {
      const connections = scene.relay.connections.length;
      scene.relay.dismiss(code, "bye");
      await until(`a connection follows ${code}`, SOON_MS, () => scene.relay.connections.length > connections);
      await moreMessages(tab, 30);
    }
    assert.deepEqual(faults((await scene.bus.judge([tab])).verdicts), NO_FAULTS);
  });
});

describe("B15: attempts to connect", () => {
  test("B15: grow apart within their bounds, one at a time, and begin at once when the network is back", async (t) => {
    const scene = await relayedBus(t);
    const tab = await scene.open({ topics: [TOPIC] });
    const { connections } = scene.relay;
    for (const [round, count] of [8, 3].entries()) {
      scene.relay.refuse(true);
      const from = connections.length;
      scene.relay.cut();
      await until(`${count} attempts`, 60_000, () => connections.length >= from + count);
      const refused = connections.slice(from, from + count);
      for (const [index, { atMs }] of refused.entries()) {
        const beforeMs = connections[from + index - 1]?.closedAtMs ?? 0;
        const boundMs = FIRST_DELAY_MS_MAX * 2 ** index + SLACK_MS;
        assert.ok(atMs - beforeMs <= boundMs, `attempt ${index + 1} came after ${atMs - beforeMs} ms, bound ${boundMs} ms`);
      }
      // Each may be drawn short; together they are not, unless the bound does not grow.
      const tookMs = (refused.at(-1)?.atMs ?? 0) - (connections[from - 1]?.closedAtMs ?? 0);
      assert.ok(round > 0 || tookMs > 2_000, `${count} attempts within ${tookMs} ms`);
      assertOneAtATime(connections);

      scene.relay.refuse(false);
      const known = connections.length;
      const atMs = await tab.evaluate(() => {
        dispatchEvent(new Event("online"));
        return performance.timeOrigin + performance.now();
      });
      await running(tab);
      assert.equal(connections.length, known + 1);
      const delayMs = (connections[known]?.atMs ?? 0) - atMs;
      assert.ok(delayMs < AT_ONCE_MS, `${delayMs} ms after the network was back`);
    }
  });

  test("B15: are never two under way, whatever asks for one", async (t) => {
    const scene = await relayedBus(t);
    scene.relay.rules = { command: () => "hold" };
    const tab = await scene.open();
    await tab.evaluate((topic: string) => B.subscribe(topic), TOPIC);
    const asked = (count: number): Promise<unknown> =>
      until(`${count} connect commands`, SOON_MS, () => scene.relay.commands.filter(({ kind }) => kind === "connect").length === count);
    await asked(1);
    await tab.evaluate(() => {
      for (let index = 0; index < 5; index += 1) dispatchEvent(new Event("online"));
      B.bus.retry();
      B.subscribe("another");
    });
    // The server never answers: the attempt ends at the command's timeout, and the next one begins after it.
    await asked(2);
    assertOneAtATime(scene.relay.connections);
    scene.relay.rules = {};
    scene.relay.release();
    await until("both topics are subscribed", SOON_MS, () => scene.relay.subscriptions().join() === `another,${TOPIC}`);
    assertOneAtATime(scene.relay.connections);
  });
});
