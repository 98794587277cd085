/** What a tab does when the only other node, or the one that did everything, does not answer any more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { moreMessages, steady, subscribed } from "./bus-page.ts";
import type { Tab } from "./driver/index.ts";
import { accepted, acceptedOf, attempts, outcome, publishFrom, relayedBus } from "./relay-fixture.ts";

const TOPIC = "prices";
/** An idle shared node is asked every 30 s and has 2 s to answer. */
const HANG_NOTICED_MS = 45_000;

test("B12: when the owner that dies was the coordinator too, a publication in flight goes out again through the next owner", async (t) => {
  const scene = await relayedBus(t);
  const tabs = await scene.openMany(2, { topics: [TOPIC] });
  const owner = await scene.bus.owner(TOPIC, tabs);
  assert.equal(await scene.bus.coordinator(tabs), owner);
  const [survivor] = tabs.filter((tab) => tab !== owner) as [Tab];
  assert.equal(outcome(await publishFrom(survivor, TOPIC, 1)), "ok");
  scene.relay.rules = { reply: ({ kind }) => (kind === "publish" ? "drop" : "pass") };
  const second = publishFrom(survivor, TOPIC, 2);
  await accepted(scene.bus, 2);
  scene.relay.rules = {};
  await owner.kill();
  assert.equal(outcome(await second), "ok");
  assert.deepEqual(await acceptedOf(scene.bus, TOPIC), [1, 2]);
  assert.equal(attempts(scene.relay, TOPIC).filter(({ seq }) => seq === 2).length, 2);
});

test("B9: a tab that opens while the only other one, which coordinates, is frozen, takes over within the bound", async (t) => {
  const scene = await relayedBus(t);
  const frozen = await scene.open({ topics: [TOPIC] });
  await frozen.stop();
  t.after(() => frozen.cont());
  const tab = await scene.open();
  await tab.evaluate((topic: string) => B.subscribe(topic), TOPIC);
  await subscribed(tab, [TOPIC]);
});

for (const asks of [true, false]) {
  test(`B26: a SharedWorker that hangs and keeps its locks is replaced when ${asks ? "a page waits for it" : "nobody asks it for anything"}`, async (t) => {
    const scene = await relayedBus(t, { connect: { host: "shared", sharedWorkerUrl: "/hanging-shared-worker.js" } });
    const tabs = (await scene.openMany(2, { topics: [TOPIC] })) as [Tab, Tab];
    scene.bus.publisher.pace(TOPIC, steady(20));
    for (const tab of tabs) await moreMessages(tab, 20);
    const hung = await tabs[1].evaluate(() => {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel, no window
      new BroadcastChannel("mortal").postMessage("hang");
      return B.bus.snapshot().self.nodeId ?? "";
    });
    if (asks) void tabs[1].evaluate(() => void B.settle(B.bus.publish("chat", { seq: 1 }, { deadlineMs: 25_000 })));
    for (const tab of tabs) {
      await tab.waitFor("has another node", HANG_NOTICED_MS, (former: string) => {
        const { nodeId } = B.bus.snapshot().self;
        return nodeId !== undefined && nodeId !== former;
      }, hung);
    }
    for (const tab of tabs) await moreMessages(tab, 20);
  });
}
