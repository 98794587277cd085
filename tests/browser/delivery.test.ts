/** Messages that are delivered once, whatever is said twice; and binary ones, delivered as they are. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import type { ConnectOptions } from "motet";
import { BusFixture, faults, NO_FAULTS } from "./bus-fixture.ts";
import { moreMessages, steady } from "./bus-page.ts";
import { until, type Tab } from "./driver/index.ts";
import { Outsider } from "./forged.ts";
import { gaps, messagesUpTo, range, seqs } from "./message-log.ts";

const TOPIC = "prices";
const SPACING_MS = 20;
const NOTICED_WITHIN_MS = 10_000;

interface Scene {
  readonly bus: BusFixture;
  readonly tabs: Tab[];
}

async function scene(t: TestContext, count: number, connect: Partial<ConnectOptions> = {}): Promise<Scene> {
  const bus = await BusFixture.start(t, { connect });
  return { bus, tabs: await bus.openMany(count, { topics: [TOPIC] }) };
}

const counter = (tab: Tab, name: string): Promise<number> =>
  tab.evaluate((key: string) => B.bus.snapshot().counters[key] ?? 0, name);

/** Publishes through the bus: the log of what was accepted tells the two publications of an id apart. */
const publish = (tab: Tab, from: number, messageIds: readonly string[]): Promise<boolean[]> =>
  tab.evaluate(async (first: number, ids: readonly string[]) => {
    const batch = ids.map((messageId, index) => ({ topic: "prices", payload: { seq: first + index }, options: { messageId } }));
    return (await B.bus.publishBatch(batch)).map(({ ok }) => ok);
  }, from, messageIds);

describe("B14: a message is delivered once", () => {
  test("B14: by its position, though its frame is posted again and again", async (t) => {
    const { bus, tabs } = await scene(t, 3);
    const outsider = await Outsider.open(bus);
    await outsider.tab.evaluate((name: string) => {
      const echo = new BroadcastChannel(name);
      const channel = new BroadcastChannel(name);
      let echoed = 0;
      Object.assign(globalThis, { echoed: () => echoed });
      const own = new Set<string>();
      // Its own posts come back by the other channel object.
      echo.onmessage = ({ data }: MessageEvent<unknown[]>) => {
        const frames = String(data[0]);
        if (own.delete(frames)) return;
        own.add(frames);
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel, no window
        channel.postMessage(data);
        echoed += 1;
      };
    }, outsider.data(TOPIC));
    bus.publisher.pace(TOPIC, steady(SPACING_MS));
    for (const tab of tabs) await moreMessages(tab, 50);
    const echoed = await outsider.tab.evaluate(() => (globalThis as unknown as { echoed(): number }).echoed());
    assert.ok(echoed >= 20, `${echoed} posts were repeated`);
    assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
    for (const tab of tabs) assert.ok((await counter(tab, "repeats")) >= 20, "each is counted");
  });

  test("B14: by its id, in every page that asks for it, after a change of owner too", async (t) => {
    const { bus, tabs } = await scene(t, 3, { dedupeById: true });
    assert.deepEqual(await publish(tabs[0] as Tab, 1, ["a", "b", "a"]), [true, true, true]);
    const owner = await bus.owner(TOPIC, tabs);
    const survivors = tabs.filter((tab) => tab !== owner);
    for (const tab of survivors) await messagesUpTo(tab, 2, TOPIC);
    await owner.kill();
    await bus.owner(TOPIC, survivors);
    assert.deepEqual(await publish(survivors[0] as Tab, 4, ["b", "c"]), [true, true]);
    for (const tab of survivors) {
      assert.deepEqual(seqs(await messagesUpTo(tab, 5, TOPIC)), [1, 2, 5]);
      assert.deepEqual([await counter(tab, "idRepeats"), await gaps(tab)], [2, []]);
    }
    await until("the server's log has all five", NOTICED_WITHIN_MS, () => bus.server.publications().length === 5);
  });

  test("B14: but as often as it is published where nobody asks for that", async (t) => {
    const { tabs } = await scene(t, 2);
    await publish(tabs[0] as Tab, 1, ["a", "a", "b"]);
    for (const tab of tabs) assert.deepEqual(seqs(await messagesUpTo(tab, 3, TOPIC)), [1, 2, 3]);
  });

  test("B14: by its id as long as that is one of the last thousand", async (t) => {
    const { tabs } = await scene(t, 2, { dedupeById: true, publishQueue: 2_000 });
    const [sender] = tabs as [Tab];
    const others = range(1, 999).map((number) => `other ${number}`);
    await publish(sender, 1, ["a", ...others, "a"]);
    await publish(sender, 1_002, ["one more", "a", "end"]);
    for (const tab of tabs) {
      assert.deepEqual(seqs(await messagesUpTo(tab, 1_004, TOPIC)), [...range(1, 1_000), ...range(1_002, 1_004)]);
    }
  });
});

