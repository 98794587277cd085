/** B25: the named states of a bus, as its page sees them, and which of several calls wins. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { BusFixture, faults, NO_FAULTS } from "./bus-fixture.ts";
import { moreMessages, steady, subscribed } from "./bus-page.ts";
import { until, type Tab } from "./driver/index.ts";
import { outcome, relayedBus } from "./relay-fixture.ts";

const TOPIC = "prices";
const SOON_MS = 15_000;
const NODE_MODULE = new URL("../../packages/motet/dist/wasm/node/motet_web_bg.wasm", import.meta.url);

/** The states the page was told, each once in a row. */
const states = (tab: Tab): Promise<string[]> =>
  tab.evaluate(() => B.statuses.map(({ state }) => state).filter((state, index, all) => state !== all[index - 1]));

/** A page that is loaded again has no bus at first. */
const reaches = (tab: Tab, state: string): Promise<unknown> =>
  tab.waitFor(`is ${state}`, SOON_MS, (wanted: string) => (B.bus as typeof B.bus | undefined)?.status.state === wanted, state);

/** Locks of the whole browser that the library holds or waits for. */
const locks = (tab: Tab): Promise<string[]> =>
  tab.evaluate(async () => {
    const { held = [], pending = [] } = await navigator.locks.query();
    return [...held, ...pending].map(({ name }) => name ?? "").sort();
  });

