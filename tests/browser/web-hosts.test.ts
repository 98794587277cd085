/** Where nodes run, what pages are told when they cannot run there, and what a page may ask of its bus. */
import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { describe, test, type TestContext } from "node:test";
import type { ConnectOptions, ErrorCode } from "motet";
import { BusFixture, faults, NO_FAULTS } from "./bus-fixture.ts";
import { steady } from "./bus-page.ts";
import { establishedConnections, type Tab } from "./driver/index.ts";

const TOPIC = "prices";

const host = (tab: Tab): Promise<{ kind?: string; reason?: string }> =>
  tab.evaluate(() => ({ ...B.bus.status.host }));

async function moreMessages(tab: Tab, count: number): Promise<void> {
  const had = await tab.evaluate(() => B.log.filter((entry) => entry.kind === "message").length);
  await tab.waitFor(`receives ${count} more messages`, 10_000, (least: number) =>
    B.log.filter((entry) => entry.kind === "message").length >= least, had + count);
}

/** What `connect` rejects with in a page whose globals were changed by `before`. */
async function refusal(t: TestContext, before: string, change: Partial<ConnectOptions> = {}): Promise<string | null> {
  const bus = await BusFixture.start(t);
  const tab = await bus.browser.open(bus.site.url("/away.html"));
  return tab.evaluate(async (script: string, options: object) => {
    new Function(script)();
    const { connect } = (await import("/motet/index.js" as string)) as typeof import("motet");
    return connect(options as ConnectOptions).then(() => null, (error: { code: string }) => error.code);
  }, before, { cluster: "test", transport: { kind: "centrifuge", url: bus.server.websocketUrl }, ...change });
}

describe("B4: the node runs", () => {
  test("in a dedicated worker unless asked otherwise", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ topics: [TOPIC] });
    assert.deepEqual(await host(tab), { kind: "worker", reason: "wanted: dedicated" });
  });

  for (const wanted of ["shared", "auto"] as const) {
    test(`in one SharedWorker for all tabs with host "${wanted}", over one connection`, async (t) => {
      const bus = await BusFixture.start(t, { connect: { host: wanted } });
      const tabs = await bus.openMany(3, { topics: [TOPIC, "chat"] });
      for (const tab of tabs) assert.equal((await host(tab)).kind, "shared-worker");
      assert.equal(establishedConnections(bus.server.port), 2, "one of the cluster, one of the test's publisher");
      bus.publisher.pace(TOPIC, steady(20));
      for (const tab of tabs) await moreMessages(tab, 20);
      assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
    });
  }

  test("in the page with host \"page\", together with nodes in workers", async (t) => {
    const bus = await BusFixture.start(t);
    const tabs = [await bus.open({ topics: [TOPIC], connect: { host: "page" } }), await bus.open({ topics: [TOPIC] })];
    assert.deepEqual(await Promise.all(tabs.map(async (tab) => (await host(tab)).kind)), ["page", "worker"]);
    bus.publisher.pace(TOPIC, steady(20));
    for (const tab of tabs) await moreMessages(tab, 20);
    assert.equal(await tabs[0]?.evaluate(() => B.bus.snapshot().nodes.length), 2);
    assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
  });

  test("in the page when the policy forbids workers, and the status says why", async (t) => {
    const bus = await BusFixture.start(t, {
      site: { contentSecurityPolicy: "worker-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'" },
    });
    const tabs = await bus.openMany(2, { topics: [TOPIC] });
    for (const tab of tabs) {
      const { kind, reason } = await host(tab);
      assert.equal(kind, "page");
      assert.match(reason ?? "", /^worker: .*; shared-worker: /);
    }
    assert.equal(establishedConnections(bus.server.port), 2, "the tabs still work together");
  });
});

describe("B26: with a shared node", () => {
  test("the tab that made it may be killed", async (t) => {
    const bus = await BusFixture.start(t, { connect: { host: "shared" } });
    const [first, ...others] = await bus.openMany(3, { topics: [TOPIC] });
    bus.publisher.pace(TOPIC, steady(20));
    for (const tab of others) await moreMessages(tab, 10);
    await first?.kill();
    for (const tab of others) await moreMessages(tab, 50);
    assert.deepEqual(faults((await bus.judge(others)).verdicts), NO_FAULTS);
  });
});

