/** B29, B30, B32: what a page can see of its bus: routes and their states, the snapshot, errors and the status. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Snapshot } from "motet";
import { BusFixture, faults, NO_FAULTS } from "./bus-fixture.ts";
import { moreMessages, steady, subscribed } from "./bus-page.ts";
import { until, type Tab } from "./driver/index.ts";
import { relayedBus } from "./relay-fixture.ts";

const TOPIC = "prices";
const SPACING_MS = 20;
const SOON_MS = 15_000;

type Route = Snapshot["routes"][number];

/** Waits until the page sees the route in this state. */
const routeIs = (tab: Tab, topic: string, state: Route["state"]): Promise<Route> =>
  tab.waitFor(`sees ${topic} ${state}`, SOON_MS, (name: string, wanted: string) =>
    B.bus.snapshot().routes.find((route) => route.topic === name && route.state === wanted), topic, state) as Promise<Route>;

describe("B29: a route", () => {
  test("B29: is subscribing until the server has confirmed it, and then subscribed since that time, for every tab", async (t) => {
    const { relay, openMany } = await relayedBus(t);
    const tabs = await openMany(2);
    relay.rules = { reply: ({ kind }) => (kind === "subscribe" ? "hold" : "pass") };
    for (const tab of tabs) await tab.evaluate((topic: string) => B.subscribe(topic), TOPIC);
    const before: Route[] = [];
    for (const tab of tabs) before.push(await routeIs(tab, TOPIC, "subscribing"));
    for (const { confirmedAt, error } of before) assert.deepEqual([confirmedAt, error], [undefined, undefined]);
    await until("the server's answer is held", SOON_MS, () => relay.held === 1);
    relay.release();
    for (const [index, tab] of tabs.entries()) {
      const { confirmedAt, updatedAt, generation } = await routeIs(tab, TOPIC, "subscribed");
      assert.equal(confirmedAt, updatedAt);
      assert.ok(updatedAt > (before[index]?.updatedAt ?? Infinity));
      assert.equal(generation, before[index]?.generation);
      await subscribed(tab, [TOPIC]);
    }
  });

  test("B29: that its owner does not acknowledge is assigned, announced again, and then given to another", async (t) => {
    const { bus, relay, open } = await relayedBus(t);
    const tabs: Tab[] = [];
    for (const _ of [1, 2, 3]) {
      const tab = await open();
      await tab.waitFor("runs", SOON_MS, () => B.bus.status.state === "running");
      tabs.push(tab);
    }
    await bus.browser.assertSeparateProcesses();
    const [coordinator, subscriber, chosen] = tabs as [Tab, Tab, Tab];
    assert.equal(await bus.coordinator(tabs), coordinator);
    // The visible tab is preferred, and it says nothing any more.
    await chosen.show();
    await coordinator.waitFor("knows which tab is visible", SOON_MS, () =>
      B.bus.snapshot().nodes.map(({ visibility }) => visibility).join() === "hidden,hidden,visible");
    const silent = await chosen.evaluate(() => B.bus.snapshot().self.nodeId);
    await chosen.stop();
    await subscriber.evaluate((topic: string) => B.subscribe(topic), TOPIC);
    const first = await routeIs(subscriber, TOPIC, "assigned");
    assert.equal(first.owner, silent);
    await subscribed(subscriber, [TOPIC]);
    const second = await routeIs(subscriber, TOPIC, "subscribed");
    assert.notEqual(second.owner, silent);
    assert.ok(second.generation > first.generation);
    const tookMs = (second.confirmedAt ?? 0) - first.updatedAt;
    // Announced at once and three times more, 500 ms apart, before it is taken away.
    assert.ok(tookMs >= 1_500 && tookMs < 5_000, `given to another after ${tookMs} ms`);

    await chosen.cont();
    bus.publisher.pace(TOPIC, steady(SPACING_MS));
    await moreMessages(subscriber, 50);
    assert.deepEqual(relay.subscriptions(), [TOPIC]);
    assert.equal(relay.commands.filter(({ kind }) => kind === "subscribe").length, 1);
    assert.deepEqual(faults((await bus.judge([subscriber])).verdicts), NO_FAULTS);
  });

  test("B29: that the server refuses is failed, and says why to every tab", async (t) => {
    const { relay, openMany } = await relayedBus(t);
    relay.rules = {
      command: ({ kind }) => (kind === "subscribe" ? { error: { code: 103, message: "permission denied" } } : "pass"),
    };
    for (const tab of await openMany(2)) {
      await tab.evaluate((topic: string) => B.subscribe(topic), TOPIC);
      const { error, confirmedAt } = await routeIs(tab, TOPIC, "failed");
      assert.deepEqual([error, confirmedAt], ["SUBSCRIBE_REJECTED", undefined]);
    }
  });
});