describe("B25: the state is told", () => {
  test("B25: idle, starting, running, closing and closed, each when it is so", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ connect: { autoStart: false } });
    assert.deepEqual(await states(tab), ["idle"]);
    await tab.evaluate(() => B.bus.start());
    assert.deepEqual(await states(tab), ["idle", "starting", "running"]);
    await tab.evaluate(() => B.bus.close());
    assert.deepEqual(await states(tab), ["idle", "starting", "running", "closing", "closed"]);
  });

  test("B25: suspended in the back/forward cache and when frozen, then recovering and running", async (t) => {
    const { bus, relay, openMany } = await relayedBus(t);
    const tabs = await openMany(2, { topics: [TOPIC] });
    const owner = await bus.owner(TOPIC, tabs);
    await owner.leave(bus.site.url("/away.html"));
    const { persisted, reasons } = await owner.back();
    assert.ok(persisted, `not restored: ${reasons.join()}`);
    await reaches(owner, "running");
    const cached = ["starting", "running", "suspended", "recovering", "running"];
    assert.deepEqual((await states(owner)).filter((state) => state !== "idle"), cached);
    await owner.freeze();
    await owner.resume();
    await reaches(owner, "running");
    assert.deepEqual((await states(owner)).slice(-3), ["suspended", "recovering", "running"]);
    assert.equal(relay.open, 1);
  });

  test("B25: recovering while the owner has no connection, and running for those who need none", async (t) => {
    const { bus, relay, openMany } = await relayedBus(t);
    const tabs = await openMany(2, { topics: [TOPIC] });
    const owner = await bus.owner(TOPIC, tabs);
    const [other] = tabs.filter((tab) => tab !== owner) as [Tab];
    const before = await states(other);
    relay.refuse(true);
    relay.cut();
    await reaches(owner, "recovering");
    relay.refuse(false);
    await reaches(owner, "running");
    assert.deepEqual((await states(owner)).slice(-3), ["running", "recovering", "running"]);
    assert.deepEqual(await states(other), before);
  });

  test("B25: degraded with the reason while the server refuses the owner, and running after retry()", async (t) => {
    const { relay, open } = await relayedBus(t);
    const tab = await open({ topics: [TOPIC] });
    relay.dismiss(3_500, "invalid token");
    await reaches(tab, "degraded");
    assert.equal(await tab.evaluate(() => B.bus.status.error?.code), "CONNECT_REJECTED");
    await tab.evaluate(() => B.bus.ready());
    await tab.evaluate(() => B.bus.retry());
    await reaches(tab, "running");
    assert.equal(await tab.evaluate(() => B.bus.status.error), undefined);
  });

  test("B25: failed with the reason when no host can run the node, and start() begins again", async (t) => {
    let broken = true;
    const bus = await BusFixture.start(t, {
      site: {
        handlers: {
          "/node.wasm": (_, response) => {
            response.setHeader("content-type", "application/wasm");
            response.end(broken ? "this is no module" : readFileSync(NODE_MODULE));
          },
        },
      },
    });
    const tab = await bus.open({ connect: { wasmUrl: { node: "/node.wasm" } } });
    await reaches(tab, "failed");
    const told = await tab.evaluate(async () => ({
      status: B.bus.status.error?.code,
      ready: await B.settle(B.bus.ready()),
      publish: await B.settle(B.bus.publish("prices", { seq: 1 })),
    }));
    assert.deepEqual([told.status, outcome(told.ready), outcome(told.publish)], ["WASM_INVALID", "WASM_INVALID", "WASM_INVALID"]);
    await tab.evaluate((topic: string) => B.subscribe(topic), TOPIC);
    assert.equal(outcome(await tab.evaluate(() => B.settle(B.bus.start()))), "WASM_INVALID");

    broken = false;
    await tab.evaluate(() => B.bus.start());
    bus.publisher.pace(TOPIC, steady(20));
    await moreMessages(tab, 5);
    assert.deepEqual((await states(tab)).slice(-3), ["failed", "starting", "running"]);
    assert.equal(await tab.evaluate(() => B.bus.status.error), undefined);
  });

  test("B25: a bus that has failed starts again with another config, and refuses one that it cannot take", async (t) => {
    const bus = await BusFixture.start(t, {
      site: {
        handlers: {
          "/broken.wasm": (_, response) => {
            response.setHeader("content-type", "application/wasm");
            response.end("this is no module");
          },
        },
      },
    });
    const tab = await bus.open({ connect: { wasmUrl: { node: "/broken.wasm" } } });
    await reaches(tab, "failed");
    const refused = await tab.evaluate(async () => [
      await B.settle(B.bus.start({ config: { lingerMs: 5 } as object })),
      await B.settle(B.bus.start({ config: { transport: { url: "ws://localhost:1/other" } as object } })),
      await B.settle(B.bus.start({ config: { host: "nowhere" as "page" } })),
    ]);
    assert.deepEqual(refused.map(outcome), ["CONFIG_INVALID", "CLUSTER_CONFIG_MISMATCH", "CONFIG_INVALID"]);
    assert.deepEqual((await states(tab)).slice(-1), ["failed"]);

    await tab.evaluate(() => B.bus.start({ config: { wasmUrl: {}, host: "page" } }));
    await tab.evaluate((topic: string) => B.subscribe(topic), TOPIC);
    await subscribed(tab, [TOPIC]);
    assert.equal(await tab.evaluate(() => B.bus.status.host?.kind), "page");
    const again = await tab.evaluate(async () => {
      const { connect } = (await import("/motet/index.js" as string)) as typeof import("motet");
      const options = JSON.parse(new URLSearchParams(location.search).get("connect") ?? "");
      return B.settle(connect(options).then(() => undefined));
    });
    assert.equal(outcome(again), "CLUSTER_CONFIG_MISMATCH", "whoever asks for the host of before does not get this one");
    const late = await tab.evaluate(() => B.settle(B.bus.start({ config: { host: "shared" } })));
    assert.equal(outcome(late), "CONFIG_INVALID");
    bus.publisher.pace(TOPIC, steady(20));
    await moreMessages(tab, 20);
    assert.deepEqual(faults((await bus.judge([tab])).verdicts), NO_FAULTS);
  });
});