describe("B23: a page that cannot join is told why:", () => {
  test("no Web Locks", async (t) => {
    assert.equal(await refusal(t, "Object.defineProperty(navigator, 'locks', { value: undefined })"), "LOCKS_UNAVAILABLE");
  });

  test("Web Locks that refuse, and every call of it settles", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ connect: { autoStart: false } });
    const found = await tab.evaluate(async () => {
      LockManager.prototype.request = () => Promise.reject(new DOMException("no", "SecurityError"));
      const early = B.settle(B.bus.publish("prices", { seq: 1 }));
      const subscription = B.bus.subscribe("prices", () => undefined);
      const loop = B.bus.topic("chat").messages().next();
      const calls = [B.settle(B.bus.start()), early, B.settle(subscription.ready), B.settle(loop)];
      const settled = await Promise.all(calls);
      const late = await Promise.all([
        B.settle(B.bus.publish("prices", { seq: 2 })),
        B.settle(B.bus.subscribe("late", () => undefined).ready),
        B.settle(B.bus.ready()),
        B.settle(B.bus.start()),
      ]);
      return {
        codes: [...settled, ...late].map((one) => (one.ok ? null : one.error.code)),
        states: [B.bus.status.state, B.bus.status.error?.code, subscription.state],
        errors: B.errors.map(({ source, code }) => `${source}: ${code}`),
      };
    });
    assert.deepEqual(new Set(found.codes), new Set(["LOCKS_UNAVAILABLE"]));
    assert.deepEqual(found.states, ["failed", "LOCKS_UNAVAILABLE", "failed"]);
    assert.ok(found.errors.length > 0 && found.errors.every((error) => error === "coordination: LOCKS_UNAVAILABLE"), found.errors.join());
  });

  test("no BroadcastChannel", async (t) => {
    assert.equal(await refusal(t, "globalThis.BroadcastChannel = undefined"), "CHANNEL_UNAVAILABLE");
  });

  test("WebAssembly forbidden by the security policy", async (t) => {
    const bus = await BusFixture.start(t, { site: { contentSecurityPolicy: "script-src 'self' 'unsafe-inline'" } });
    const tab = await bus.browser.open(bus.site.url("/away.html"));
    const code = await tab.evaluate(async (url: string) => {
      const { connect } = (await import("/motet/index.js" as string)) as typeof import("motet");
      const options = { cluster: "test", transport: { kind: "centrifuge", url } } as const;
      return connect(options).then(() => null, (error: { code: string }) => error.code);
    }, bus.server.websocketUrl);
    assert.equal(code, "WASM_BLOCKED");
  });

  const files: readonly (readonly [string, RequestListener, ErrorCode, RegExp])[] = [
    ["is a page, as single-page servers answer", (_, response) => response.setHeader("content-type", "text/html").end("<!doctype html>"),
      "WASM_INVALID", /^http.*\/broken.wasm: status 200, text\/html: .*magic/],
    ["is not there", (_, response) => response.writeHead(404).end(), "WASM_UNAVAILABLE", /^http.*\/broken.wasm: status 404, /],
  ];
  for (const [what, broken, expected, detail] of files) {
    test(`a WebAssembly file that ${what}: where it was looked for and what was found, for the page's and the node's`, async (t) => {
      const bus = await BusFixture.start(t, { site: { handlers: { "/broken.wasm": broken } } });
      const tab = await bus.browser.open(bus.site.url("/away.html"));
      const [page, node] = await tab.evaluate(async (url: string) => {
        const { connect } = (await import("/motet/index.js" as string)) as typeof import("motet");
        const options = { cluster: "test", transport: { kind: "centrifuge", url } } as const;
        const first = await connect({ ...options, wasmUrl: { page: "/broken.wasm" } }).then(
          () => undefined,
          ({ code, detail }: { code: string; detail: string | undefined }) => ({ code, detail }),
        );
        const bus = await connect({ ...options, wasmUrl: { node: "/broken.wasm" } });
        const second = await bus.ready().then(
          () => undefined,
          ({ code, detail }: { code: string; detail: string | undefined }) => ({ code, detail, told: bus.status.error?.code }),
        );
        await bus.close();
        return [first, second];
      }, bus.server.websocketUrl);
      for (const told of [page, node]) {
        assert.equal(told?.code, expected);
        assert.match(told.detail ?? "", detail);
      }
    });
  }

  test("another transport, or an option out of its range", async (t) => {
    const transport = { kind: "carrier-pigeon", url: "" } as unknown as ConnectOptions["transport"];
    assert.equal(await refusal(t, "", { transport }), "TRANSPORT_UNSUPPORTED");
    assert.equal(await refusal(t, "", { maxActiveNodes: 0 }), "CONFIG_INVALID");
  });

  test("no page at all, as on a server, where importing alone does nothing", async () => {
    const { connect } = await import("motet");
    const transport = { kind: "centrifuge", url: "ws://127.0.0.1:1/" } as const;
    await assert.rejects(connect({ cluster: "test", transport }), { code: "ENVIRONMENT_UNSUPPORTED" });
  });
});

