/** What a subscriber is given of the time before it came, and from whose memory. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { SubscribeOptions } from "motet";
import { BusFixture, type FixtureOptions } from "./bus-fixture.ts";
import { moreMessages, steady, subscribed } from "./bus-page.ts";
import type { Tab } from "./driver/index.ts";
import { gaps, messagesUpTo, publishMany, range, reached, replayed, seqs } from "./message-log.ts";
import { OPEN_CONFIG } from "./server.ts";

const TOPIC = "prices";
/** In a namespace of which the server keeps nothing. */
const LIVE_TOPIC = "live:prices";
const LIVE_CONFIG = `${OPEN_CONFIG}\n[[channel.namespaces]]\nname = "live"\n`;
const NOTICED_WITHIN_MS = 10_000;

interface Scene {
  readonly bus: BusFixture;
  readonly tabs: Tab[];
}

async function scene(t: TestContext, count: number, topic: string, options: FixtureOptions = {}): Promise<Scene> {
  const bus = await BusFixture.start(t, options);
  return { bus, tabs: await bus.openMany(count, { topics: [topic] }) };
}

const subscribe = (tab: Tab, topic: string, options: SubscribeOptions, key: string): Promise<void> =>
  tab.evaluate((...given: [string, SubscribeOptions, string]) => B.subscribe(...given), topic, options, key);

describe("B11: a late subscriber gets the last messages", () => {
  test("B11: in a page that has them, without a message for those who were there", async (t) => {
    const { bus, tabs } = await scene(t, 1, TOPIC);
    const [tab] = tabs as [Tab];
    await publishMany(bus, TOPIC, 8);
    assert.deepEqual(seqs(await messagesUpTo(tab, 8, TOPIC)), range(1, 8));
    await subscribe(tab, TOPIC, { replay: 5 }, "late");
    await publishMany(bus, TOPIC, 2);
    const late = await messagesUpTo(tab, 10, "late");
    assert.deepEqual([seqs(late), replayed(late)], [range(4, 10), range(4, 8)]);
    const early = await messagesUpTo(tab, 10, TOPIC);
    assert.deepEqual([seqs(early), replayed(early)], [range(1, 10), []]);
  });

  test("B11: in a new tab, marked, in order and joined to the live ones without a seam", async (t) => {
    const { bus, tabs } = await scene(t, 2, TOPIC);
    bus.publisher.pace(TOPIC, steady(5));
    await moreMessages(tabs[0] as Tab, 60);
    const late = await bus.open();
    await late.evaluate(() => {
      B.subscribe("prices", { replay: 30 }, "thirty");
      B.subscribe("prices", { replay: 10 }, "ten");
    });
    await moreMessages(late, 200);
    await bus.publisher.pause();
    const last = bus.publisher.acknowledged.get(TOPIC) ?? 0;
    const [thirty, ten] = [await messagesUpTo(late, last, "thirty"), await messagesUpTo(late, last, "ten")];
    for (const [entries, wanted] of [[thirty, 30], [ten, 10]] as const) {
      assert.equal(replayed(entries).length, wanted);
      assert.deepEqual(seqs(entries), range(last - entries.length + 1, last));
      assert.ok(entries.slice(0, wanted).every((entry) => entry.replayed === true), "the earlier ones come first");
    }
    assert.deepEqual(replayed(thirty).slice(-10), replayed(ten), "the last, not any");
  });

  test("B11: from the server's history when nobody is left who has them", async (t) => {
    const { bus, tabs } = await scene(t, 1, TOPIC);
    const [dies] = tabs as [Tab];
    const late = await bus.open();
    await publishMany(bus, TOPIC, 40);
    await messagesUpTo(dies, 40, TOPIC);
    await dies.kill();
    await subscribe(late, TOPIC, { replay: 25 }, "late");
    const entries = await messagesUpTo(late, 40, "late");
    assert.deepEqual([seqs(entries), replayed(entries)], [range(16, 40), range(16, 40)]);
    await publishMany(bus, TOPIC, 3);
    assert.deepEqual(seqs(await messagesUpTo(late, 43, "late")), range(16, 43));
    assert.deepEqual(await gaps(late), []);
  });

  test("B11: from a peer's memory when the server keeps none, and the change of owners is one gap", async (t) => {
    const { bus, tabs } = await scene(t, 2, LIVE_TOPIC, { server: { config: LIVE_CONFIG } });
    await publishMany(bus, LIVE_TOPIC, 20);
    for (const tab of tabs) await messagesUpTo(tab, 20, LIVE_TOPIC);
    const owner = await bus.owner(LIVE_TOPIC, tabs);
    const [peer] = tabs.filter((tab) => tab !== owner) as [Tab];
    await owner.kill();
    await peer.waitFor("says that messages may be missing", NOTICED_WITHIN_MS, () => B.log.some(({ kind }) => kind === "gap"));
    const [gap, ...more] = await gaps(peer);
    const [last] = (await messagesUpTo(peer, 20, LIVE_TOPIC)).slice(-1);
    assert.deepEqual([gap?.reason, gap?.from, gap?.to, more], ["owner-changed", last?.position, undefined, []]);
    const late = await bus.open();
    await subscribe(late, LIVE_TOPIC, { replay: 10 }, "late");
    await messagesUpTo(late, 20, "late");
    await publishMany(bus, LIVE_TOPIC, 5);
    const entries = await messagesUpTo(late, 25, "late");
    assert.deepEqual([seqs(entries), replayed(entries)], [range(11, 25), range(11, 20)]);
    assert.deepEqual(seqs(await messagesUpTo(peer, 25, LIVE_TOPIC)), range(1, 25));
    assert.deepEqual((await gaps(peer)).length, 1);
  });

  test("B11: and nothing made up when neither has any", async (t) => {
    const { bus, tabs } = await scene(t, 1, LIVE_TOPIC, { server: { config: LIVE_CONFIG } });
    const [dies] = tabs as [Tab];
    const late = await bus.open();
    await publishMany(bus, LIVE_TOPIC, 10);
    await messagesUpTo(dies, 10, LIVE_TOPIC);
    await dies.kill();
    await subscribe(late, LIVE_TOPIC, { replay: 10 }, "late");
    await late.waitFor("is subscribed", NOTICED_WITHIN_MS, () => B.log.some(({ kind }) => kind === "ready"));
    await publishMany(bus, LIVE_TOPIC, 3);
    const entries = await messagesUpTo(late, 13, "late");
    assert.deepEqual([seqs(entries), replayed(entries), await gaps(late)], [range(11, 13), [], []]);
  });
});

