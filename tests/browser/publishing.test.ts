/** B12: what becomes of a publication, judged by the server's own log and by what crossed the wire. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { until, type Tab } from "./driver/index.ts";
import {
  accepted,
  acceptedOf,
  attempts,
  outcome,
  outcomesOf,
  publishFrom,
  range,
  relayedBus,
  startPublishing,
  type RelayedBus,
} from "./relay-fixture.ts";

const TOPIC = "orders";
const SOON_MS = 10_000;

/** Waits until the server's answer is on hold. */
const held = ({ relay }: RelayedBus): Promise<unknown> => until("an answer is held", SOON_MS, () => relay.held === 1);

describe("B12: a publication is acknowledged", () => {
  test("B12: when the server has answered, and not before; from every tab over the owner's connection", async (t) => {
    const scene = await relayedBus(t);
    const tabs = await scene.openMany(2, { topics: [TOPIC] });
    const owner = await scene.bus.owner(TOPIC, tabs);
    const [other] = tabs.filter((tab) => tab !== owner) as [Tab];
    for (const [seq, tab] of [owner, other].entries()) assert.equal(outcome(await publishFrom(tab, TOPIC, seq)), "ok");

    scene.relay.rules = { reply: ({ kind }) => (kind === "publish" ? "hold" : "pass") };
    const third = publishFrom(other, TOPIC, 2);
    await accepted(scene.bus, 2);
    const pending = await other.evaluate(() => B.bus.snapshot().pending.map(({ topic, attempt }) => ({ topic, attempt })));
    assert.deepEqual(pending, [{ topic: TOPIC, attempt: 1 }], "the server has it, the page was not told");
    await held(scene);
    scene.relay.release();
    assert.equal(outcome(await third), "ok");
    assert.deepEqual(await other.evaluate(() => B.bus.snapshot().pending), []);

    assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [0, 1, 2]);
    const subscribes = scene.relay.commands.filter(({ kind, channel }) => kind === "subscribe" && channel === TOPIC);
    const connections = new Set([...subscribes, ...attempts(scene.relay, TOPIC)].map(({ connection }) => connection));
    assert.equal(connections.size, 1, "subscribed and published on one connection");
  });

  test("B12: through its own node when no node is connected, which lets the connection go again", async (t) => {
    const scene = await relayedBus(t);
    const [tab] = await scene.openMany(2);
    assert.equal(scene.relay.connections.length, 0);
    assert.equal(outcome(await publishFrom(tab as Tab, TOPIC, 1)), "ok");
    assert.equal(scene.relay.connections.length, 1);
    await until("the connection is closed", 30_000, () => scene.relay.open === 0);
    assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [1]);
  });

  test("B12: through a connected node when the topic has no owner", async (t) => {
    const scene = await relayedBus(t);
    const tabs = await scene.openMany(2, { topics: ["other"] });
    for (const [seq, tab] of tabs.entries()) assert.equal(outcome(await publishFrom(tab, TOPIC, seq)), "ok");
    assert.equal(scene.relay.connections.length, 1);
    assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [0, 1]);
  });
});

test("B12: what the server refuses is rejected with its code, once, and what follows is served", async (t) => {
  const config = `
[client]
allow_anonymous_connect_without_token = true
allowed_origins = ["*"]
[[channel.namespaces]]
name = "open"
allow_publish_for_client = true
allow_publish_for_anonymous = true
`;
  const scene = await relayedBus(t, { server: { config } });
  const tab = await scene.open();
  const refused = await tab.evaluate((topic: string) =>
    B.bus.publish(topic, { seq: 1 }).then(() => null, ({ code, serverCode }) => ({ code, serverCode })), TOPIC);
  assert.deepEqual(refused, { code: "PUBLISH_REJECTED", serverCode: 103 });
  assert.equal(outcome(await publishFrom(tab, "open:orders", 2)), "ok");
  assert.equal(attempts(scene.relay, TOPIC).length, 1);
});

