/** B4: which host runs the node when others cannot. */
import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { describe, test } from "node:test";
import type { ConnectOptions, HostPreference } from "motet";
import { BusFixture, faults, NO_FAULTS } from "./bus-fixture.ts";
import { moreMessages, steady } from "./bus-page.ts";
import type { Tab } from "./driver/index.ts";

const TOPIC = "prices";
const SPACING_MS = 20;
const SOON_MS = 15_000;

function script(text: string): RequestListener {
  return (_, response) => response.setHeader("content-type", "text/javascript").end(text);
}

function answering(text: string): RequestListener {
  return script(`addEventListener("message", () => postMessage(${text}));`);
}

const SCRIPTS = {
  "/silent.js": script("export {};"),
  "/newer.js": answering(`{ started: false, code: "FROM_A_LATER_BUILD", detail: "why" }`),
  "/older.js": answering(`{ started: false, error: { code: 45 } }`),
};

type Broken = "throws" | "missing" | "works";

/** Starts the bus of a page whose constructors were broken before, and tells where its node runs and why. */
async function startBroken(tab: Tab, worker: Broken, shared: Broken): Promise<{ kind: string; reason: string; told: boolean; errors: string[] }> {
  return tab.evaluate(async (first: Broken, second: Broken) => {
    for (const [name, how] of [["Worker", first], ["SharedWorker", second]] as const) {
      const refusing = function (): never {
        throw new Error(`no ${name} here`);
      };
      if (how !== "works") Object.defineProperty(globalThis, name, { value: how === "throws" ? refusing : undefined });
    }
    await B.bus.start();
    const { kind, reason } = B.bus.status.host ?? { kind: "none", reason: "" };
    const told = B.statuses.some((status) => status.state === "running" && status.host?.kind === kind);
    const errors = B.errors.map(({ source, code }) => `${source}: ${code}`);
    return { kind, reason, told, errors };
  }, worker, shared);
}

/** Both tabs belong to one cluster, and both get every message. */
async function workTogether(bus: BusFixture, tabs: readonly Tab[]): Promise<void> {
  for (const tab of tabs) {
    await tab.evaluate((topic: string) => B.subscribe(topic), TOPIC);
    await tab.waitFor("is subscribed", SOON_MS, () => B.log.some(({ kind }) => kind === "ready"));
    await tab.waitFor("knows all nodes", SOON_MS, (count: number) => B.bus.snapshot().nodes.length === count, tabs.length);
  }
  bus.publisher.pace(TOPIC, steady(SPACING_MS));
  for (const tab of tabs) await moreMessages(tab, 20);
  assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
}

const ORDERS: readonly (readonly [HostPreference, Broken, Broken, string, RegExp])[] = [
  ["dedicated", "throws", "works", "shared-worker", /^worker: no Worker here$/],
  ["dedicated", "missing", "works", "shared-worker", /^worker: Worker is not a constructor$/],
  ["dedicated", "throws", "throws", "page", /^worker: no Worker here; shared-worker: no SharedWorker here$/],
  ["dedicated", "works", "throws", "worker", /^wanted: dedicated$/],
  ["shared", "works", "throws", "worker", /^shared-worker: no SharedWorker here$/],
  ["shared", "throws", "missing", "page", /^shared-worker: SharedWorker is not a constructor; worker: no Worker here$/],
  ["auto", "works", "missing", "worker", /^shared-worker: SharedWorker is not a constructor$/],
  ["page", "throws", "throws", "page", /^wanted: page$/],
];

describe("B4: the order of hosts", () => {
  for (const [host, worker, shared, kind, reason] of ORDERS) {
    test(`B4: host "${host}" where Worker ${worker} and SharedWorker ${shared} is "${kind}", and the status says why`, async (t) => {
      const bus = await BusFixture.start(t);
      const tab = await bus.open({ connect: { host, autoStart: false } });
      const found = await startBroken(tab, worker, shared);
      assert.deepEqual({ kind: found.kind, told: found.told }, { kind, told: true });
      assert.match(found.reason, reason);
      assert.deepEqual(found.errors, found.reason.startsWith("wanted") ? [] : ["config: HOST_UNAVAILABLE"]);
      await workTogether(bus, [tab, await bus.open()]);
    });
  }

  const scripts: readonly (readonly [string, Partial<ConnectOptions>, RegExp])[] = [
    ["cannot be loaded", { workerUrl: "/nowhere.js" }, /^worker: the script cannot be loaded$/],
    ["never answers", { workerUrl: "/silent.js" }, /^worker: no answer$/],
    ["answers with a code of another build", { workerUrl: "/newer.js" }, /^worker: NODE_UNAVAILABLE: .*FROM_A_LATER_BUILD: why/],
    ["answers in the form of another build", { workerUrl: "/older.js" }, /^worker: NODE_UNAVAILABLE: .*undefined: undefined/],
  ];
  for (const [what, connect, reason] of scripts) {
    test(`B4: a worker whose script ${what} counts as absent`, async (t) => {
      const bus = await BusFixture.start(t, { site: { handlers: SCRIPTS } });
      const tab = await bus.open({ connect: { ...connect, autoStart: false } });
      const found = await startBroken(tab, "works", "works");
      assert.equal(found.kind, "shared-worker");
      assert.match(found.reason, reason);
      await workTogether(bus, [tab, await bus.open()]);
    });
  }
});
