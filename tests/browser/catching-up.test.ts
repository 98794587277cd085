/** What a page is given of the time when it was away, and how long it waits for it. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { BusFixture, faults, NO_FAULTS, type FixtureOptions } from "./bus-fixture.ts";
import type { GapEntry } from "./checker.ts";
import { nowMs, until, type Tab } from "./driver/index.ts";
import { authority, frame, FRAME, Outsider, packet } from "./forged.ts";
import { gaps, messagesUpTo, publishMany, range, seqs } from "./message-log.ts";
import { OPEN_CONFIG } from "./server.ts";

const TOPIC = "prices";
const NOTICED_WITHIN_MS = 10_000;
const HOLE_WAIT_MS = 500;

interface Scene {
  readonly bus: BusFixture;
  readonly tabs: Tab[];
}

async function scene(t: TestContext, count: number, options: FixtureOptions = {}): Promise<Scene> {
  const bus = await BusFixture.start(t, options);
  return { bus, tabs: await bus.openMany(count, { topics: [TOPIC] }) };
}

describe("B11: a page that has missed messages", () => {
  test("B11: gets those that are kept, and is told of exactly the others", async (t) => {
    const config = OPEN_CONFIG.replace("history_size = 2000", "history_size = 10");
    const { bus, tabs } = await scene(t, 2, { server: { config }, connect: { ringMessages: 5 } });
    const owner = await bus.owner(TOPIC, tabs);
    const [away] = tabs.filter((tab) => tab !== owner) as [Tab];
    await publishMany(bus, TOPIC, 4);
    const before = await messagesUpTo(away, 4, TOPIC);
    await away.leave(bus.site.url("/away.html"));
    await publishMany(bus, TOPIC, 30);
    assert.ok((await away.back()).persisted);
    const after = (await messagesUpTo(away, 34, TOPIC)).slice(before.length);
    const [gap, ...more] = await gaps(away);
    assert.deepEqual([gap?.reason, more], ["not-retained", []]);
    assert.deepEqual([gap?.from?.offset, gap?.to?.offset, seqs(after)], [4, 24, range(25, 34)]);
    assert.deepEqual(faults((await bus.judge(tabs)).verdicts), { ...NO_FAULTS, gaps: 1 });
  });

  test("B11: waits half a second for what fills a hole, then goes on with one gap", async (t) => {
    const { bus, tabs } = await scene(t, 2);
    const { page, postedAtMs, seen } = await holeInFrontOf(bus, tabs, 1);
    assert.ok(seen.gapAtMs - postedAtMs >= HOLE_WAIT_MS, `after ${seen.gapAtMs - postedAtMs} ms`);
    assert.deepEqual([seen.reason, seen.from, seen.to], ["repair-timeout", 3, 12]);
    assert.deepEqual(seqs(await messagesUpTo(page, 1_013, TOPIC)), [1, 2, 3, 1_013]);
  });

  test("B11: waits no longer than for a thousand messages", async (t) => {
    const { bus, tabs } = await scene(t, 2);
    const { page, seen } = await holeInFrontOf(bus, tabs, 1_001);
    assert.ok(seen.gapAtMs < seen.timerAtMs, `${seen.gapAtMs - seen.timerAtMs} ms after a timer that is due before the wait ends`);
    assert.deepEqual([seen.reason, seen.from, seen.to], ["repair-timeout", 3, 12]);
    assert.deepEqual(seqs(await messagesUpTo(page, 2_013, TOPIC)), [1, 2, 3, ...range(1_013, 2_013)]);
  });
});

test("B11: gets a backlog that is larger than what the server lets wait for a slow client", async (t) => {
  const { bus, tabs } = await scene(t, 1);
  const [tab] = tabs as [Tab];
  await publishMany(bus, TOPIC, 1);
  await messagesUpTo(tab, 1, TOPIC);
  await tab.leave(bus.site.url("/away.html"));
  await publishMany(bus, TOPIC, 290, { filler: "x".repeat(4_000) });
  assert.ok((await tab.back()).persisted);
  assert.deepEqual(seqs(await messagesUpTo(tab, 291, TOPIC)), range(1, 291));
  assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
});

interface Hole {
  readonly page: Tab;
  readonly postedAtMs: number;
  /**
   * The gap, and when a timer fired that the page set when it heard of what lies behind the hole, and that is due
   * shortly before the wait would end. However late a busy machine runs them, timers run in the order of their times.
   */
  readonly seen: {
    readonly timerAtMs: number;
    readonly gapAtMs: number;
    readonly reason: string;
    readonly from?: number;
    readonly to?: number;
  };
}

/**
 * Lets the cluster have three messages, then posts messages 13, 14, ... in the owner's name: nobody has 4 to 12,
 * neither the owner nor the server. The payload of message n says 1000 + n.
 */
async function holeInFrontOf(bus: BusFixture, tabs: readonly Tab[], count: number): Promise<Hole> {
  await publishMany(bus, TOPIC, 3);
  const owner = await bus.owner(TOPIC, tabs);
  const [page] = tabs.filter((tab) => tab !== owner) as [Tab];
  const [last] = (await messagesUpTo(page, 3, TOPIC)).slice(-1);
  const outsider = await Outsider.open(bus);
  const channel = outsider.data(TOPIC);
  await page.evaluate((name: string, timerMs: number) => {
    const listener = new BroadcastChannel(name);
    const heard = (): unknown =>
      setTimeout(() => Object.assign(globalThis, { timerAtMs: performance.timeOrigin + performance.now() }), timerMs);
    listener.addEventListener("message", heard, { once: true });
  }, channel, HOLE_WAIT_MS - 100);
  const { owner: from, routeFence } = await authority(page, TOPIC);
  const heads = range(13, 12 + count).map((offset, slot) => [offset, 10, slot]);
  const payloads = heads.map(([offset = 0]) => ({ seq: 1_000 + offset }));
  const epoch = last?.position?.epoch ?? "";
  const postedAtMs = nowMs();
  await outsider.post(channel, packet(from, [frame(FRAME.data, TOPIC, routeFence, epoch, heads)]), payloads);
  const seen = await until("the page tells the gap", NOTICED_WITHIN_MS, () =>
    page.evaluate(() => {
      const gap = B.log.find((entry): entry is GapEntry => entry.kind === "gap");
      const { timerAtMs } = globalThis as unknown as { timerAtMs?: number };
      return gap && timerAtMs !== undefined && { timerAtMs, gapAtMs: gap.atMs, reason: gap.reason, from: gap.from?.offset, to: gap.to?.offset };
    }),
  );
  return { page, postedAtMs, seen: seen as Hole["seen"] };
}