test("B12: ten tabs that publish in turn are each told of their own, and nothing is done twice", async (t) => {
  const scene = await relayedBus(t);
  const tabs = await scene.openMany(10, { topics: [TOPIC] });
  const seqs = range(3 * tabs.length);
  for (const seq of seqs) assert.equal(outcome(await publishFrom(tabs[seq % tabs.length] as Tab, TOPIC, seq)), "ok");
  assert.deepEqual(await acceptedOf(scene.bus, TOPIC), seqs);
  assert.equal(scene.relay.connections.length, 1, "all of it through the owner");
});

test("B12: one is in flight per topic, and other topics do not wait for it", async (t) => {
  const scene = await relayedBus(t, { foreign: true });
  const tab = await scene.open({ topics: [TOPIC] });
  scene.relay.rules = { reply: ({ kind, channel }) => (kind === "publish" && channel === TOPIC ? "hold" : "pass") };
  await startPublishing(tab, TOPIC, range(4));
  for (const seq of range(4)) {
    await accepted(scene.bus, seq);
    assert.equal(outcome(await publishFrom(tab, "elsewhere", 100 + seq)), "ok");
    await held(scene);
    assert.deepEqual(attempts(scene.relay, TOPIC).map((attempt) => attempt.seq), range(seq));
    scene.relay.release();
  }
  assert.deepEqual(await outcomesOf(tab), range(4).map(() => "ok"));
});

describe("B12: without a connection", () => {
  test("B12: the queue is bounded, its oldest are rejected, and the others go out in their order", async (t) => {
    const scene = await relayedBus(t);
    const tab = await scene.open({ topics: [TOPIC], connect: { publishQueue: 3, publishDeadlineMs: 30_000 } });
    scene.relay.refuse(true);
    scene.relay.cut();
    await tab.waitFor("has no connection", SOON_MS, () => B.bus.status.state === "recovering");
    await startPublishing(tab, TOPIC, range(5));
    await tab.waitFor("has three in the queue", SOON_MS, () => B.bus.snapshot().queues.publishes === 3);
    scene.relay.refuse(false);
    // The first is on its way already: it is not for the queue to reject.
    assert.deepEqual(await outcomesOf(tab), ["ok", "QUEUE_OVERFLOW", "QUEUE_OVERFLOW", "ok", "ok"]);
    assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [1, 4, 5]);
  });

  test("B12: a publication that was never sent says so at its deadline, and is not sent later", async (t) => {
    const scene = await relayedBus(t);
    const tab = await scene.open({ topics: [TOPIC] });
    scene.relay.refuse(true);
    scene.relay.cut();
    await tab.waitFor("has no connection", SOON_MS, () => B.bus.status.state === "recovering");
    assert.equal(outcome(await publishFrom(tab, TOPIC, 1, { deadlineMs: 300 })), "DEADLINE_EXCEEDED");
    scene.relay.refuse(false);
    assert.equal(outcome(await publishFrom(tab, TOPIC, 2)), "ok");
    assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [2]);
  });
});

test("B12: a batch tells the outcome of each of its publications, in their order", async (t) => {
  const scene = await relayedBus(t);
  const tabs = await scene.openMany(3, { topics: [TOPIC] });
  const outcomes = await tabs[0]?.evaluate(async (topic: string) => {
    const good = Array.from({ length: 100 }, (_, index) => ({ topic, payload: { seq: index + 1 } }));
    const bad = [
      { topic: `${topic}.*`, payload: { seq: 101 } },
      { topic, payload: { seq: 102, call: () => undefined } },
      { topic, payload: { seq: 103 }, options: { signal: AbortSignal.abort() } },
    ];
    const told = await B.bus.publishBatch([...good.slice(0, 50), ...bad, ...good.slice(50)]);
    return told.map((one) => (one.ok ? "ok" : one.error.code));
  }, TOPIC);
  const ok = Array<string>(50).fill("ok");
  assert.deepEqual(outcomes, [...ok, "TOPIC_INVALID", "UNCLONEABLE", "ABORTED", ...ok]);
  assert.deepEqual(await acceptedOf(scene.bus, TOPIC), range(100));
  for (const tab of tabs) {
    await tab.waitFor("has the whole batch", SOON_MS, () => B.log.filter(({ kind }) => kind === "message").length === 100);
    assert.deepEqual(await tab.evaluate(() => B.log.flatMap((entry) => (entry.kind === "message" ? [entry.seq] : []))), range(100));
  }
});
