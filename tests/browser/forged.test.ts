/** A page of the same origin that is hostile, broken, or of another build, on the cluster's real channels. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { BusFixture, faults, NO_FAULTS } from "./bus-fixture.ts";
import { moreMessages, steady, subscribed } from "./bus-page.ts";
import { establishedConnections, until, type Tab } from "./driver/index.ts";
import { arrayOf, authority, bits, cbor, frame, FRAME, Outsider, packet, textOf, type Authority, type Item } from "./forged.ts";

const TOPIC = "prices";
const SPACING_MS = 20;
const NOTICED_WITHIN_MS = 10_000;
/** An identity that no member has. */
const STRANGER = 0xbad_0bad_0bad_0badn;
/** Topics of others that a page remembers. */
const FOREIGN_TOPICS_MAX = 500;

interface Scene {
  readonly bus: BusFixture;
  readonly tabs: Tab[];
  readonly outsider: Outsider;
  readonly known: Authority;
}

async function scene(t: TestContext, count: number): Promise<Scene> {
  const bus = await BusFixture.start(t);
  const tabs = await bus.openMany(count, { topics: [TOPIC] });
  const outsider = await Outsider.open(bus);
  bus.publisher.pace(TOPIC, steady(SPACING_MS));
  for (const tab of tabs) await moreMessages(tab, 5);
  return { bus, tabs, outsider, known: await authority(tabs[0] as Tab, TOPIC) };
}

const counters = (tab: Tab): Promise<Readonly<Record<string, number>>> => tab.evaluate(() => B.bus.snapshot().counters);

/** Waits until a counter is no less than expected, then wants it to be just that. */
async function assertCounted(tab: Tab, name: string, expected: number): Promise<void> {
  await until(`${tab.name} has counted ${expected} ${name}`, NOTICED_WITHIN_MS, async () =>
    ((await counters(tab))[name] ?? 0) >= expected);
  assert.equal((await counters(tab))[name], expected, `${name} of ${tab.name}`);
}

async function assertTrafficGoesOn({ bus, tabs }: Scene): Promise<void> {
  for (const tab of tabs) await moreMessages(tab, 50);
  assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
}

/** Posts what is no packet at all, and packets beyond the limits; gives how many. */
function postGarbage(outsider: Outsider, channel: string): Promise<number> {
  return outsider.tab.evaluate((name: string) => {
    const channel = new BroadcastChannel(name);
    const mebibyte = 1 << 20;
    const garbage: unknown[] = [
      "text", 7, null, undefined, true, {}, [], [1, 2], ["AQ=="], new Uint8Array(3), { 0: new Uint8Array(3), length: 1 },
      [new ArrayBuffer(3)], [new Uint8Array()], [new Uint8Array(100).fill(0xff)], new Map([["type", "CONTROL"]]),
      [new Uint8Array(4 * mebibyte + 1)], [new Uint8Array(3), ...Array.from({ length: 65_537 }, () => null)],
    ];
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel, no window
    for (const value of garbage) channel.postMessage(value);
    return garbage.length;
  }, channel);
}

/** Messages that all have the first payload. */
const heads = (...offsets: number[]): Item => offsets.map((offset) => [offset, 10, 0]);

/** Packets that are none: of another major, cut off, or with lengths that promise more than there is. */
function damagedPackets(from: bigint): number[][] {
  const whole = packet(from, [frame(FRAME.beat, [1, 1])]);
  return [
    packet(from, [frame(FRAME.beat, [1, 1])], 2),
    packet(from, [frame(FRAME.hello, 0, "next")], 0xffff_ffff),
    whole.slice(0, -1),
    whole.slice(0, 3),
    cbor([1, from]),
    cbor(["1", from, []]),
    cbor([1, "someone", []]),
    [...arrayOf(3n), 1, ...cbor(from), ...arrayOf(1n << 40n)],
    [...arrayOf(3n), 1, ...cbor(from), ...arrayOf(1n), ...arrayOf(2n), FRAME.data, ...arrayOf(4n), ...textOf(1n << 62n)],
    Array.from({ length: 2_000 }, () => 0x81),
  ];
}

