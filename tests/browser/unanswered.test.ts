/** B12: publications whose outcome is not told: what is sent again, what is not, and what their callers hear. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
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
/** A promise settles within its deadline and this, on a busy machine too; without a deadline of its own it would after 10 s. */
const SLACK_MS = 4_000;

const attempted = ({ relay }: RelayedBus, count: number): Promise<unknown> =>
  until(`${count} attempts`, SOON_MS, () => attempts(relay, TOPIC).length >= count);

/** A topic that is owned by a tab which neither coordinates nor publishes. */
async function ownedByNeither(t: TestContext, foreign: boolean): Promise<{ scene: RelayedBus; owner: Tab; publishing: Tab }> {
  const scene = await relayedBus(t, { foreign });
  const coordinator = await scene.open();
  await coordinator.waitFor("runs", SOON_MS, () => B.bus.status.state === "running");
  const owner = await scene.open({ topics: [TOPIC] });
  const publishing = await scene.open({ topics: [TOPIC] });
  await scene.bus.browser.assertSeparateProcesses();
  const tabs = [coordinator, owner, publishing];
  assert.equal(await scene.bus.coordinator(tabs), coordinator);
  assert.equal(await scene.bus.owner(TOPIC, tabs), owner);
  return { scene, owner, publishing };
}

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

describe("B12: what is pending settles, unknown where it was sent, and is never sent again", () => {
  test("B12: when the bus is closed", async (t) => {
    const scene = await relayedBus(t);
    const tabs = await scene.openMany(2, { topics: [TOPIC] });
    const [closing, other] = tabs as [Tab, Tab];
    scene.relay.rules = { reply: ({ kind }) => (kind === "publish" ? "hold" : "pass") };
    await startPublishing(closing, TOPIC, range(3));
    await accepted(scene.bus, 1);
    await closing.evaluate(() => B.bus.close());
    assert.deepEqual(await outcomesOf(closing), ["OUTCOME_UNKNOWN", "CLOSED", "CLOSED"]);
    scene.relay.rules = {};
    assert.equal(outcome(await publishFrom(other, TOPIC, 4)), "ok");
    assert.equal(outcome(await publishFrom(closing, TOPIC, 5)), "CLOSED");
    assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [1, 4]);
  });

  test("B12: when the page goes to the back/forward cache, also after it came back", async (t) => {
    const scene = await relayedBus(t);
    const [leaving] = await scene.openMany(2, { topics: [TOPIC] }) as [Tab, Tab];
    scene.relay.rules = { reply: ({ kind }) => (kind === "publish" ? "hold" : "pass") };
    await startPublishing(leaving, TOPIC, range(3));
    await accepted(scene.bus, 1);
    await leaving.leave(scene.bus.site.url("/away.html"));
    scene.relay.rules = {};
    const { persisted, reasons } = await leaving.back();
    assert.ok(persisted, `not restored: ${reasons.join()}`);
    assert.deepEqual(await outcomesOf(leaving), ["OUTCOME_UNKNOWN", "SUSPENDED", "SUSPENDED"]);
    await leaving.waitFor("runs again", SOON_MS, () => B.bus.status.state === "running");
    assert.equal(outcome(await publishFrom(leaving, TOPIC, 4)), "ok");
    assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [1, 4]);
  });
});

test("B12: while the owner is killed, a tab's publications are taken once each and in the order of its calls", async (t) => {
  const { scene, owner, publishing } = await ownedByNeither(t, false);
  await startPublishing(publishing, TOPIC, range(200));
  await attempted(scene, 50);
  await owner.kill();
  assert.deepEqual(new Set(await outcomesOf(publishing)), new Set(["ok"]));
  assert.deepEqual(await acceptedOf(scene.bus, TOPIC), range(200));
  const connections = new Set(attempts(scene.relay, TOPIC).map(({ connection }) => connection));
  assert.equal(connections.size, 2);
});
