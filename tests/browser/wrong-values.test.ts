/** Values that are not what the types want: each is told with a typed error, and the bus goes on. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ConnectOptions } from "motet";
import { BusFixture } from "./bus-fixture.ts";
import { outcome } from "./relay-fixture.ts";

const TOPIC = "prices";

/** How a page that nothing has happened in fares with options, as `code: detail`. */
async function connecting(bus: BusFixture, given: readonly unknown[]): Promise<string[]> {
  const tab = await bus.browser.open(bus.site.url("/away.html"));
  return tab.evaluate(async (all: readonly unknown[]) => {
    const { connect } = (await import("/motet/index.js" as string)) as typeof import("motet");
    return Promise.all(all.map((options) =>
      connect(options as ConnectOptions).then(
        () => "connected",
        (error: { code?: string; detail?: string }) => `${error.code}: ${error.detail}`,
      )));
  }, given);
}

describe("wrong values", () => {
  test("of a topic, a handler, a payload or an option are refused with a typed error, and leave nothing behind", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ topics: [TOPIC] });
    const found = await tab.evaluate(async (topic: string) => {
      const any = B.bus as unknown as Record<"subscribe" | "publish" | "ready" | "start", (...given: unknown[]) => Promise<void>>;
      const sub = (...given: unknown[]) => B.settle((any.subscribe(...given) as unknown as { ready: Promise<unknown> }).ready);
      const pub = (...given: unknown[]) => B.settle(any.publish(...given));
      const noTopics = [42, undefined, null, {}, Symbol("s"), [topic]];
      const throwing = { get length(): number { throw new Error("no"); } };
      const options = [
        { messageId: 5 }, { idempotencyKey: {} }, { timestamp: new Date(Number.NaN) }, { timestamp: "now" }, { signal: "abort" },
        { transfer: 1 }, { deadlineMs: Infinity }, { deadlineMs: Number.NaN }, { deadlineMs: 2 ** 32 }, { deadlineMs: -1 },
        { deadlineMs: "5" }, { deadline: 5 }, null, 7,
      ];
      const subscribing = [{ replay: -1 }, { replay: Number.NaN }, { onGap: 1 }, { signal: 1 }, { reply: 5 }, null];
      return {
        topics: [...await Promise.all(noTopics.map((one) => sub(one, () => 0))), ...await Promise.all(noTopics.map((one) => pub(one, 1)))],
        payload: await pub(topic, throwing),
        options: await Promise.all(options.map((one) => pub(topic, { seq: 1 }, one))),
        subscribing: await Promise.all([sub(topic, undefined), ...subscribing.map((one) => sub(topic, () => 0, one))]),
        waiting: await Promise.all([B.settle(any.ready(null)), B.settle(any.start({ config: 1 })), B.settle(any.start({ now: true }))]),
        still: await pub(topic, { seq: 2 }),
        pending: B.bus.snapshot().pending.length,
        closed: await B.settle(B.bus.close()),
        state: B.bus.status.state,
      };
    }, TOPIC);
    assert.deepEqual(new Set(found.topics.map(outcome)), new Set(["TOPIC_INVALID"]));
    assert.equal(outcome(found.payload), "UNCLONEABLE");
    for (const [index, one] of [...found.options, ...found.subscribing, ...found.waiting].entries()) {
      assert.equal(outcome(one), "CONFIG_INVALID", `number ${index}`);
    }
    assert.deepEqual([outcome(found.still), found.pending], ["ok", 0]);
    assert.deepEqual([outcome(found.closed), found.state], ["ok", "closed"]);
  });

  test("of options of connect() are refused, and the error names the option", async (t) => {
    const bus = await BusFixture.start(t);
    const transport = { kind: "centrifuge", url: bus.server.websocketUrl };
    const good = { cluster: "c", transport };
    const wrong: readonly (readonly [unknown, RegExp])[] = [
      [null, /^CONFIG_INVALID: options/],
      [{}, /^CONFIG_INVALID: cluster/],
      [{ cluster: "c" }, /^CONFIG_INVALID: transport/],
      [{ ...good, maxActiveNode: 1 }, /^CONFIG_INVALID: maxActiveNode: no such option/],
      [{ ...good, constructor: 1 }, /^CONFIG_INVALID: constructor: no such option/],
      [{ ...good, transport: { ...transport, tokens: 1 } }, /^CONFIG_INVALID: transport.tokens: no such option/],
      [{ ...good, transport: { ...transport, token: "abc" } }, /^CONFIG_INVALID: transport.token: a function/],
      [{ ...good, transport: { ...transport, name: 5 } }, /^CONFIG_INVALID: transport.name: a string/],
      [{ ...good, transport: { ...transport, protocol: "protobuf", data: { a: 1 } } }, /^CONFIG_INVALID: transport.data/],
      [{ ...good, user: 5 }, /^CONFIG_INVALID: user/],
      [{ ...good, autoStart: "no" }, /^CONFIG_INVALID: autoStart/],
      [{ ...good, workerUrl: "http://[" }, /^CONFIG_INVALID: workerUrl/],
      [{ ...good, wasmUrl: { pages: "/x" } }, /^CONFIG_INVALID: wasmUrl.pages: no such option/],
      [{ ...good, transport: { kind: "websocket", url: transport.url } }, /^TRANSPORT_UNSUPPORTED: kind "websocket"$/],
      [{ ...good, transport: { kind: "centrifuge" } }, /^TRANSPORT_UNSUPPORTED: URL of type undefined$/],
      [{ ...good, transport: { kind: "centrifuge", url: "http://x/y?token=z" } }, /^TRANSPORT_UNSUPPORTED: URL "http:\/\/x\/y"$/],
    ];
    const told = await connecting(bus, wrong.map(([options]) => options));
    for (const [index, [, pattern]] of wrong.entries()) assert.match(told[index] ?? "", pattern);
  });

  test("of a token function are told as TOKEN_UNAVAILABLE, and nothing is left unhandled", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ connect: { autoStart: false } });
    for (const given of [5, {}, true]) {
      const found = await tab.evaluate(async (url: string, wrong: unknown) => {
        const { connect } = (await import("/motet/index.js" as string)) as typeof import("motet");
        const unhandled: string[] = [];
        addEventListener("unhandledrejection", ({ reason }) => unhandled.push(String(reason)));
        const token = (): string => wrong as string;
        const other = await connect({ cluster: `wrong ${typeof wrong}`, transport: { kind: "centrifuge", url, token } });
        const told = await new Promise<string>((resolve) => {
          other.onError(({ source, error }) => resolve(`${source}: ${error.code}`));
          other.subscribe("prices", () => undefined);
        });
        await other.close();
        return { told, unhandled };
      }, bus.server.websocketUrl, given);
      assert.deepEqual(found, { told: "transport: TOKEN_UNAVAILABLE", unhandled: [] });
    }
  });
});