describe("B30: the snapshot", () => {
  const FIELDS: Readonly<Record<string, readonly string[]>> = {
    self: ["tabId", "nodeId", "host", "coordination", "epoch"],
    nodes: ["nodeId", "tabId", "role", "status", "visibility", "load", "registeredAt", "lastBeatAgoMs"],
    routes: ["topic", "topicKey", "owner", "generation", "handoffFrom", "state", "confirmedAt", "updatedAt", "subscribers", "position"],
  };

  test("B30: has the promised fields in flat rows, and they say what is so", async (t) => {
    const { bus, openMany } = await relayedBus(t);
    const tabs = await openMany(3, { topics: [TOPIC, "chat"] });
    const owner = await bus.owner(TOPIC, tabs);
    bus.publisher.pace(TOPIC, steady(SPACING_MS));
    for (const tab of tabs) await moreMessages(tab, 5);
    assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
    const found = await owner.evaluate(() => {
      const { self, nodes, routes, ...rest } = B.bus.snapshot();
      const rows = [self, ...nodes, ...routes, ...rest.subscribed, ...rest.pending, rest.counters, rest.queues];
      const nested = rows.flatMap((row) => Object.values(row)).filter((value) => typeof value === "object" && value !== null);
      return { keys: [self, nodes[0], routes[0]].map((row) => Object.keys(row ?? {})), rest: Object.keys(rest), nested };
    });
    for (const [index, fields] of Object.values(FIELDS).entries()) {
      for (const field of fields) assert.ok(found.keys[index]?.includes(field), `${field} is missing`);
    }
    assert.deepEqual(found.rest.sort(), ["counters", "known", "owned", "pending", "queues", "subscribed", "transportSubscribed"]);
    assert.deepEqual(found.nested, []);

    const snapshots = await Promise.all(tabs.map((tab) => tab.evaluate(() => B.bus.snapshot())));
    const own = snapshots[tabs.indexOf(owner)] as Snapshot;
    assert.equal(own.self.host, "worker");
    assert.equal(own.self.coordination, "locks");
    assert.equal(new Set(snapshots.map(({ self }) => self.epoch)).size, 1);
    for (const { self, nodes, routes, subscribed: rows, known } of snapshots) {
      assert.deepEqual(nodes.map(({ nodeId }) => nodeId), own.nodes.map(({ nodeId }) => nodeId));
      assert.equal(nodes.filter(({ role }) => role === "coordinator").length, 1);
      assert.equal(nodes.find(({ nodeId }) => nodeId === self.nodeId)?.tabId, self.tabId);
      assert.deepEqual(nodes.map(({ registeredAt }) => registeredAt), nodes.map(({ registeredAt }) => registeredAt).sort((a, b) => a - b));
      assert.equal(nodes.reduce((sum, { load }) => sum + load, 0), routes.length);
      assert.deepEqual(rows.map(({ topic }) => topic), ["chat", TOPIC]);
      assert.deepEqual([...known].sort(), ["chat", TOPIC]);
      for (const { subscribers, state, topicKey } of routes) assert.deepEqual([subscribers, state, topicKey.length > 0], [3, "subscribed", true]);
    }
    assert.ok(own.owned.includes(TOPIC) && own.transportSubscribed.includes(TOPIC));
    const last = (await bus.server.publicationsUpTo(bus.publisher.acknowledged)).findLast(({ channel }) => channel === TOPIC);
    assert.equal(own.routes.find(({ topic }) => topic === TOPIC)?.position, `${last?.epoch}:${last?.offset}`);
  });

  test("B30: is a copy that reading a thousand times does not change, nor does it post or send anything", async (t) => {
    const { bus, relay, openMany } = await relayedBus(t);
    const tabs = await openMany(2, { topics: [TOPIC] });
    const owner = await bus.owner(TOPIC, tabs);
    await bus.publisher.publish(TOPIC);
    for (const tab of tabs) await tab.waitFor("has the message", SOON_MS, () => B.log.some(({ kind }) => kind === "message"));
    const commands = relay.commands.length;
    const found = await owner.evaluate(() => {
      // In one task, so that nothing else can happen between the reads.
      const posts: string[] = [];
      for (const { prototype } of [BroadcastChannel, MessagePort]) {
        const { postMessage } = prototype;
        prototype.postMessage = function (this: BroadcastChannel | MessagePort, ...given: [unknown]) {
          posts.push(this.constructor.name);
          return Reflect.apply(postMessage, this, given) as undefined;
        };
      }
      // The beats grow older while they are read.
      const age = /"lastBeatAgoMs":\d+/g;
      const before = JSON.stringify(B.bus.snapshot()).replaceAll(age, "");
      for (let reads = 0; reads < 1_000; reads += 1) B.bus.snapshot();
      const spoiled = B.bus.snapshot() as unknown as { routes: unknown[]; self: { tabId: string }; counters: Record<string, number> };
      spoiled.routes.length = 0;
      spoiled.self.tabId = "spoiled";
      spoiled.counters["delivered"] = -1;
      return { same: JSON.stringify(B.bus.snapshot()).replaceAll(age, "") === before, posts };
    });
    assert.deepEqual(found, { same: true, posts: [] });
    assert.equal(relay.commands.length, commands);
  });

  test("B30: tells how long ago the coordinator beat, for as long as it beats", async (t) => {
    const { bus, openMany } = await relayedBus(t);
    const tabs = await openMany(3, { topics: [TOPIC] });
    const coordinator = await bus.coordinator(tabs);
    const [other] = tabs.filter((tab) => tab !== coordinator) as [Tab];
    const beat = (leastMs: number, mostMs: number): Promise<unknown> =>
      other.waitFor(`sees a beat ${leastMs} to ${mostMs} ms ago`, SOON_MS, (least: number, most: number) => {
        const { nodes } = B.bus.snapshot();
        const agoMs = nodes.find(({ role }) => role === "coordinator")?.lastBeatAgoMs;
        return agoMs !== undefined && agoMs >= least && agoMs <= most;
      }, leastMs, mostMs);
    // It beats every 2.5 s, and its silence is seen to grow until then.
    await beat(1_500, 2_600);
    await beat(0, 1_000);
    await beat(1_500, 2_600);
    await coordinator.stop();
    await beat(3_000, 10_000);
    await coordinator.cont();
  });

  test("B30: shows what waits, and counts what happened", async (t) => {
    const { relay, open } = await relayedBus(t);
    const tab = await open({ topics: [TOPIC] });
    relay.rules = { reply: ({ kind }) => (kind === "publish" ? "hold" : "pass") };
    await tab.evaluate((topic: string) => {
      for (const seq of [1, 2, 3]) void B.settle(B.bus.publish(topic, { seq }, { deadlineMs: 20_000 }));
    }, TOPIC);
    await tab.waitFor("one is under way", SOON_MS, () => B.bus.snapshot().pending.some(({ attempt }) => attempt === 1));
    const waiting = await tab.evaluate(() => B.bus.snapshot().pending);
    assert.deepEqual(waiting.map(({ topic, attempt }) => [topic, attempt]), [[TOPIC, 1], [TOPIC, 0], [TOPIC, 0]]);
    // Both are cut to whole milliseconds.
    for (const { ageMs, remainingMs } of waiting) assert.ok(ageMs + remainingMs >= 19_999 && ageMs + remainingMs <= 20_000);
    relay.rules = {};
    relay.release();
    await tab.waitFor("all are settled", SOON_MS, () => B.bus.snapshot().queues.publishes === 0);
    await tab.waitFor("all are delivered", SOON_MS, () => B.log.filter(({ kind }) => kind === "message").length === 3);
    const { delivered, settled } = await tab.evaluate(() => B.bus.snapshot().counters);
    assert.deepEqual([delivered, settled], [3, 3]);
  });
});

