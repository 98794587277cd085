/** B25: what a page asks of its bus before it starts it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BusFixture } from "./bus-fixture.ts";
import { outcome } from "./relay-fixture.ts";

const TOPIC = "orders";

describe("B25: with autoStart false, before start()", () => {
  test("B25: a publication has its deadline, can be given up, counts in the queue, and goes out after the start", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ connect: { autoStart: false, publishQueue: 3 } });
    const found = await tab.evaluate(async (topic: string) => {
      const calls = new AbortController();
      const publish = (seq: number, options = {}) => B.settle(B.bus.publish(topic, { seq }, options));
      const late = publish(1, { deadlineMs: 200 });
      const given = publish(2, { signal: calls.signal });
      calls.abort();
      const gone = [await given, await late];
      const first = publish(3);
      const others = [4, 5, 6].map((seq) => publish(seq));
      const oldest = await first;
      const pending = B.bus.snapshot().pending.length;
      const { state } = B.bus.status;
      await B.bus.start();
      return { gone, oldest, pending, state, rest: await Promise.all(others) };
    }, TOPIC);
    assert.deepEqual(found.gone.map(outcome), ["ABORTED", "DEADLINE_EXCEEDED"]);
    assert.equal(outcome(found.oldest), "QUEUE_OVERFLOW");
    assert.deepEqual([found.pending, found.state], [3, "idle"]);
    assert.deepEqual(found.rest.map(outcome), ["ok", "ok", "ok"]);
  });

  test("B25: close() settles everything, and says of what was never sent that the bus is closed", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ connect: { autoStart: false } });
    const found = await tab.evaluate(async (topic: string) => {
      const published = B.settle(B.bus.publish(topic, { seq: 1 }));
      const subscribed = B.settle(B.bus.subscribe(topic, () => undefined).ready);
      await B.bus.close();
      const { held = [], pending = [] } = await navigator.locks.query();
      return { settled: [await published, await subscribed], state: B.bus.status.state, locks: held.length + pending.length };
    }, TOPIC);
    assert.deepEqual(found.settled.map(outcome), ["CLOSED", "CLOSED"]);
    assert.deepEqual([found.state, found.locks], ["closed", 0]);
  });

  test("B25: a page that goes to the back/forward cache comes back and can be started", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ connect: { autoStart: false } });
    await tab.evaluate((topic: string) => B.subscribe(topic), TOPIC);
    await tab.leave(bus.site.url("/away.html"));
    const { persisted, reasons } = await tab.back();
    assert.ok(persisted, `not restored: ${reasons.join()}`);
    const states = await tab.evaluate(async () => {
      const before = B.bus.status.state;
      await B.bus.start();
      return [before, B.bus.status.state];
    });
    assert.deepEqual(states, ["idle", "running"]);
    await tab.waitFor("is subscribed", 10_000, () => B.log.some(({ kind }) => kind === "ready"));
  });
});