describe("B25: calls at the same time", () => {
  test("B25: two starts share one promise and one node", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ connect: { autoStart: false } });
    const found = await tab.evaluate(async () => {
      const [first, second] = [B.bus.start(), B.bus.start()];
      await second;
      const later = B.bus.start();
      await later;
      return { same: first === second, workers: B.workers() };
    });
    assert.deepEqual(found, { same: true, workers: 1 });
  });

  test("B25: a close during the start wins, awaits what was being opened, and leaves nothing", async (t) => {
    const { bus, relay, open } = await relayedBus(t);
    const other = await open();
    await reaches(other, "running");
    const before = await locks(other);
    const tab = await open({ connect: { autoStart: false } });
    relay.rules = { command: () => "hold" };
    const told = await tab.evaluate(async (topic: string) => {
      B.subscribe(topic);
      const started = B.settle(B.bus.start());
      const closed = B.bus.close();
      const again = B.settle(B.bus.start());
      await closed;
      return { started: await started, again: await again, state: B.bus.status.state };
    }, TOPIC);
    assert.deepEqual([outcome(told.started), outcome(told.again), told.state], ["CLOSED", "CLOSED", "closed"]);
    await until("only the other tab's locks are left", SOON_MS, async () => (await locks(other)).join() === before.join());
    await until("no connection is left", SOON_MS, () => relay.open === 0);
    await other.waitFor("is alone", SOON_MS, () => B.bus.snapshot().nodes.length === 1);
    assert.equal(bus.server.publications().length, 0);
  });

  test("B25: a close while the connection is being opened ends it", async (t) => {
    const { relay, openMany } = await relayedBus(t);
    const [tab, other] = await openMany(2) as [Tab, Tab];
    relay.rules = { command: () => "hold" };
    await tab.evaluate((topic: string) => B.subscribe(topic), TOPIC);
    await until("a connect command waits", SOON_MS, () => relay.commands.some(({ kind }) => kind === "connect"));
    await tab.evaluate(() => B.bus.close());
    await until("no connection is left", SOON_MS, () => relay.open === 0);
    relay.release();
    await other.waitFor("is alone", SOON_MS, () => B.bus.snapshot().nodes.length === 1);
    assert.deepEqual((await states(tab)).slice(-2), ["closing", "closed"]);
  });

  test("B25: close and connect in turns end as the last of them says", async (t) => {
    const { relay, open } = await relayedBus(t);
    const other = await open({ topics: [TOPIC] });
    const before = await locks(other);
    const tab = await open({ topics: [TOPIC] });
    const state = await tab.evaluate(async (address: string) => {
      const { connect } = (await import("/motet/index.js" as string)) as typeof import("motet");
      const again = (): Promise<typeof B.bus> =>
        connect({ cluster: "test", transport: { kind: "centrifuge", url: address } });
      const closing = [B.bus.close()];
      for (const _ of [1, 2, 3]) closing.push((await again()).close());
      const last = await again();
      await Promise.all(closing);
      await last.ready();
      Object.assign(globalThis, { last });
      return last.status.state;
    }, relay.url);
    assert.equal(state, "running");
    await other.waitFor("sees two nodes", SOON_MS, () => B.bus.snapshot().nodes.length === 2);
    await tab.evaluate(() => (globalThis as unknown as { last: typeof B.bus }).last.close());
    await other.waitFor("is alone", SOON_MS, () => B.bus.snapshot().nodes.length === 1);
    await until("only the other tab's locks are left", SOON_MS, async () => (await locks(other)).join() === before.join());
  });

  test("B25: a status listener may close the bus that it hears of", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ connect: { autoStart: false } });
    const found = await tab.evaluate(async () => {
      const closed = new Promise<void>((resolve) => {
        B.bus.status.subscribe(({ state }) => {
          if (state === "running") void B.bus.close().then(resolve);
        });
      });
      const started = await B.settle(B.bus.start());
      await closed;
      return { started: started.ok, state: B.bus.status.state };
    });
    assert.deepEqual(found, { started: true, state: "closed" });
    await until("no lock is left", SOON_MS, async () => (await locks(tab)).length === 0);
  });
});