describe("B17: connecting twice in a page", () => {
  test("with the same options shares one node, which goes with the last handle", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open({ topics: [TOPIC] });
    const found = await tab.evaluate(async (url: string) => {
      const { connect } = (await import("/motet/index.js" as string)) as typeof import("motet");
      const second = await connect({ cluster: "test", transport: { kind: "centrifuge", url } });
      await second.ready();
      const same = second.snapshot().self.nodeId === B.bus.snapshot().self.nodeId;
      await second.close();
      const left = B.bus.status.state;
      await B.bus.close();
      return { same, left, closed: B.bus.status.state, workers: B.workers() };
    }, bus.server.websocketUrl);
    assert.deepEqual(found, { same: true, left: "running", closed: "closed", workers: 1 });
  });

  test("with other options is refused", async (t) => {
    const bus = await BusFixture.start(t);
    const tab = await bus.open();
    const code = await tab.evaluate(async (url: string) => {
      const { connect } = (await import("/motet/index.js" as string)) as typeof import("motet");
      const options = { cluster: "test", transport: { kind: "centrifuge", url }, maxActiveNodes: 1 } as const;
      return connect(options).then(() => null, (error: { code: string }) => error.code);
    }, bus.server.websocketUrl);
    assert.equal(code, "CLUSTER_CONFIG_MISMATCH");
  });
});

test("B16: with Protobuf, bytes arrive as they were sent, and a transferred buffer is moved", async (t) => {
  const bus = await BusFixture.start(t);
  const transport = { kind: "centrifuge", url: bus.server.websocketUrl, protocol: "protobuf" } as const;
  const tabs = [await bus.open({ connect: { transport } }), await bus.open({ connect: { transport } })];
  for (const tab of tabs) {
    await tab.evaluate(async () => {
      const bytes: number[][] = [];
      Object.assign(globalThis, { bytes });
      await B.bus.subscribe("frames", (message) => bytes.push([...(message as Uint8Array)])).ready;
    });
  }
  const left = await tabs[0]?.evaluate(async () => {
    const payload = new Uint8Array([0, 255, 128, 10]);
    await B.bus.publish("frames", payload, { transfer: true });
    return payload.byteLength;
  });
  assert.equal(left, 0, "the page gave its buffer away");
  for (const tab of tabs) {
    const received = await tab.waitFor("receives the frame", 5_000, () => {
      const { bytes } = globalThis as unknown as { bytes: number[][] };
      return bytes.length > 0 && bytes;
    });
    assert.deepEqual(received, [[0, 255, 128, 10]]);
  }
});

test("B12: a payload that cannot be copied rejects with its code, and the bus goes on", async (t) => {
  const bus = await BusFixture.start(t);
  const tab = await bus.open({ topics: [TOPIC] });
  const outcomes = await tab.evaluate(() => Promise.all([
    B.settle(B.bus.publish("prices", { seq: 1, bad: () => undefined })),
    B.settle(B.bus.publish("prices", { seq: 2 })),
  ]));
  assert.equal(outcomes[0].ok ? null : outcomes[0].error.code, "UNCLONEABLE");
  assert.deepEqual(outcomes[1], { ok: true });
});

test("B1: a handler that throws is reported, and the others are served", async (t) => {
  const bus = await BusFixture.start(t);
  const tab = await bus.open({ topics: [TOPIC] });
  const errors = await tab.evaluate(async () => {
    B.bus.subscribe("prices", () => {
      throw new Error("no");
    });
    const reported = new Promise((resolve) => B.bus.onError(resolve));
    await B.bus.publish("prices", { seq: 1 });
    await reported;
    return B.errors.map(({ source, code }) => ({ source, code }));
  });
  assert.deepEqual(errors, [{ source: "dispatch", code: "DISPATCH_FAILED" }]);
  await tab.waitFor("the first handler has it too", 5_000, () => B.log.some((entry) => entry.kind === "message"));
});

test("B25: nothing happens before start() when autoStart is false; two starts are one", async (t) => {
  const bus = await BusFixture.start(t);
  const tab = await bus.open({ connect: { autoStart: false } });
  const states = await tab.evaluate(async () => {
    const before = [B.bus.status.state, B.workers()];
    await Promise.all([B.bus.start(), B.bus.start()]);
    return [...before, B.bus.status.state, B.workers()];
  });
  assert.deepEqual(states, ["idle", 0, "running", 1]);
});

test("async iteration yields messages and ends with the bus; aborting a publish or a wait rejects with ABORTED", async (t) => {
  const bus = await BusFixture.start(t);
  const tab = await bus.open({ topics: [TOPIC] });
  const found = await tab.evaluate(async () => {
    const seen: unknown[] = [];
    const third = new Promise<void>((resolve) => addEventListener("third", () => resolve(), { once: true }));
    const loop = (async () => {
      for await (const { payload } of B.bus.topic("prices")) if (seen.push(payload) === 3) dispatchEvent(new Event("third"));
      return "ended";
    })();
    for (const seq of [1, 2, 3]) await B.bus.publish("prices", { seq });
    await third;
    const gone = AbortSignal.abort();
    const aborted = await B.settle(B.bus.publish("prices", { seq: 4 }, { signal: gone }));
    const waited = await B.settle(B.bus.ready({ signal: gone }));
    await B.bus.close();
    return { seen, loop: await loop, codes: [aborted, waited].map((one) => (one.ok ? null : one.error.code)) };
  });
  assert.deepEqual(found, { seen: [{ seq: 1 }, { seq: 2 }, { seq: 3 }], loop: "ended", codes: ["ABORTED", "ABORTED"] });
});