const errors = (tab: Tab): Promise<(string | null)[]> =>
  tab.evaluate(() => B.errors.map(({ source, code }) => `${source}: ${code}`));

const hears = (tab: Tab, error: string): Promise<unknown> =>
  tab.waitFor(`hears of ${error}`, SOON_MS, (wanted: string) => B.errors.some(({ source, code }) => `${source}: ${code}` === wanted), error);

describe("B32: errors reach the listener with their source:", () => {
  test("B32: dispatch, from handlers and status listeners that throw", async (t) => {
    const { bus, relay, open } = await relayedBus(t);
    const tab = await open({ topics: [TOPIC] });
    await tab.evaluate((topic: string) => {
      B.bus.subscribe(topic, () => {
        throw new Error("no");
      });
      B.bus.status.subscribe(() => {
        throw new Error("no");
      });
    }, TOPIC);
    await tab.waitFor("hears of the status listener", SOON_MS, () => B.errors.length === 1);
    await bus.publisher.publish(TOPIC);
    await tab.waitFor("hears of the handler", SOON_MS, () => B.errors.length === 2);
    assert.deepEqual(await errors(tab), Array(2).fill("dispatch: DISPATCH_FAILED"));
    assert.equal(await tab.evaluate(() => B.bus.status.state), "running");
    assert.equal(relay.open, 1);
  });

  test("B32: transport, when the connection is lost, refused for good, or has no token", async (t) => {
    const { relay, open } = await relayedBus(t);
    const tab = await open({ topics: [TOPIC] });
    relay.cut();
    await hears(tab, "transport: TRANSPORT_UNAVAILABLE");
    await tab.waitFor("runs", SOON_MS, () => B.bus.status.state === "running");
    relay.dismiss(3_500, "invalid token");
    await hears(tab, "transport: CONNECT_REJECTED");
    const code = await tab.evaluate(async (url: string) => {
      const { connect } = (await import("/motet/index.js" as string)) as typeof import("motet");
      const other = await connect({
        cluster: "with-token",
        transport: { kind: "centrifuge", url, token: () => Promise.reject(new Error("signed out")) },
      });
      const heard = new Promise<string>((resolve) => other.onError(({ source, error }) => resolve(`${source}: ${error.code}`)));
      other.subscribe("prices", () => undefined);
      return heard;
    }, relay.url);
    assert.equal(code, "transport: TOKEN_UNAVAILABLE");
  });

  test("B32: coordination, when the page's node is lost", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ topics: [TOPIC] });
    await tab.evaluate(() => B.killWorker());
    await hears(tab, "coordination: NODE_UNAVAILABLE");
    await tab.waitFor("runs", SOON_MS, () => B.bus.status.state === "running");
  });

  test("B32: config, when the wanted host cannot be used; told once, however often the node starts", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ connect: { autoStart: false } });
    await tab.evaluate(async () => {
      Object.defineProperty(globalThis, "Worker", { value: undefined });
      await B.bus.start();
    });
    assert.deepEqual(await errors(tab), ["config: HOST_UNAVAILABLE"]);
    await tab.freeze();
    await tab.resume();
    await tab.waitFor("runs", SOON_MS, () => B.bus.status.state === "running");
    assert.deepEqual(await errors(tab), ["config: HOST_UNAVAILABLE"]);
  });

  test("B32: storage, when the tab's id cannot be kept, and the bus runs without", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ connect: { autoStart: false } });
    await tab.evaluate(async (topic: string) => {
      Storage.prototype.setItem = () => {
        throw new DOMException("denied", "SecurityError");
      };
      B.subscribe(topic);
      await B.bus.start();
    }, TOPIC);
    await subscribed(tab, [TOPIC]);
    assert.deepEqual(await errors(tab), ["storage: STORAGE_UNAVAILABLE"]);
  });

  test("B32: without any listener they go to the console, and one that throws disturbs no other", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open();
    const found = await tab.evaluate(async (url: string) => {
      const { connect } = (await import("/motet/index.js" as string)) as typeof import("motet");
      const written: string[] = [];
      console.error = (...given: unknown[]) => written.push(String(given[0]));
      const other = await connect({ cluster: "alone", transport: { kind: "centrifuge", url } });
      other.status.subscribe(() => {
        throw new Error("no");
      });
      const unheard = written.splice(0);
      let heard = 0;
      other.onError(() => {
        throw new Error("no");
      });
      other.onError(() => (heard += 1));
      other.status.subscribe(() => {
        throw new Error("no");
      });
      return { unheard, written, heard };
    }, bus.server.websocketUrl);
    assert.deepEqual(found, { unheard: ["motet (dispatch)"], written: ["motet: an onError listener threw"], heard: 1 });
  });
});

test("B32: a status listener is called at once with the present state, then at every change, until it is ended", async (t) => {
  const bus = await BusFixture.start(t);
  const tab = await bus.open();
  const found = await tab.evaluate(async () => {
    await B.bus.ready();
    const seen: string[] = [];
    const ended: string[] = [];
    B.bus.status.subscribe(({ state, nodeId }) => seen.push(`${state} ${nodeId === B.bus.snapshot().self.nodeId}`));
    const atOnce = [...seen];
    B.bus.status.subscribe(({ state }) => ended.push(state))();
    await B.bus.close();
    return { atOnce, seen: seen.map((one) => one.split(" ")[0]), ended };
  });
  assert.deepEqual(found, { atOnce: ["running true"], seen: ["running", "closing", "closed"], ended: ["running"] });
});