describe("B18: frames that are forged, foreign or malformed", () => {
  test("B18: are counted and dropped by the pages that hear them on a data channel", async (t) => {
    const stage = await scene(t, 2);
    const { outsider, known: { owner, fence, routeFence } } = stage;
    const channel = outsider.data(TOPIC);
    const damaged = damagedPackets(owner);
    const garbage = await postGarbage(outsider, channel);
    for (const bytes of damaged) await outsider.post(channel, bytes);
    const unknown = [frame(999, "new"), frame(FRAME.data), frame(FRAME.head, TOPIC, routeFence), 7, "frame", [], [FRAME.data]];
    await outsider.post(channel, packet(owner, unknown));

    const data = (messages: Item, by: Item = routeFence): Item => frame(FRAME.data, TOPIC, by, "epoch", messages);
    const lower = [fence, 0];
    const wrong = [
      [STRANGER, data(heads(900_001))],
      [STRANGER, frame(FRAME.head, TOPIC, routeFence, ["epoch", 900_001], true)],
      [owner, data(heads(0))],
      [owner, data(heads(900_001, 900_003))],
      [owner, data(heads(900_002, 900_001))],
      [owner, data([[900_001, 10, 65_000]])],
      [owner, frame(FRAME.leaving, owner, false)],
      [owner, frame(FRAME.assign, fence, [], [TOPIC], true)],
      [owner, frame(FRAME.beat, fence)],
    ] as const;
    for (const [from, one] of wrong) await outsider.post(channel, packet(from, [one]), [{ seq: 666 }]);
    // No decision has generation 0: the frame cannot be read.
    await outsider.post(channel, packet(owner, [data(heads(900_001), lower)]), [{ seq: 666 }]);

    for (const tab of stage.tabs) {
      await assertCounted(tab, "badMessages", garbage + damaged.length + unknown.length + 1);
      await assertCounted(tab, "badFrames", wrong.length);
    }
    await assertTrafficGoesOn(stage);
  });

  test("B18: are counted and dropped by the nodes that hear them on the announce channel and their inboxes", async (t) => {
    const stage = await scene(t, 2);
    const { outsider, known: { owner, fence, routeFence } } = stage;
    const [first] = stage.tabs as [Tab];
    const nodes = await first.evaluate(() => B.bus.snapshot().nodes.map(({ nodeId }) => nodeId));
    assert.equal(nodes.length, 2);
    let expected = 0;
    const damaged = damagedPackets(STRANGER);
    const wrong = [
      frame(FRAME.data, TOPIC, routeFence, "epoch", [[900_001, 10, 0]]),
      frame(FRAME.head, TOPIC, routeFence, ["epoch", 900_001], true),
      frame(FRAME.leaving, owner, false),
      frame(FRAME.leaving, owner, true),
      frame(999, "new"),
    ];
    const inboxes = nodes.map((node) => outsider.inbox(bits(node)));
    for (const channel of [outsider.announce, ...inboxes]) {
      const garbage = await postGarbage(outsider, channel);
      for (const bytes of damaged) await outsider.post(channel, bytes);
      for (const one of wrong) await outsider.post(channel, packet(STRANGER, [one]));
      // Each node hears the announce channel and its own inbox.
      if (channel !== inboxes[0]) expected += garbage + damaged.length + wrong.length;
    }
    // What only a coordinator, an owner or a member may say changes nothing when a stranger says it.
    const failed = [3, [[52]]];
    const orders = [
      frame(FRAME.members, fence, [], nodes.map(bits), false, 0),
      frame(FRAME.assign, fence, [[TOPIC, STRANGER, [fence, 9], null, [2, []], 1]], [], true),
      frame(FRAME.assign, fence, [], [TOPIC], false),
      frame(FRAME.beat, fence),
      frame(FRAME.confirm, TOPIC, routeFence, failed),
      frame(FRAME.released, TOPIC, [fence, 9], null),
      frame(FRAME.want, ["forged.topic"], [TOPIC]),
    ];
    for (const channel of [outsider.announce, ...inboxes]) await outsider.post(channel, packet(STRANGER, orders));
    // Orders under the coordinator's own fence are counted: the first four, by each node on both of its channels.
    expected += 2 * 4;
    for (const tab of stage.tabs) await assertCounted(tab, "nodeBadFrames", expected);
    await assertTrafficGoesOn(stage);
    assert.deepEqual(await authority(stage.tabs[1] as Tab, TOPIC), stage.known, "nothing has moved");
    for (const tab of stage.tabs) {
      const { members, known } = await tab.evaluate(() => {
        const { nodes: rows, known: topics } = B.bus.snapshot();
        return { members: rows.map(({ nodeId }) => nodeId), known: topics };
      });
      assert.deepEqual([members, known], [nodes, [TOPIC]]);
    }
  });

  test("B18: that claim the office with a higher number cost no message", async (t) => {
    const stage = await scene(t, 3);
    const { outsider, known: { fence } } = stage;
    const [first] = stage.tabs as [Tab];
    const [incarnation = 0, epoch = 0] = fence;
    for (const claimed of [[incarnation, BigInt(epoch as bigint) + 1_000n], [BigInt(incarnation as bigint) + 1n, 1]]) {
      await outsider.post(outsider.announce, packet(STRANGER, [frame(FRAME.claim, claimed, true)]));
      await until("a member governs by a still higher number", 20_000, async () => {
        const { self, nodes } = await first.evaluate(() => B.bus.snapshot());
        const [now = "0", number = "0"] = self.epoch.split("/");
        const governs = nodes.some((node) => node.nodeId === self.coordinatorId);
        const [high, low] = [bits(now), BigInt(number)];
        return governs && (high > BigInt(claimed[0] as bigint) || (high === claimed[0] && low > BigInt(claimed[1] as bigint)));
      });
      for (const tab of stage.tabs) await moreMessages(tab, 50);
    }
    await assertTrafficGoesOn(stage);
  });

  test("B18: that name 1,200 topics fill no page's memory, nor push out what is subscribed", async (t) => {
    const stage = await scene(t, 2);
    const peer = await Peer.join(stage, "any");
    const topics = Array.from({ length: 1_200 }, (_, index) => `forged.${index}`);
    await peer.tellsCoordinator([frame(FRAME.want, topics, [])]);
    await peer.takes(topics);
    for (const tab of stage.tabs) {
      const known = await until("the page has heard of the last topic", NOTICED_WITHIN_MS, () =>
        tab.evaluate(() => {
          const { known: names } = B.bus.snapshot();
          return names.includes("forged.999") && names;
        }),
      );
      assert.ok(known.length <= FOREIGN_TOPICS_MAX + 1 && known.includes(TOPIC), `${known.length} topics`);
    }
    await assertTrafficGoesOn(stage);
  });
});

