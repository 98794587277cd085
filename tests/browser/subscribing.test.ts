/** Who listens in a page, who is subscribed at the server for it, and what of that outlives what. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { BusFixture, faults, NO_FAULTS, type BusTabOptions } from "./bus-fixture.ts";
import { moreMessages, steady } from "./bus-page.ts";
import { establishedConnections, nowMs, until, type Tab } from "./driver/index.ts";
import { observe, OBSERVABLE_CONFIG, type ForeignObserver } from "./foreign-observer.ts";

const TOPIC = "prices";
const SPACING_MS = 20;
const LINGER_MS = 250;
const NOTICED_WITHIN_MS = 10_000;
/** The publisher's connection and the observer's. */
const FOREIGN_CONNECTIONS = 2;

interface Scene {
  readonly bus: BusFixture;
  readonly tabs: Tab[];
  readonly observer: ForeignObserver;
}

async function scene(t: TestContext, count: number, options: BusTabOptions = {}): Promise<Scene> {
  const bus = await BusFixture.start(t, { server: { config: OBSERVABLE_CONFIG } });
  const observer = await observe(t, bus.server.websocketUrl);
  return { bus, observer, tabs: await bus.openMany(count, options) };
}

/** How many topics each tab's node owns, as the tab itself says. */
const loads = (tabs: readonly Tab[]): Promise<number[]> =>
  Promise.all(tabs.map((tab) => tab.evaluate(() => B.bus.snapshot().owned.length)));

const generation = (tab: Tab, topic: string): Promise<number | undefined> =>
  tab.evaluate((name: string) => B.bus.snapshot().routes.find((row) => row.topic === name)?.generation, topic);

/** The sequence numbers that a page's handler got, in order. */
const received = (tab: Tab, key: string): Promise<number[]> =>
  tab.evaluate((handler: string) => B.log.flatMap((entry) =>
    entry.kind === "message" && entry.handler === handler ? [entry.seq] : []), key);

