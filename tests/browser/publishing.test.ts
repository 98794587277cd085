/** B12: what becomes of a publication, judged by the server's own log and by what crossed the wire. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { PublishOptions } from "motet";
import type { Settled } from "./bus-fixture.ts";
import { until, type Tab } from "./driver/index.ts";
import { accepted, acceptedOf, attempts, outcome, publishFrom, relayedBus, type RelayedBus } from "./relay-fixture.ts";

const TOPIC = "orders";
const SOON_MS = 10_000;
/** A promise settles within its deadline and this (invariant `settles`). */
const SLACK_MS = 1_000;

declare global {
  /** Outcomes of publications that a page has started and not awaited. */
  var outcomes: Promise<Settled<unknown>[]>;
}

/** Starts publications `{ seq }` in one task of the page, without waiting for any. */
function startPublishing(tab: Tab, seqs: readonly number[], options: PublishOptions = {}): Promise<void> {
  return tab.evaluate((topic: string, numbers: readonly number[], given: PublishOptions) => {
    globalThis.outcomes = Promise.all(numbers.map((seq) => B.settle(B.bus.publish(topic, { seq }, given))));
  }, TOPIC, seqs, options);
}

const outcomesOf = async (tab: Tab): Promise<(string | null)[]> =>
  (await tab.evaluate(() => globalThis.outcomes)).map(outcome);

const attempted = ({ relay }: RelayedBus, count: number): Promise<unknown> =>
  until(`${count} attempts`, SOON_MS, () => attempts(relay, TOPIC).length >= count);

/** Waits until the server's answer is on hold. */
const held = ({ relay }: RelayedBus): Promise<unknown> => until("an answer is held", SOON_MS, () => relay.held === 1);

/** A topic that is owned by a tab which neither coordinates nor publishes. */
async function ownedByNeither(t: TestContext, foreign: boolean): Promise<{ scene: RelayedBus; owner: Tab; publishing: Tab }> {
  const scene = await relayedBus(t, { foreign });
  const coordinator = await scene.open();
  const owner = await scene.open({ topics: [TOPIC] });
  const publishing = await scene.open({ topics: [TOPIC] });
  await scene.bus.browser.assertSeparateProcesses();
  const tabs = [coordinator, owner, publishing];
  assert.equal(await scene.bus.coordinator(tabs), coordinator);
  assert.equal(await scene.bus.owner(TOPIC, tabs), owner);
  return { scene, owner, publishing };
}

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

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

describe("B12: when the connection ends before the answer, the outcome", () => {
  test("B12: is unknown with a foreign server, and nothing is sent again", async (t) => {
    const scene = await relayedBus(t, { foreign: true });
    const tab = await scene.open({ topics: [TOPIC] });
    scene.relay.rules = { reply: ({ kind }) => (kind === "publish" ? "drop" : "pass") };
    const first = publishFrom(tab, TOPIC, 1);
    await accepted(scene.bus, 1);
    await scene.bus.server.kill();
    assert.equal(outcome(await first), "OUTCOME_UNKNOWN");

    scene.relay.rules = {};
    await scene.bus.server.restart();
    assert.equal(outcome(await publishFrom(tab, TOPIC, 2)), "ok");
    assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [1, 2]);
    assert.deepEqual(attempts(scene.relay, TOPIC).map(({ seq, key }) => ({ seq, key })), [
      { seq: 1, key: undefined },
      { seq: 2, key: undefined },
    ]);
  });

  test("B12: becomes known with the extension: it is sent again under its key, and the server has it once", async (t) => {
    const scene = await relayedBus(t);
    const tab = await scene.open({ topics: [TOPIC] });
    assert.equal(outcome(await publishFrom(tab, TOPIC, 1)), "ok");
    let dropped = 0;
    scene.relay.rules = { reply: ({ kind }) => (kind === "publish" && (dropped += 1) <= 2 ? "drop" : "pass") };
    const second = publishFrom(tab, TOPIC, 2, { idempotencyKey: "payment-7" });
    for (const attempt of [2, 3]) {
      await attempted(scene, attempt);
      await until("its answer is lost", SOON_MS, () => dropped === attempt - 1);
      scene.relay.cut();
    }
    assert.equal(outcome(await second), "ok");
    assert.deepEqual(attempts(scene.relay, TOPIC).filter(({ seq }) => seq === 2).map(({ key }) => key), Array(3).fill("payment-7"));
    assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [1, 2]);
  });

  test("B12: is unknown at the deadline, when the server took it and never answers", async (t) => {
    const scene = await relayedBus(t, { foreign: true });
    const tab = await scene.open({ topics: [TOPIC] });
    scene.relay.rules = { reply: ({ kind }) => (kind === "publish" ? "drop" : "pass") };
    const deadlineMs = 700;
    const { code, tookMs } = await tab.evaluate(async (topic: string, given: number) => {
      const askedMs = performance.now();
      const settled = await B.settle(B.bus.publish(topic, { seq: 1 }, { deadlineMs: given }));
      return { code: settled.ok ? "ok" : settled.error.code, tookMs: performance.now() - askedMs };
    }, TOPIC, deadlineMs);
    assert.equal(code, "OUTCOME_UNKNOWN");
    assert.ok(tookMs >= deadlineMs - 10 && tookMs < deadlineMs + SLACK_MS, `settled after ${tookMs} ms`);
    assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [1]);
    assert.equal(attempts(scene.relay, TOPIC).length, 1);
  });
});

