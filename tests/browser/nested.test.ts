/** JSON that nests deeper than browsers copy: it costs nobody more than itself. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BusFixture } from "./bus-fixture.ts";
import type { Tab } from "./driver/index.ts";
import { gaps, messagesUpTo, publishMany, range, seqs } from "./message-log.ts";
import { OPEN_CONFIG } from "./server.ts";

const TOPIC = "prices";
const CONFIG = `${OPEN_CONFIG}\n[http_api]\ninsecure = true\n`;

/** An object that holds arrays within arrays, so many levels in all. */
const nested = (levels: number): string => `{"inner": ${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;

/** Publishes JSON as it is: clients cannot write what nests very deep. */
async function publishJson(bus: BusFixture, json: string): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${bus.server.port}/api/publish`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: `{"channel": "${TOPIC}", "data": ${json}}`,
  });
  assert.deepEqual([answer.status, Object.keys((await answer.json()) as object)], [200, ["result"]]);
}

/** Publishes what nests as deep from the page, and tells how it ended. */
function publishNested(tab: Tab, levels: number): Promise<string> {
  return tab.evaluate(async (topic: string, deep: number) => {
    let inner: unknown[] = [];
    for (let level = 2; level < deep; level += 1) inner = [inner];
    const settled = await B.settle(B.bus.publish(topic, { inner, seq: 1_000_000 }));
    return settled.ok ? "ok" : String(settled.error.code);
  }, TOPIC, levels);
}

const places = async (tab: Tab): Promise<unknown[]> =>
  (await gaps(tab)).map(({ reason, from, to }) => [reason, from?.offset, to?.offset]);

describe("B10: a message that nests too deep", () => {
  for (const levels of [600, 2_500, 30_000]) {
    test(`B10: of ${levels} levels is a gap of its own; those beside it arrive, in every tab`, async (t) => {
      const bus = await BusFixture.start(t, { server: { config: CONFIG } });
      const tabs = await bus.openMany(2, { topics: [TOPIC] });
      await publishMany(bus, TOPIC, 4);
      await publishJson(bus, nested(levels));
      await publishMany(bus, TOPIC, 5);
      for (const tab of tabs) {
        assert.deepEqual(seqs(await messagesUpTo(tab, 9, TOPIC)), range(1, 9));
        assert.deepEqual(await places(tab), [["too-deep", 4, 5]]);
      }
      const late = await bus.open();
      await late.evaluate((topic: string) => B.subscribe(topic, { replay: 8 }, "late"), TOPIC);
      assert.deepEqual(seqs(await messagesUpTo(late, 9, "late")), range(3, 9));
      assert.deepEqual(await places(late), []);
    });
  }

  test("B10: arrives as it is with 512 levels, and is refused at once where it would be published with more", async (t) => {
    const bus = await BusFixture.start(t, { server: { config: CONFIG } });
    const tabs = await bus.openMany(2, { topics: [TOPIC] });
    await publishJson(bus, nested(512));
    await publishMany(bus, TOPIC, 1);
    for (const tab of tabs) {
      await messagesUpTo(tab, 1, TOPIC);
      assert.equal(await publishNested(tab, 513), "UNCLONEABLE");
      assert.equal(await publishNested(tab, 30_000), "UNCLONEABLE");
    }
    assert.equal(await publishNested(tabs[0] as Tab, 512), "ok");
    for (const tab of tabs) {
      await messagesUpTo(tab, 1_000_000, TOPIC);
      assert.deepEqual(await places(tab), []);
    }
  });
});