describe("B1: the handlers of a topic are counted", () => {
  test("B1: the first one subscribes at the server, and the last one's leave follows a linger", async (t) => {
    const { bus, tabs, observer } = await scene(t, 1);
    const [tab] = tabs as [Tab];
    const passages = await observer.watch(TOPIC);
    await tab.evaluate(() => {
      B.subscribe("prices", {}, "first");
      B.subscribe("prices", {}, "second");
    });
    await until("the server has the subscription", NOTICED_WITHIN_MS, () => passages.length > 0);
    await tab.evaluate(() => B.unsubscribe("first"));
    bus.publisher.pace(TOPIC, steady(SPACING_MS));
    await moreMessages(tab, 2 * (LINGER_MS / SPACING_MS));
    assert.deepEqual(passages.map(({ kind }) => kind), ["join"], "a handler is left");
    const leftAtMs = nowMs();
    await tab.evaluate(() => B.unsubscribe("second"));
    const leave = await until("the server loses the subscription", NOTICED_WITHIN_MS, () =>
      passages.find(({ kind }) => kind === "leave"));
    assert.ok(leave.atMs - leftAtMs >= LINGER_MS, `left after ${leave.atMs - leftAtMs} ms`);
    assert.equal(await observer.subscriptions(TOPIC), 0);
    assert.deepEqual(await tab.evaluate(() => B.bus.snapshot().subscribed), []);
  });

  test("B1: handlers that come and go within the linger leave the subscription alone", async (t) => {
    const { bus, tabs, observer } = await scene(t, 1, { topics: [TOPIC] });
    const [tab] = tabs as [Tab];
    const passages = await observer.watch(TOPIC);
    bus.publisher.pace(TOPIC, steady(SPACING_MS));
    await moreMessages(tab, 5);
    await tab.evaluate(async () => {
      for (let round = 0; round < 20; round += 1) {
        B.unsubscribe("prices");
        // Half of the rounds end in the same task, as in StrictMode; half in a later one, as between routes.
        if (round % 2 === 0) await fetch("/away.html");
        B.subscribe("prices");
      }
    });
    await moreMessages(tab, 3 * (LINGER_MS / SPACING_MS));
    assert.deepEqual(passages, [], "the server has noticed nothing");
    const [row] = await tab.evaluate(() => B.bus.snapshot().subscribed);
    assert.equal(row?.handlers, 1);
  });

  test("B1: a message goes to exactly the handlers that were there when its delivery began", async (t) => {
    const { bus, tabs } = await scene(t, 1);
    const [tab] = tabs as [Tab];
    await tab.evaluate(async () => {
      const seen: string[] = [];
      Object.assign(globalThis, { seen });
      const note = (name: string) => (message: unknown) => seen.push(`${name}${(message as { seq: number }).seq}`);
      const subscriptions: (() => void)[] = [];
      const changes = B.bus.subscribe("prices", (message) => {
        note("a")(message);
        if ((message as { seq: number }).seq !== 1) return;
        for (const end of subscriptions) end();
        B.bus.subscribe("prices", note("late"));
        // A handler that replaces itself must not be called for the message that it replaces itself on.
        changes();
        B.bus.subscribe("prices", note("a"));
      });
      subscriptions.push(B.bus.subscribe("prices", note("b")), B.bus.subscribe("prices", note("c")));
      await changes.ready;
    });
    for (let seq = 1; seq <= 3; seq += 1) await bus.publisher.publish(TOPIC);
    const seen = await tab.waitFor("the third message is through", NOTICED_WITHIN_MS, () => {
      const { seen: all } = globalThis as unknown as { seen: string[] };
      return all.includes("a3") && all;
    });
    assert.deepEqual(seen, ["a1", "b1", "c1", "late2", "a2", "late3", "a3"]);
  });

  test("B1: one that always throws costs neither itself nor the others a message", async (t) => {
    const { bus, tabs } = await scene(t, 2, { topics: [TOPIC] });
    const [tab] = tabs as [Tab];
    await tab.evaluate(async () => {
      let thrown = 0;
      Object.assign(globalThis, { thrown: () => thrown });
      const thrower = B.bus.subscribe("prices", () => {
        thrown += 1;
        throw new Error("no");
      });
      B.bus.onError(() => {
        throw new Error("nor here");
      });
      await thrower.ready;
      B.subscribe("prices", {}, "after the thrower");
    });
    bus.publisher.pace(TOPIC, steady(SPACING_MS));
    await moreMessages(tab, 40);
    const { verdicts } = await bus.judge(tabs.slice(1));
    assert.deepEqual(faults(verdicts), NO_FAULTS);
    const [last = 0] = (await received(tabs[1] as Tab, TOPIC)).slice(-1);
    await tab.waitFor("everybody has the last message", NOTICED_WITHIN_MS, (seq: number) =>
      B.log.filter((entry) => entry.kind === "message" && entry.seq === seq).length === 2, last);
    const [before, after] = [await received(tab, TOPIC), await received(tab, "after the thrower")];
    assert.deepEqual(after, before);
    assert.deepEqual(before, before.map((_, index) => (before[0] ?? 0) + index));
    const [thrown, errors] = await tab.evaluate(() => [
      (globalThis as unknown as { thrown(): number }).thrown(),
      B.errors.filter(({ source, code }) => source === "dispatch" && code === "DISPATCH_FAILED").length,
    ] as const);
    assert.deepEqual([thrown, errors], [before.length, before.length], "each is reported");
  });
});

