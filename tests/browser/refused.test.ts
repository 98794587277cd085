/** B15: what the server refuses for good reaches every subscriber and is not tried again unasked. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import type { Subscription } from "motet";
import { BusFixture } from "./bus-fixture.ts";
import { moreMessages, steady } from "./bus-page.ts";
import { DeadlineExceeded, until, type Tab } from "./driver/index.ts";
import { outcome, publishFrom, relayedBus, type RelayedBus } from "./relay-fixture.ts";
import type { Command } from "./relay.ts";
import { startServer } from "./server.ts";

const TOPIC = "prices";
const SPACING_MS = 20;
const SOON_MS = 15_000;
/** How long something that must not happen is watched for. */
const QUIET_FOR_MS = 2_000;
/** What is refused does not wait for its deadline, which is 10 s. The first has to wait for the connection, on a busy machine. */
const AT_ONCE_MS = 5_000;

declare global {
  /** Subscription of a topic that the server refuses. */
  var refused: Subscription;
}

const subscribes = ({ relay }: RelayedBus, channel: string): Command[] =>
  relay.commands.filter((command) => command.kind === "subscribe" && command.channel === channel);

/** Watches for a while that something does not come about. */
const never = (what: string, probe: () => boolean): Promise<void> =>
  assert.rejects(until(what, QUIET_FOR_MS, probe), DeadlineExceeded);

/** Subscribes the topic that will be refused, and waits until the page was told so. */
async function refusedIn(tab: Tab, topic: string): Promise<{ code: string; serverCode: number | undefined; state: string }> {
  return tab.evaluate(async (name: string) => {
    globalThis.refused = B.bus.subscribe(name, () => undefined);
    const settled = await refused.ready.then(() => undefined, (error) => error as { code: string; serverCode?: number });
    return { code: settled?.code ?? "ready", serverCode: settled?.serverCode, state: refused.state };
  }, topic);
}

const routeOf = (tab: Tab, topic: string): Promise<{ owner: string; state: string; error: string | undefined } | undefined> =>
  tab.evaluate((name: string) => {
    const found = B.bus.snapshot().routes.find((route) => route.topic === name);
    return found && { owner: found.owner, state: found.state, error: found.error };
  }, topic);

describe("B15: a topic that the server refuses for good", () => {
  for (const code of [102, 103, 106]) {
    test(`B15: with ${code} fails for every subscriber, is tried by no other node, and comes with retry()`, async (t) => {
      const scene = await relayedBus(t);
      const tabs = await scene.openMany(3, { topics: [TOPIC] });
      const secret = "secret";
      scene.relay.rules = {
        command: ({ kind, channel }) =>
          kind === "subscribe" && channel === secret ? { error: { code, message: "refused" } } : "pass",
      };
      const told = await Promise.all(tabs.map((tab) => refusedIn(tab, secret)));
      for (const one of told) assert.deepEqual(one, { code: "SUBSCRIBE_REJECTED", serverCode: code, state: "failed" });
      // Each new subscriber has it tried once more.
      for (const tab of tabs) {
        await tab.waitFor("is told by the route", SOON_MS, (topic: string) =>
          B.bus.snapshot().routes.some((route) => route.topic === topic && route.state === "failed"), secret);
      }
      const owners = await Promise.all(tabs.map((tab) => routeOf(tab, secret)));
      for (const route of owners) assert.deepEqual([route?.state, route?.error], ["failed", "SUBSCRIBE_REJECTED"]);
      assert.equal(new Set(owners.map((route) => route?.owner)).size, 1);

      const asked = subscribes(scene, secret);
      assert.equal(new Set(asked.map(({ connection }) => connection)).size, 1, "it hopped to another node");
      scene.relay.rules = {};
      await never("it is tried again unasked", () => subscribes(scene, secret).length > asked.length);
      const owner = await scene.bus.owner(secret, tabs);
      const [bystander] = tabs.filter((tab) => tab !== owner) as [Tab];
      await bystander.evaluate(() => B.bus.retry());
      for (const tab of tabs) await tab.waitFor("is subscribed after all", SOON_MS, () => refused.state === "ready");
      assert.equal(outcome(await publishFrom(bystander, secret, 1)), "ok");
    });
  }

  test("B15: for a while only is tried again by itself", async (t) => {
    const scene = await relayedBus(t);
    let refusals = 0;
    scene.relay.rules = {
      command: ({ kind }) =>
        kind === "subscribe" && (refusals += 1) <= 3 ? { error: { code: 100, message: "internal", temporary: true } } : "pass",
    };
    await scene.open({ topics: [TOPIC] });
    assert.equal(subscribes(scene, TOPIC).length, 4);
  });
});