describe("B25: a page that is hidden", () => {
  test("B25: while it connects has not failed, and runs when it is shown again, however often", async (t) => {
    const { bus, relay, open } = await relayedBus(t);
    const tab = await open({ connect: { autoStart: false } });
    relay.rules = { command: () => "hold" };
    await tab.evaluate((topic: string) => {
      B.subscribe(topic);
      void B.settle(B.bus.start());
    }, TOPIC);
    for (const visit of [1, 2, 3]) {
      // Chromium does not keep a page that leaves in the very moment in which its worker asks for its first locks.
      await until("its node asks to connect", SOON_MS, () =>
        relay.commands.filter(({ kind }) => kind === "connect").length >= visit);
      await tab.leave(bus.site.url("/away.html"));
      const { persisted, reasons } = await tab.back();
      assert.ok(persisted, `not restored: ${reasons.join()}`);
    }
    relay.rules = {};
    relay.release();
    await reaches(tab, "running");
    await subscribed(tab, [TOPIC]);
    const told = await states(tab);
    assert.deepEqual(told.filter((state) => state === "failed" || state === "degraded"), []);
    await until("one connection stands", SOON_MS, () => relay.open === 1);
    bus.publisher.pace(TOPIC, steady(20));
    await moreMessages(tab, 20);
    assert.deepEqual(faults((await bus.judge([tab])).verdicts), NO_FAULTS);
  });

  test("B25: while its node is being started has not failed, and leaves no node behind", async (t) => {
    const { bus, openMany } = await relayedBus(t);
    const [leaving, other] = await openMany(2) as [Tab, Tab];
    // A page that was just loaded has hardly made its worker.
    await leaving.reload();
    await leaving.leave(bus.site.url("/away.html"));
    await until("only the other tab has a node", SOON_MS, () =>
      other.evaluate(async () => {
        const { held = [] } = await navigator.locks.query();
        return held.filter(({ name }) => name?.includes("node/")).length === 1;
      }));
    await leaving.back();
    await reaches(leaving, "running");
    const told = await states(leaving);
    assert.deepEqual(told.filter((state) => state === "failed" || state === "degraded"), []);
  });

  test("B25: rejects ready() and start() with a typed error, and an explicit start brings nothing to life before it is shown", async (t) => {
    const { bus, relay, openMany } = await relayedBus(t);
    const [tab, other] = await openMany(2, { topics: [TOPIC] }) as [Tab, Tab];
    await tab.evaluate(() => {
      const asked: Promise<unknown>[] = [];
      Object.assign(globalThis, { asked });
      document.addEventListener("freeze", () => {
        asked.push(B.settle(B.bus.ready()), B.settle(B.bus.start()), B.settle(B.bus.publish("prices", { seq: 1 })));
      });
    });
    await tab.freeze();
    await other.waitFor("is alone", SOON_MS, () => B.bus.snapshot().nodes.length === 1);
    await bus.owner(TOPIC, [other]);
    await until("one connection stands", SOON_MS, () => relay.open === 1);
    await tab.resume();
    await reaches(tab, "running");
    const codes = await tab.evaluate(async () => {
      const { asked } = globalThis as unknown as { asked: ReturnType<typeof B.settle>[] };
      return (await Promise.all(asked)).map((one) => (one.ok ? "ok" : one.error.code));
    });
    assert.deepEqual(codes, ["SUSPENDED", "SUSPENDED", "SUSPENDED"]);
    bus.publisher.pace(TOPIC, steady(20));
    for (const one of [tab, other]) await moreMessages(one, 20);
    assert.deepEqual(faults((await bus.judge([tab, other])).verdicts), NO_FAULTS);
  });

  test("B25: ready() rejects while the bus closes and after it", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ topics: [TOPIC] });
    const codes = await tab.evaluate(async () => {
      const closed = B.bus.close();
      const during = await B.settle(B.bus.ready());
      await closed;
      const after = await B.settle(B.bus.ready());
      return [during, after].map((one) => (one.ok ? "ok" : one.error.code));
    });
    assert.deepEqual(codes, ["CLOSED", "CLOSED"]);
  });
});