describe("B2: one node of the cluster owns a topic", () => {
  test("B2: so six tabs are one subscription at the server, held by the owner alone", async (t) => {
    const { bus, tabs, observer } = await scene(t, 6, { topics: [TOPIC, "chat"] });
    assert.deepEqual(await Promise.all([TOPIC, "chat"].map((topic) => observer.subscriptions(topic))), [1, 1]);
    for (const topic of [TOPIC, "chat"]) {
      bus.publisher.pace(topic, steady(SPACING_MS));
      const owner = await bus.owner(topic, tabs);
      const holders = await Promise.all(tabs.map((tab) =>
        tab.evaluate((name: string) => B.bus.snapshot().transportSubscribed.includes(name), topic)));
      assert.deepEqual(holders, tabs.map((tab) => tab === owner));
    }
    for (const tab of tabs) await moreMessages(tab, 40);
    assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
    assert.deepEqual(await Promise.all([TOPIC, "chat"].map((topic) => observer.subscriptions(topic))), [1, 1]);
  });

  test("B2: and keeps it while tabs and topics come and go", async (t) => {
    const { bus, tabs, observer } = await scene(t, 2, { topics: [TOPIC] });
    const owner = await bus.owner(TOPIC, tabs);
    const before = await generation(owner, TOPIC);
    const passages = await observer.watch(TOPIC);
    bus.publisher.pace(TOPIC, steady(SPACING_MS));
    const newcomers = await bus.openMany(3, { topics: [TOPIC, "chat", "news"] });
    for (const tab of [...tabs, ...newcomers]) if (tab !== owner) await tab.evaluate(() => B.bus.close());
    await owner.waitFor("is alone", NOTICED_WITHIN_MS, () => B.bus.snapshot().nodes.length === 1);
    await moreMessages(owner, 20);
    assert.deepEqual(passages, [], "the server has seen nobody come or go");
    assert.equal(await generation(owner, TOPIC), before);
    assert.deepEqual(faults((await bus.judge([owner])).verdicts), NO_FAULTS);
  });

  test("B2: topics spread evenly over three nodes, again after one of them has died", async (t) => {
    const topics = Array.from({ length: 9 }, (_, index) => `topic.${index}`);
    const { bus, tabs, observer } = await scene(t, 5);
    // A visible page's node goes before all others: with none they are equals.
    await tabs[0]?.hide();
    for (const tab of tabs) await tab.waitFor("knows that all are hidden", NOTICED_WITHIN_MS, (count: number) => {
      const { nodes } = B.bus.snapshot();
      return nodes.length === count && nodes.every(({ visibility }) => visibility === "hidden");
    }, tabs.length);
    for (const tab of tabs) await tab.evaluate((names: string[]) => names.forEach((name) => B.subscribe(name)), topics);
    const spread = (left: readonly Tab[]): Promise<number[]> =>
      until("every topic has an owner that is subscribed", NOTICED_WITHIN_MS, async () => {
        const held = await Promise.all(left.map((tab) => tab.evaluate(() => B.bus.snapshot().transportSubscribed.length)));
        return held.reduce((sum, one) => sum + one, 0) === topics.length && loads(left);
      });
    const before = await spread(tabs);
    assert.deepEqual(before.toSorted((a, b) => b - a), [3, 3, 3, 0, 0]);
    assert.equal(establishedConnections(bus.server.port) - FOREIGN_CONNECTIONS, 3);
    const dies = tabs[before.findIndex((load) => load > 0)] as Tab;
    const left = tabs.filter((tab) => tab !== dies);
    await dies.kill();
    assert.deepEqual((await spread(left)).toSorted((a, b) => b - a), [3, 3, 3, 0]);
    for (const topic of topics) {
      await until(`${topic} is one subscription`, NOTICED_WITHIN_MS, async () => (await observer.subscriptions(topic)) === 1);
    }
    assert.equal(establishedConnections(bus.server.port) - FOREIGN_CONNECTIONS, 3);
  });
});

test("B31: a lost connection ends the server subscription and nothing else", async (t) => {
  const { bus, tabs, observer } = await scene(t, 2, { topics: [TOPIC] });
  const owner = await bus.owner(TOPIC, tabs);
  const lifetimes = (): Promise<object> =>
    owner.evaluate(() => {
      const { subscribed, owned, transportSubscribed, known } = B.bus.snapshot();
      return { handlers: subscribed.map(({ handlers }) => handlers), owned, transportSubscribed, known };
    });
  const standing = { handlers: [1], owned: [TOPIC], transportSubscribed: [TOPIC], known: [TOPIC] };
  assert.deepEqual(await lifetimes(), standing);
  const before = await generation(owner, TOPIC);
  await bus.server.kill();
  await until("the server subscription is gone", NOTICED_WITHIN_MS, async () =>
    (await owner.evaluate(() => B.bus.snapshot().transportSubscribed.length)) === 0);
  assert.deepEqual(await lifetimes(), { ...standing, transportSubscribed: [] });
  await bus.server.restart();
  await bus.publisher.connected();
  await until("the server subscription stands again", 40_000, async () => (await observer.subscriptions(TOPIC)) === 1);
  await until("the page knows it", NOTICED_WITHIN_MS, async () =>
    (await owner.evaluate(() => B.bus.snapshot().transportSubscribed.length)) === 1);
  assert.deepEqual(await lifetimes(), standing);
  assert.equal(await generation(owner, TOPIC), before, "nobody has decided anything anew");
  bus.publisher.pace(TOPIC, steady(SPACING_MS));
  await moreMessages(owner, 10);
});

test("B31: the intent of a page outlives its node", async (t) => {
  const { bus, tabs, observer } = await scene(t, 1, { topics: [TOPIC] });
  const [tab] = tabs as [Tab];
  const node = (): Promise<string | undefined> => tab.evaluate(() => B.bus.snapshot().self.nodeId);
  const first = await node();
  await tab.evaluate(() => B.killWorker());
  await until("another node owns the topic", NOTICED_WITHIN_MS, async () => {
    const owned = await tab.evaluate(() => B.bus.snapshot().owned.length);
    return (await node()) !== first && owned === 1 && (await observer.subscriptions(TOPIC)) === 1;
  });
  bus.publisher.pace(TOPIC, steady(SPACING_MS));
  await moreMessages(tab, 10);
  assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
});