describe("B16: binary payloads", () => {
  interface BinaryPage {
    readonly got: { readonly kind: string; readonly bytes: number[] }[];
  }

  async function listeners(bus: BusFixture): Promise<Tab[]> {
    const transport = { kind: "centrifuge", url: bus.server.websocketUrl, protocol: "protobuf" } as const;
    const tabs = await bus.openMany(2, { connect: { transport } });
    for (const tab of tabs) {
      await tab.evaluate(async () => {
        const got: BinaryPage["got"] = [];
        Object.assign(globalThis, { got });
        await B.bus.subscribe("frames", (message) => {
          got.push({ kind: Object.prototype.toString.call(message), bytes: [...(message as Uint8Array)] });
        }).ready;
      });
    }
    return tabs;
  }

  const got = (tab: Tab, count: number): Promise<BinaryPage["got"]> =>
    until(`the page has ${count} frames`, NOTICED_WITHIN_MS, () =>
      tab.evaluate((least: number) => {
        const { got: all } = globalThis as unknown as { got: BinaryPage["got"] };
        return all.length >= least && all;
      }, count),
    );

  test("B16: are the same bytes in every page, whole, from a part of a buffer, and empty", async (t) => {
    const bus = await BusFixture.start(t);
    const tabs = await listeners(bus);
    const kept = await tabs[0]?.evaluate(async () => {
      const all = Uint8Array.from({ length: 256 }, (_, index) => index);
      await B.bus.publish("frames", all);
      await B.bus.publish("frames", all.buffer);
      await B.bus.publish("frames", all.subarray(10, 13));
      await B.bus.publish("frames", new Uint8Array());
      return all.byteLength;
    });
    assert.equal(kept, 256, "without transfer the page keeps its buffer");
    for (const tab of tabs) {
      const kind = "[object Uint8Array]";
      const bytes = [range(0, 255), range(0, 255), [10, 11, 12], []];
      assert.deepEqual(await got(tab, 4), bytes.map((one) => ({ kind, bytes: one })));
    }
  });

  test("B16: reach the server as they are, and leave the page that transfers them", async (t) => {
    const bus = await BusFixture.start(t);
    const tabs = await listeners(bus);
    const raw = await rawSubscriber(t, bus.server.websocketUrl, "frames");
    const left = await tabs[0]?.evaluate(async () => {
      const large = new Uint8Array(60_000).fill(200);
      const part = large.subarray(1, 59_999);
      const whole = new ArrayBuffer(3);
      await B.bus.publish("frames", part, { transfer: true });
      await B.bus.publish("frames", whole, { transfer: true });
      const gone = await B.settle(B.bus.publish("frames", part, { transfer: true }));
      return { lengths: [large.byteLength, part.byteLength, whole.byteLength], gone: gone.ok };
    });
    assert.deepEqual(left?.lengths, [0, 0, 0], "what was transferred is detached");
    await until("the raw subscriber has both", NOTICED_WITHIN_MS, () => raw.length >= 2);
    assert.deepEqual(raw[0], Uint8Array.from({ length: 59_998 }, () => 200));
    assert.deepEqual(raw[1], new Uint8Array(3));
    for (const tab of tabs) assert.equal((await got(tab, 2))[0]?.bytes.length, 59_998);
  });

  test("B16: are refused with a code where the encoding is JSON, and the topic goes on", async (t) => {
    const { bus, tabs } = await scene(t, 2);
    const codes = await tabs[0]?.evaluate(async () => {
      const payloads = [new Uint8Array(2), new ArrayBuffer(2)];
      const outcomes = await Promise.all(payloads.map((payload) => B.settle(B.bus.publish("prices", payload))));
      return outcomes.map((outcome) => (outcome.ok ? null : outcome.error.code));
    });
    assert.deepEqual(codes, ["CONFIG_INVALID", "CONFIG_INVALID"]);
    bus.publisher.pace(TOPIC, steady(SPACING_MS));
    for (const tab of tabs) await moreMessages(tab, 5);
    assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
  });
});

/** The payloads of a channel as a client that is not ours gets them, in Protobuf. */
async function rawSubscriber(t: TestContext, websocketUrl: string, channel: string): Promise<Uint8Array[]> {
  const { Centrifuge } = await import("centrifuge/build/protobuf");
  const { WebSocket } = await import("ws");
  const client = new Centrifuge(websocketUrl, { websocket: WebSocket });
  t.after(() => client.disconnect());
  const received: Uint8Array[] = [];
  const subscription = client.newSubscription(channel);
  subscription.on("publication", ({ data }) => received.push(Uint8Array.from(data as Uint8Array)));
  subscription.subscribe();
  client.connect();
  await subscription.ready(NOTICED_WITHIN_MS);
  return received;
}
