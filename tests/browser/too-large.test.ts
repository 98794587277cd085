/** B12: publications that are larger than the server takes. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BusFixture, faults, NO_FAULTS } from "./bus-fixture.ts";
import { moreMessages, steady } from "./bus-page.ts";
import type { Tab } from "./driver/index.ts";
import { attempts, outcome, publishFrom, relayedBus } from "./relay-fixture.ts";
import { OPEN_CONFIG } from "./server.ts";

const TOPIC = "prices";
const SPACING_MS = 20;
/** A publication that nobody can take is told so without waiting for its deadline, which is 10 s; machines are busy. */
const AT_ONCE_MS = 5_000;

/** Publishes an object with a text of so many characters, and tells how and when it ended. */
function publishText(tab: Tab, length: number): Promise<{ code: string; tookMs: number }> {
  return tab.evaluate(async (topic: string, characters: number) => {
    const askedMs = performance.now();
    const settled = await B.settle(B.bus.publish(topic, { seq: 1_000_000, text: "x".repeat(characters) }));
    return { code: settled.ok ? "ok" : String(settled.error.code), tookMs: performance.now() - askedMs };
  }, TOPIC, length);
}

describe("B12: a publication that is larger than the server takes", () => {
  test("B12: is told so at once, never reaches the server, and disturbs nothing", async (t) => {
    const scene = await relayedBus(t);
    const tabs = await scene.openMany(3, { topics: [TOPIC] });
    const owner = await scene.bus.owner(TOPIC, tabs);
    scene.bus.publisher.pace(TOPIC, steady(SPACING_MS));
    for (const tab of tabs) {
      const { code, tookMs } = await publishText(tab, 70_000);
      assert.equal(code, "PAYLOAD_TOO_LARGE", tab === owner ? "from the owner" : "from another tab");
      assert.ok(tookMs < AT_ONCE_MS, `after ${tookMs} ms`);
    }
    assert.equal((await publishText(owner, 60_000)).code, "ok");
    for (const tab of tabs) await moreMessages(tab, 20);
    assert.equal(scene.relay.connections.length, 1);
    assert.equal(attempts(scene.relay, TOPIC).length, 1);
    for (const tab of tabs) {
      assert.deepEqual(await tab.evaluate(() => [B.bus.status.state, ...B.bus.snapshot().routes.map(({ state }) => state)]), [
        "running",
        "subscribed",
      ]);
    }
  });

  test("B12: in Protobuf is told so too, and stays with the page that wanted to transfer it", async (t) => {
    const bus = await BusFixture.start(t);
    const transport = { kind: "centrifuge", url: bus.server.websocketUrl, protocol: "protobuf" } as const;
    const tab = await bus.open({ connect: { transport }, topics: [TOPIC] });
    const found = await tab.evaluate(async (topic: string) => {
      const large = new Uint8Array(70_000);
      // With its envelope it is larger than the limit; by itself it is not.
      const hidden = new Uint8Array((1 << 16) - 4);
      const settled = [
        await B.settle(B.bus.publish(topic, large, { transfer: true })),
        await B.settle(B.bus.publish(topic, hidden)),
        await B.settle(B.bus.publish(topic, new Uint8Array(60_000))),
      ];
      return { codes: settled.map((one) => (one.ok ? "ok" : one.error.code)), left: large.byteLength, state: B.bus.status.state };
    }, TOPIC);
    assert.deepEqual(found, { codes: ["PAYLOAD_TOO_LARGE", "PAYLOAD_TOO_LARGE", "ok"], left: 70_000, state: "running" });
  });

  test("B12: is judged by the limit that the application names", async (t) => {
    const scene = await relayedBus(t);
    const transport = { kind: "centrifuge", url: scene.relay.url, messageSizeLimit: 4_096 } as const;
    const tab = await scene.open({ topics: [TOPIC], connect: { transport } });
    assert.equal((await publishText(tab, 5_000)).code, "PAYLOAD_TOO_LARGE");
    assert.equal((await publishText(tab, 3_000)).code, "ok");
    assert.equal(scene.relay.connections.length, 1);
  });

  for (const foreign of [false, true]) {
    const title = foreign ? "foreign server's" : "server's";
    test(`B12: is to blame when a ${title} limit is lower than was said: it fails, the connection comes back, and its like is not sent again`, async (t) => {
      const config = `${OPEN_CONFIG}\n[websocket]\nmessage_size_limit = 8192\n`;
      const scene = await relayedBus(t, { foreign, server: { config } });
      const tabs = await scene.openMany(3, { topics: [TOPIC] });
      const owner = await scene.bus.owner(TOPIC, tabs);
      const [other] = tabs.filter((tab) => tab !== owner) as [Tab];
      scene.bus.publisher.pace(TOPIC, steady(SPACING_MS));
      assert.equal((await publishText(other, 10_000)).code, "PAYLOAD_TOO_LARGE");
      for (const tab of tabs) await moreMessages(tab, 20);
      assert.equal(scene.relay.connections.length, 2, "the server closed one, the bus made another");
      assert.equal((await publishText(other, 10_000)).code, "PAYLOAD_TOO_LARGE");
      assert.equal((await publishText(owner, 20_000)).code, "PAYLOAD_TOO_LARGE");
      assert.equal(outcome(await publishFrom(other, TOPIC, 2_000_000)), "ok");
      assert.equal(scene.relay.connections.length, 2);
      assert.deepEqual(attempts(scene.relay, TOPIC).map(({ seq }) => seq), [1_000_000, 2_000_000]);
      const { verdicts } = await scene.bus.judge(tabs);
      assert.deepEqual({ ...faults(verdicts), foreign: 0 }, NO_FAULTS);
    });
  }
});