/** Fields and features that this build does not know, after all that it does. */
const NEWER: readonly Item[] = ["a field of tomorrow", [1, [2, "nested"]], null, 1n << 60n];

/** Known fields, and those of tomorrow after them. */
const newer = (...fields: readonly Item[]): Item => [...fields, ...NEWER];

/** A node made by hand: a member by the rules, that says more than this build knows. */
class Peer {
  readonly node = 0x0123_4567_89ab_cdefn;
  readonly #stage: Scene;
  readonly #coordinator: bigint;
  #fence: Item = null;

  private constructor(stage: Scene, coordinator: bigint) {
    this.#stage = stage;
    this.#coordinator = coordinator;
  }

  /** Joins as the only visible member, so that new topics are given to it. */
  static async join(stage: Scene, build: string): Promise<Peer> {
    const { outsider, tabs } = stage;
    const [first] = tabs as [Tab];
    const { coordinatorId = "" } = await first.evaluate(() => B.bus.snapshot().self);
    const peer = new Peer(stage, bits(coordinatorId));
    await outsider.tab.evaluate((lock: string) => new Promise<void>((resolve) => {
      void navigator.locks.request(lock, () => new Promise<never>(() => resolve()));
    }), outsider.lock(peer.node));
    await outsider.listen(outsider.inbox(peer.node));
    await outsider.listen(outsider.announce);
    await outsider.post(outsider.announce, packet(peer.node, [frame(FRAME.hello, 0xff, build, ...NEWER)]));
    [peer.#fence = null] = await peer.hears(FRAME.claim);
    const member = [peer.node, 77n, 0, true, 0, false, false, ...NEWER];
    const report = frame(FRAME.report, peer.#fence, peer.#fence, member, [], [], [], 0xff, build, ...NEWER);
    await peer.tellsCoordinator([frame(999, ...NEWER), report]);
    await peer.#staysAlive();
    for (const tab of tabs) {
      await tab.waitFor("has the newcomer among its members", NOTICED_WITHIN_MS, (node: string) =>
        B.bus.snapshot().nodes.some(({ nodeId }) => nodeId === node), peer.node.toString(16).padStart(16, "0"));
    }
    return peer;
  }

  tellsCoordinator(frames: readonly Item[]): Promise<void> {
    return this.#stage.outsider.post(this.#stage.outsider.inbox(this.#coordinator), packet(this.node, frames));
  }

  /** The fields of the first frame of a kind in its inbox. */
  hears(number: number): Promise<readonly Item[]> {
    const { outsider } = this.#stage;
    return until(`the peer hears frame ${number}`, NOTICED_WITHIN_MS, async () =>
      (await outsider.heard(outsider.inbox(this.node))).find((one) => one.number === number)?.fields);
  }

  /** Waits until it is given these topics, and says that it holds them; gives the authority over each. */
  async takes(topics: readonly string[]): Promise<ReadonlyMap<string, Item>> {
    const { outsider } = this.#stage;
    const given = await until("the peer is given its topics", NOTICED_WITHIN_MS, async () => {
      const assigned = (await outsider.heard(outsider.announce)).filter(({ number }) => number === FRAME.assign);
      const routes = assigned.flatMap(({ fields }) => fields[1] as readonly (readonly [string, Item, Item])[]);
      const own = new Map(routes.flatMap(([topic, owner, fence]) =>
        BigInt(owner as bigint) === this.node ? [[topic, fence]] : []));
      return topics.every((topic) => own.has(topic)) && own;
    });
    const subscribed = [2, []];
    await this.tellsCoordinator(topics.map((topic) =>
      frame(FRAME.confirm, topic, given.get(topic) ?? null, subscribed, ...NEWER)));
    return given;
  }

  /** An owner that is silent for seconds is replaced. */
  #staysAlive(): Promise<void> {
    const { outsider } = this.#stage;
    return outsider.tab.evaluate((name: string, pulse: readonly number[]) => {
      const channel = new BroadcastChannel(name);
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel, no window
      setInterval(() => channel.postMessage([Uint8Array.from(pulse)]), 500);
    }, outsider.inbox(this.#coordinator), packet(this.node, [frame(FRAME.pulse, this.#fence)]));
  }
}

describe("B19: builds", () => {
  test("B19: of one major work together, though the newer one says more; and the skew is reported once", async (t) => {
    const stage = await scene(t, 2);
    const { outsider, tabs } = stage;
    const peer = await Peer.join(stage, "a newer build");
    const topic = "newer.topic";
    const [tab] = tabs as [Tab];
    await tab.evaluate((name: string) => B.subscribe(name), topic);
    const routeFence = [...((await peer.takes([topic])).get(topic) as readonly Item[]), ...NEWER];
    const [join] = (await peer.hears(FRAME.join)) as [readonly Item[]];
    const [, client = null, call = null] = join;
    const node = await tab.evaluate(() => B.bus.snapshot().self.nodeId ?? "");
    const joined = [topic, client, call, routeFence, ["e", 6, ...NEWER], null, 0, [], false, true, ...NEWER];
    await outsider.post(outsider.inbox(bits(node)), packet(peer.node, [frame(FRAME.joined, joined, ...NEWER)]));
    await subscribed(tab, [topic]);
    const messages = [7, 8, 9].map((offset, slot) => newer(offset, 9, slot, null, null));
    const frames = [frame(999, ...NEWER), frame(FRAME.data, topic, routeFence, "e", messages, ...NEWER)];
    await outsider.post(outsider.data(topic), packet(peer.node, frames), [{ seq: 7 }, { seq: 8 }, { seq: 9 }]);
    const seqs = await until("the newer owner's messages are delivered", NOTICED_WITHIN_MS, () =>
      tab.evaluate((name: string) => {
        const found = B.log.flatMap((entry) => (entry.kind === "message" && entry.channel === name ? [entry.seq] : []));
        return found.length >= 3 && found;
      }, topic),
    );
    assert.deepEqual(seqs, [7, 8, 9]);
    assert.equal((await counters(tab))["badMessages"], 1, "the frame that is not known here was passed over");

    const coordinator = await stage.bus.coordinator(tabs);
    const reports = await until("the skew is reported", NOTICED_WITHIN_MS, () =>
      coordinator.evaluate(() => {
        const found = B.errors.filter(({ code }) => code === "BUILD_SKEW");
        return found.length > 0 && found;
      }),
    );
    assert.deepEqual(reports.map(({ source }) => source), ["coordination"]);
    await tab.evaluate((name: string) => B.unsubscribe(name), topic);
    await assertTrafficGoesOn({ ...stage, tabs: tabs.slice(1) });
  });

  test("B19: of different majors never meet: each has its own cluster under the same options", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ topics: [TOPIC] });
    // A build of another major, as far as others can see: every name that this one gives away says so.
    const other = await bus.browser.open(bus.site.url("/away.html"));
    const foreign = await other.evaluate(async (url: string) => {
      const names = new Set<string>();
      const renamed = (name: string): string => {
        names.add(name);
        return name.replace(/^motet\/1\//, "motet/2/");
      };
      const Channel = BroadcastChannel;
      globalThis.BroadcastChannel = class extends Channel {
        constructor(name: string) {
          super(renamed(name));
        }
      };
      const request = navigator.locks.request.bind(navigator.locks) as (name: string, ...rest: unknown[]) => Promise<unknown>;
      navigator.locks.request = ((name: string, ...rest: unknown[]) => request(renamed(name), ...rest)) as LockManager["request"];
      const { connect } = (await import("/motet/index.js" as string)) as typeof import("motet");
      const second = await connect({ cluster: "test", host: "page", transport: { kind: "centrifuge", url } });
      const seen: number[] = [];
      Object.assign(globalThis, { second, seen });
      await second.subscribe("prices", (message) => seen.push((message as { seq: number }).seq)).ready;
      return [...names].filter((name) => !/^motet\/1\/[0-9a-f]{32}\//.test(name));
    }, bus.server.websocketUrl);
    assert.deepEqual(foreign, [], "no channel and no lock is without the major");
    const owners = establishedConnections(bus.server.port);
    assert.equal(owners, 3, "each cluster has its own connection beside the publisher's");
    for (let seq = 1; seq <= 20; seq += 1) await bus.publisher.publish(TOPIC);
    const seen = await until("the other build has all messages", NOTICED_WITHIN_MS, () =>
      other.evaluate(() => {
        const { seen: all } = globalThis as unknown as { seen: number[] };
        return all.includes(20) && all;
      }),
    );
    assert.deepEqual(seen, Array.from({ length: 20 }, (_, index) => index + 1));
    assert.deepEqual(faults((await bus.judge([tab])).verdicts), NO_FAULTS);
    const snapshots = [
      await tab.evaluate(() => B.bus.snapshot()),
      await other.evaluate(() => (globalThis as unknown as { second: typeof B.bus }).second.snapshot()),
    ];
    for (const { self, nodes, counters: counts } of snapshots) {
      assert.deepEqual(nodes.map(({ nodeId, role }) => [nodeId, role]), [[self.nodeId, "coordinator"]]);
      const { badMessages, badFrames, nodeBadFrames, staleFrames } = counts;
      assert.deepEqual([badMessages, badFrames, nodeBadFrames, staleFrames], [0, 0, 0, 0]);
    }
  });
});