describe("B12: when the owner dies with another tab's publication in flight, it", () => {
  for (const foreign of [false, true]) {
    const title = foreign ? "is unknown with a foreign server" : "goes out again through the next owner, once for the server";
    test(`B12: ${title}`, async (t) => {
      const { scene, owner, publishing: survivor } = await ownedByNeither(t, foreign);
      // What the page knows of the server it learns from an answer.
      assert.equal(outcome(await publishFrom(survivor, TOPIC, 1)), "ok");
      scene.relay.rules = { reply: ({ kind }) => (kind === "publish" ? "drop" : "pass") };
      const second = publishFrom(survivor, TOPIC, 2);
      await accepted(scene.bus, 2);
      scene.relay.rules = {};
      await owner.kill();
      assert.equal(outcome(await second), foreign ? "OUTCOME_UNKNOWN" : "ok");
      assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [1, 2]);
      const sent = attempts(scene.relay, TOPIC).filter(({ seq }) => seq === 2);
      assert.equal(sent.length, foreign ? 1 : 2);
      assert.equal(new Set(sent.map(({ key }) => key)).size, 1);
    });
  }
});

test("B12: one is in flight per topic, and other topics do not wait for it", async (t) => {
  const scene = await relayedBus(t, { foreign: true });
  const tab = await scene.open({ topics: [TOPIC] });
  scene.relay.rules = { reply: ({ kind, channel }) => (kind === "publish" && channel === TOPIC ? "hold" : "pass") };
  await startPublishing(tab, range(4));
  for (const seq of range(4)) {
    await accepted(scene.bus, seq);
    assert.equal(outcome(await publishFrom(tab, "elsewhere", 100 + seq)), "ok");
    await held(scene);
    assert.deepEqual(attempts(scene.relay, TOPIC).map((attempt) => attempt.seq), range(seq));
    scene.relay.release();
  }
  assert.deepEqual(await outcomesOf(tab), range(4).map(() => "ok"));
});

test("B12: while the owner is killed, a tab's publications are taken once each and in the order of its calls", async (t) => {
  const { scene, owner, publishing } = await ownedByNeither(t, false);
  await startPublishing(publishing, range(200));
  await attempted(scene, 50);
  await owner.kill();
  assert.deepEqual(new Set(await outcomesOf(publishing)), new Set(["ok"]));
  assert.deepEqual(await acceptedOf(scene.bus, TOPIC), range(200));
  const connections = new Set(attempts(scene.relay, TOPIC).map(({ connection }) => connection));
  assert.equal(connections.size, 2);
});

describe("B12: without a connection", () => {
  test("B12: the queue is bounded, its oldest are rejected, and the others go out in their order", async (t) => {
    const scene = await relayedBus(t);
    const tab = await scene.open({ topics: [TOPIC], connect: { publishQueue: 3, publishDeadlineMs: 30_000 } });
    scene.relay.refuse(true);
    scene.relay.cut();
    await tab.waitFor("has no connection", SOON_MS, () => B.bus.status.state === "recovering");
    await startPublishing(tab, range(5));
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

describe("B12: what is pending settles unknown and is never sent again", () => {
  test("B12: when the bus is closed", async (t) => {
    const scene = await relayedBus(t);
    const tabs = await scene.openMany(2, { topics: [TOPIC] });
    const [closing, other] = tabs as [Tab, Tab];
    scene.relay.rules = { reply: ({ kind }) => (kind === "publish" ? "hold" : "pass") };
    await startPublishing(closing, range(3));
    await accepted(scene.bus, 1);
    await closing.evaluate(() => B.bus.close());
    assert.deepEqual(await outcomesOf(closing), Array(3).fill("OUTCOME_UNKNOWN"));
    scene.relay.rules = {};
    assert.equal(outcome(await publishFrom(other, TOPIC, 4)), "ok");
    assert.equal(outcome(await publishFrom(closing, TOPIC, 5)), "CLOSED");
    assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [1, 4]);
  });

  test("B12: when the page goes to the back/forward cache, also after it came back", async (t) => {
    const scene = await relayedBus(t);
    const [leaving] = await scene.openMany(2, { topics: [TOPIC] }) as [Tab, Tab];
    scene.relay.rules = { reply: ({ kind }) => (kind === "publish" ? "hold" : "pass") };
    await startPublishing(leaving, range(3));
    await accepted(scene.bus, 1);
    await leaving.leave(scene.bus.site.url("/away.html"));
    scene.relay.rules = {};
    const { persisted, reasons } = await leaving.back();
    assert.ok(persisted, `not restored: ${reasons.join()}`);
    assert.deepEqual(await outcomesOf(leaving), Array(3).fill("OUTCOME_UNKNOWN"));
    await leaving.waitFor("runs again", SOON_MS, () => B.bus.status.state === "running");
    assert.equal(outcome(await publishFrom(leaving, TOPIC, 4)), "ok");
    assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [1, 4]);
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
