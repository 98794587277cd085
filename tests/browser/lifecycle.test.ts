/** Tabs that leave, freeze, come back, reload and multiply. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { BusFixture, faults, NO_FAULTS } from "./bus-fixture.ts";
import { moreMessages, steady, subscribed } from "./bus-page.ts";
import { nowMs, until, type Tab } from "./driver/index.ts";

const TOPIC = "prices";
const SPACING_MS = 20;
/** An owner that is frozen without notice is replaced within this. */
const FROZEN_REPLACED_MS = 4_000;
/** What a busy machine may add. */
const SLACK_MS = 2_000;

async function scene(t: TestContext, count: number): Promise<{ bus: BusFixture; tabs: Tab[] }> {
  const bus = await BusFixture.start(t);
  const tabs = await bus.openMany(count, { topics: [TOPIC] });
  bus.publisher.pace(TOPIC, steady(SPACING_MS));
  for (const tab of tabs) await moreMessages(tab, 10);
  return { bus, tabs };
}

const owns = (tab: Tab): Promise<boolean> =>
  tab.evaluate((topic: string) => {
    const { self, routes } = B.bus.snapshot();
    return routes.some((route) => route.topic === topic && route.owner === self.nodeId);
  }, TOPIC);

describe("B8: a page in the back/forward cache", () => {
  test("is restored though messages flow, and is caught up without a gap", async (t) => {
    const { bus, tabs } = await scene(t, 3);
    const owner = await bus.owner(TOPIC, tabs);
    const others = tabs.filter((tab) => tab !== owner);
    await owner.leave(bus.site.url("/away.html"));
    for (const tab of others) await moreMessages(tab, 50);
    const { persisted, reasons } = await owner.back();
    assert.ok(persisted, `not restored: ${reasons.join()}`);
    await moreMessages(owner, 50);
    assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
  });

  test("keeps no lock", async (t) => {
    const { bus, tabs } = await scene(t, 2);
    const [cached, other] = tabs as [Tab, Tab];
    const held = (): Promise<string[]> =>
      other.evaluate(async () => ((await navigator.locks.query()).held ?? []).map((lock) => lock.name ?? ""));
    const clients = new Set(await other.evaluate(async () => {
      const { held: all = [], pending = [] } = await navigator.locks.query();
      return [...all, ...pending].map((lock) => lock.clientId ?? "");
    }));
    assert.ok(clients.size >= 2);
    await cached.leave(bus.site.url("/away.html"));
    await until("all locks belong to the tab that stayed", 5_000, async () => {
      const left = new Set(await other.evaluate(async () => {
        const { held: all = [], pending = [] } = await navigator.locks.query();
        return [...all, ...pending].map((lock) => lock.clientId ?? "");
      }));
      return left.size < clients.size;
    });
    assert.equal((await held()).filter((name) => name.includes("node/")).length, 1);
  });
});

describe("B9: a frozen page", () => {
  for (const way of ["freeze", "stop"] as const) {
    test(`that owns the topic is replaced when it is frozen by ${way}, and catches up when thawed`, async (t) => {
      const { bus, tabs } = await scene(t, 3);
      const owner = await bus.owner(TOPIC, tabs);
      const others = tabs.filter((tab) => tab !== owner);
      const frozenAtMs = await owner[way]();
      await bus.owner(TOPIC, others);
      const tookMs = nowMs() - frozenAtMs;
      t.diagnostic(`replaced after ${Math.round(tookMs)} ms`);
      assert.ok(tookMs < FROZEN_REPLACED_MS + SLACK_MS, `replaced after ${tookMs} ms`);
      for (const tab of others) await moreMessages(tab, 50);
      await (way === "stop" ? owner.cont() : owner.resume());
      await moreMessages(owner, 50);
      assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
      assert.equal((await Promise.all(tabs.map(owns))).filter(Boolean).length, 1);
    });
  }
});

describe("B6: a tab that goes in good order", () => {
  test("hands its topic over when its bus is closed", async (t) => {
    const { bus, tabs } = await scene(t, 3);
    const owner = await bus.owner(TOPIC, tabs);
    const others = tabs.filter((tab) => tab !== owner);
    await owner.evaluate(() => B.bus.close());
    for (const tab of others) await moreMessages(tab, 50);
    assert.deepEqual(faults((await bus.judge(others)).verdicts), NO_FAULTS);
  });

  test("leaves nothing undelivered to others when its user closes it", async (t) => {
    const { bus, tabs } = await scene(t, 3);
    const owner = await bus.owner(TOPIC, tabs);
    const others = tabs.filter((tab) => tab !== owner);
    await owner.close();
    for (const tab of others) await moreMessages(tab, 50);
    assert.deepEqual(faults((await bus.judge(others)).verdicts), NO_FAULTS);
  });
});

test("B28: a reloaded owner comes back as a subscriber, and its topic stays where it went", async (t) => {
  const { bus, tabs } = await scene(t, 3);
  const owner = await bus.owner(TOPIC, tabs);
  const others = tabs.filter((tab) => tab !== owner);
  await bus.keepLog(owner);
  await owner.reload();
  await subscribed(owner, [TOPIC]);
  for (const tab of tabs) await moreMessages(tab, 30);
  assert.ok(others.includes(await bus.owner(TOPIC, tabs)));
  assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
});

test("B28: hiding the owner moves nothing", async (t) => {
  const { bus, tabs } = await scene(t, 2);
  const owner = await bus.owner(TOPIC, tabs);
  const generation = (): Promise<number | undefined> =>
    owner.evaluate((topic: string) => B.bus.snapshot().routes.find((route) => route.topic === topic)?.generation, TOPIC);
  const before = await generation();
  await owner.show();
  await owner.hide();
  await moreMessages(owner, 50);
  assert.equal(await generation(), before);
  assert.ok(await owns(owner));
});

const tabId = (tab: Tab): Promise<string> => tab.evaluate(() => B.bus.snapshot().self.tabId);

describe("B27: a tab's id", () => {
  test("survives a reload", async (t) => {
    const { tabs } = await scene(t, 1);
    const [tab] = tabs as [Tab];
    const before = await tabId(tab);
    await tab.reload();
    await subscribed(tab, [TOPIC]);
    assert.equal(await tabId(tab), before);
  });

  test("is minted anew in a window that copied it", async (t) => {
    const { tabs } = await scene(t, 1);
    const [tab] = tabs as [Tab];
    const copy = await tab.duplicate();
    await subscribed(copy, [TOPIC]);
    assert.notEqual(await tabId(copy), await tabId(tab));
  });
});

test("B5: an owner whose main thread is blocked goes on serving the other tabs", async (t) => {
  const { bus, tabs } = await scene(t, 2);
  const owner = await bus.owner(TOPIC, tabs);
  const [other] = tabs.filter((tab) => tab !== owner) as [Tab];
  const blocked = owner.evaluate(() => B.block(2_000));
  await moreMessages(other, 50);
  await blocked;
  await moreMessages(owner, 50);
  assert.deepEqual(faults((await bus.judge(tabs)).verdicts), NO_FAULTS);
});
