/** The shortest way through everything: two real tabs, one connection to the real server, a message each way. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BusFixture } from "./bus-fixture.ts";
import { establishedConnections } from "./driver/index.ts";

test("two tabs share one connection, and both hear what either publishes", async (t) => {
  const bus = await BusFixture.start(t);
  const tabs = await bus.openMany(2, { topics: ["chat"] });
  assert.equal(establishedConnections(bus.server.port), 2, "one of the cluster, one of the test's publisher");
  for (const [seq, tab] of tabs.entries()) {
    const outcome = await tab.evaluate((number: number) => B.settle(B.bus.publish("chat", { seq: number })), seq);
    assert.deepEqual(outcome, { ok: true });
    for (const hearer of tabs) {
      await hearer.waitFor(`hears message ${seq}`, 5_000, (number: number) =>
        B.log.some((entry) => entry.kind === "message" && entry.seq === number), seq);
    }
  }
});