/** How many messages of each topic a page keeps, and how many bytes in all. */
const kept = (tab: Tab): Promise<{ messages: number[]; bytes: number }> =>
  tab.evaluate(() => {
    const { subscribed, counters } = B.bus.snapshot();
    return { messages: subscribed.map((row) => row.kept), bytes: counters["ringBytes"] ?? 0 };
  });

describe("B11: what a page keeps for late subscribers", () => {
  test("B11: are a hundred messages of a topic", async (t) => {
    const { bus, tabs } = await scene(t, 1, TOPIC);
    const [tab] = tabs as [Tab];
    await publishMany(bus, TOPIC, 120);
    await messagesUpTo(tab, 120, TOPIC);
    assert.deepEqual((await kept(tab)).messages, [100]);
    await subscribe(tab, TOPIC, { replay: 500 }, "late");
    assert.deepEqual(replayed(await messagesUpTo(tab, 120, "late")), range(21, 120));
  });

  test("B11: are no more bytes of a topic than it was told", async (t) => {
    const { bus, tabs } = await scene(t, 1, TOPIC, { connect: { ringBytes: 10_000 } });
    const [tab] = tabs as [Tab];
    await publishMany(bus, TOPIC, 20, { text: "x".repeat(1_900) });
    await messagesUpTo(tab, 20, TOPIC);
    const { messages, bytes } = await kept(tab);
    assert.ok(bytes <= 10_000 && bytes > 4 * 1_900, `${bytes} bytes`);
    assert.deepEqual(messages, [4]);
    await subscribe(tab, TOPIC, { replay: 20 }, "late");
    assert.deepEqual(replayed(await messagesUpTo(tab, 20, "late")), range(17, 20));
  });

  test("B11: are 32 MiB in all, of which the largest topic gives", async (t) => {
    const topics = ["large", "larger"];
    const { bus, tabs } = await scene(t, 1, TOPIC, { connect: { ringMessages: 2_000, ringBytes: 1 << 28 } });
    const [tab] = tabs as [Tab];
    for (const topic of topics) await subscribe(tab, topic, {}, topic);
    await subscribed(tab, topics);
    await publishMany(bus, TOPIC, 3);
    for (const [topic, count] of [["large", 200], ["larger", 550]] as const) {
      // In step with the page: the server closes a connection that is a mebibyte behind.
      for (let sent = 10; sent <= count; sent += 10) {
        await publishMany(bus, topic, 10, { text: "x".repeat(50_000) });
        await reached(tab, sent, topic);
      }
    }
    const { messages, bytes } = await kept(tab);
    assert.ok(bytes <= 32 << 20 && bytes > 8 << 20, `${bytes} bytes`);
    // Rows are in the order of the topics' names.
    assert.equal(messages[0], 200, "the smaller one keeps what it has");
    assert.ok((messages[1] ?? 0) < 550 && (messages[1] ?? 0) > 100, `${messages[1]} of the larger`);
    assert.equal(messages[2], 3);
    await subscribe(tab, "larger", { replay: 10 }, "late");
    assert.deepEqual(replayed(await messagesUpTo(tab, 550, "late")), range(541, 550));
  });
});
