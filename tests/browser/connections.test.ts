/** How many connections a cluster of tabs holds, as the kernel counts them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BusFixture, faults, NO_FAULTS } from "./bus-fixture.ts";
import { steady } from "./bus-page.ts";
import { establishedConnections, until } from "./driver/index.ts";

const PUBLISHERS = 1;

describe("B3: a tab connects only while it owns a topic", () => {
  test("so twenty tabs with one topic hold one connection", async (t) => {
    const bus = await BusFixture.start(t);
    const tabs = await bus.openMany(20, { topics: ["prices"], background: true });
    bus.publisher.pace("prices", steady(50));
    for (const tab of tabs) {
      await tab.waitFor("receives messages", 10_000, () => B.log.filter((entry) => entry.kind === "message").length > 5);
    }
    assert.equal(establishedConnections(bus.server.port) - PUBLISHERS, 1);
    assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
  });

  test("so six tabs with twelve topics hold at most three connections", async (t) => {
    const bus = await BusFixture.start(t);
    const topics = Array.from({ length: 12 }, (_, index) => `topic.${index}`);
    await bus.openMany(6, { topics });
    const connections = establishedConnections(bus.server.port) - PUBLISHERS;
    assert.ok(connections >= 1 && connections <= 3, `${connections} connections`);
  });

  test("so a tab without topics holds none", async (t) => {
    const bus = await BusFixture.start(t);
    await bus.open();
    assert.equal(establishedConnections(bus.server.port) - PUBLISHERS, 0);
  });

  test("with maxActiveNodes 1, all topics share one connection", async (t) => {
    const bus = await BusFixture.start(t, { connect: { maxActiveNodes: 1 } });
    await bus.openMany(3, { topics: ["a", "b", "c", "d"] });
    assert.equal(establishedConnections(bus.server.port) - PUBLISHERS, 1);
  });

  test("and lets go of it when its last handler is gone", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ topics: ["prices"] });
    assert.equal(establishedConnections(bus.server.port) - PUBLISHERS, 1);
    await tab.evaluate(() => B.unsubscribe("prices"));
    await until("the connection is closed", 5_000, () => establishedConnections(bus.server.port) === PUBLISHERS);
  });
});