describe("B15: a connection that the server refuses for good", () => {
  const refusals: readonly (readonly [string, number, (scene: RelayedBus) => void])[] = [
    ["by close code 3500", 3_500, ({ relay }) => relay.dismiss(3_500, "invalid token")],
    ["by close code 3999", 3_999, ({ relay }) => relay.dismiss(3_999, "gone for good")],
    ["by error 103 to its connect", 103, ({ relay }) => {
      relay.rules = { command: ({ kind }) => (kind === "connect" ? { error: { code: 103, message: "no" } } : "pass") };
      relay.cut();
    }],
  ];
  for (const [how, serverCode, refuse] of refusals) {
    test(`B15: ${how} fails the routes of its topics for every subscriber, and comes back with the owner's retry()`, async (t) => {
      const scene = await relayedBus(t);
      const tabs = await scene.openMany(3, { topics: [TOPIC] });
      const owner = await scene.bus.owner(TOPIC, tabs);
      refuse(scene);
      for (const tab of tabs) {
        await tab.waitFor("is told by the route", SOON_MS, (topic: string) =>
          B.bus.snapshot().routes.some((route) => route.topic === topic && route.state === "failed"), TOPIC);
        assert.equal((await routeOf(tab, TOPIC))?.error, "CONNECT_REJECTED");
      }
      const error = await owner.evaluate(() => {
        const { state, error } = B.bus.status;
        return { state, code: error?.code, serverCode: error?.serverCode };
      });
      assert.deepEqual(error, { state: "degraded", code: "CONNECT_REJECTED", serverCode });
      const known = scene.relay.connections.length;
      scene.relay.rules = {};
      await never("it is tried again unasked", () => scene.relay.connections.length > known);

      await owner.evaluate(() => B.bus.retry());
      scene.bus.publisher.pace(TOPIC, steady(SPACING_MS));
      for (const tab of tabs) await moreMessages(tab, 20);
      assert.equal(scene.relay.subscriptions().join(), TOPIC);
      await owner.waitFor("runs", SOON_MS, () => B.bus.status.state === "running");
    });
  }
});

test("B15: a publication over a connection refused for good is rejected at once, and no other is tried before retry()", async (t) => {
  const scene = await relayedBus(t);
  const tab = await scene.open();
  scene.relay.rules = { command: ({ kind }) => (kind === "connect" ? { error: { code: 101, message: "no" } } : "pass") };
  for (const seq of [1, 2, 3]) {
    const { code, serverCode, tookMs } = await tab.evaluate(async (topic: string, number: number) => {
      const askedMs = performance.now();
      const error = await B.bus.publish(topic, { seq: number }).then(() => undefined, (one) => one as { code: string; serverCode?: number });
      return { code: error?.code, serverCode: error?.serverCode, tookMs: performance.now() - askedMs };
    }, TOPIC, seq);
    assert.deepEqual([code, serverCode], ["CONNECT_REJECTED", 101]);
    assert.ok(tookMs < AT_ONCE_MS, `told after ${tookMs} ms`);
  }
  assert.equal(scene.relay.connections.length, 1);
  scene.relay.rules = {};
  assert.equal(outcome(await publishFrom(tab, TOPIC, 4)), "CONNECT_REJECTED");
  await tab.evaluate(() => B.bus.retry());
  assert.equal(outcome(await publishFrom(tab, TOPIC, 5)), "ok");
  assert.equal(scene.relay.connections.length, 2);
});

test("B15: a connection refused for good comes back with retry() of a tab that does not own the topic", async (t) => {
  const scene = await relayedBus(t);
  const tabs = await scene.openMany(2, { topics: [TOPIC] });
  const owner = await scene.bus.owner(TOPIC, tabs);
  const [bystander] = tabs.filter((tab) => tab !== owner) as [Tab];
  scene.relay.dismiss(3_500, "invalid token");
  await bystander.waitFor("is told by the route", SOON_MS, () =>
    B.bus.snapshot().routes.some(({ state }) => state === "failed"));
  await bystander.evaluate(() => B.bus.retry());
  scene.bus.publisher.pace(TOPIC, steady(SPACING_MS));
  for (const tab of tabs) await moreMessages(tab, 20);
});

test("B15: a refused token is not used again: retry() asks the application for another", async (t) => {
  const secret = "a secret of this test";
  const config = `
[client]
allowed_origins = ["*"]
[client.token]
hmac_secret_key = "${secret}"
[channel.without_namespace]
allow_subscribe_for_client = true
`;
  const server = await startServer({ config });
  t.after(() => server.close());
  // The fixture's own publisher has no token, so that the page alone uses the server that wants one.
  const bus = await BusFixture.start(t);
  const tab = await bus.open({ connect: { autoStart: false } });
  const found = await tab.evaluate(async (url: string, tokens: string[]) => {
    const { connect } = (await import("/motet/index.js" as string)) as typeof import("motet");
    const other = await connect({ cluster: "signed", transport: { kind: "centrifuge", url, token: () => tokens.shift() ?? null } });
    const refusal = new Promise<string>((resolve) => other.onError(({ source, error }) => resolve(`${source}: ${error.code}`)));
    const subscription = other.subscribe("prices", () => undefined);
    const told = [await refusal, await subscription.ready.then(() => "ready", (error: { code: string }) => error.code)];
    const left = tokens.length;
    other.retry();
    await new Promise<void>((resolve) => {
      other.status.subscribe(({ state }) => {
        if (state === "running" && subscription.state !== "failed") resolve();
      });
    });
    return { told, left, asked: tokens.length };
  }, server.websocketUrl, [sign("another secret"), sign(secret)]);
  assert.deepEqual(found, { told: ["transport: CONNECT_REJECTED", "CONNECT_REJECTED"], left: 1, asked: 0 });
});

/** A connection token (JWT, HS256) for the user "reader". */
function sign(secret: string): string {
  const text = [{ alg: "HS256", typ: "JWT" }, { sub: "reader" }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}
