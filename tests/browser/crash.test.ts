/** Tabs that end without a word: what they owned moves, and nobody misses or repeats a message. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { BusFixture, faults, NO_FAULTS } from "./bus-fixture.ts";
import { moreMessages, steady } from "./bus-page.ts";
import { outage, percentile, type Outage } from "./checker.ts";
import { nowMs, until, type Tab } from "./driver/index.ts";

const TOPIC = "prices";
const SPACING_MS = 20;
/** Detection by lock, on a busy machine; the promised figures are measured by the bench. */
const OUTAGE_MS_MAX = 1_500;

interface Scene {
  readonly bus: BusFixture;
  readonly tabs: Tab[];
}

async function scene(t: TestContext, count: number): Promise<Scene> {
  const bus = await BusFixture.start(t);
  const tabs = await bus.openMany(count, { topics: [TOPIC] });
  bus.publisher.pace(TOPIC, steady(SPACING_MS));
  for (const tab of tabs) await moreMessages(tab, 20);
  return { bus, tabs };
}

async function judgeSurvivors({ bus }: Scene, survivors: readonly Tab[], atMs: number): Promise<Outage[]> {
  const { verdicts, accepted, logs } = await bus.judge(survivors);
  assert.deepEqual(faults(verdicts), NO_FAULTS);
  const window = { fromMs: atMs, toMs: accepted.at(-1)?.atMs ?? nowMs() };
  const names = new Set(survivors.map((tab) => tab.name));
  return logs.filter((log) => names.has(log.page)).map((log) => outage(accepted, log, window));
}

function assertShort(outages: readonly Outage[]): void {
  const worst = percentile(outages.map((found) => found.largestGapMs), 1);
  assert.ok(worst < OUTAGE_MS_MAX, `deliveries stood still for ${worst} ms`);
}

describe("B5, B10: without loss, repetition or gap, topics move", () => {
  for (const end of ["kill", "crash"] as const) {
    test(`when the owner's renderer ends by ${end}`, async (t) => {
      const stage = await scene(t, 3);
      const owner = await stage.bus.owner(TOPIC, stage.tabs);
      const survivors = stage.tabs.filter((tab) => tab !== owner);
      await stage.bus.keepLog(owner);
      const atMs = await owner[end]();
      for (const tab of survivors) await moreMessages(tab, 50);
      assertShort(await judgeSurvivors(stage, survivors, atMs));
    });
  }

  test("when the coordinator's renderer is killed", async (t) => {
    const stage = await scene(t, 3);
    const coordinator = await stage.bus.coordinator(stage.tabs);
    const survivors = stage.tabs.filter((tab) => tab !== coordinator);
    const atMs = await coordinator.kill();
    for (const tab of survivors) await moreMessages(tab, 50);
    assertShort(await judgeSurvivors(stage, survivors, atMs));
    assert.ok(survivors.includes(await stage.bus.coordinator(survivors)));
  });

  test("when owner and coordinator are killed together", async (t) => {
    const stage = await scene(t, 4);
    const owner = await stage.bus.owner(TOPIC, stage.tabs);
    const coordinator = await stage.bus.coordinator(stage.tabs);
    const survivors = stage.tabs.filter((tab) => tab !== owner && tab !== coordinator);
    const ended = await Promise.all([...new Set([owner, coordinator])].map((tab) => tab.kill()));
    for (const tab of survivors) await moreMessages(tab, 50);
    assertShort(await judgeSurvivors(stage, survivors, Math.min(...ended)));
  });

  test("when one tab after another is killed, down to the last", async (t) => {
    const stage = await scene(t, 4);
    let left = stage.tabs;
    while (left.length > 1) {
      const owner = await stage.bus.owner(TOPIC, left);
      left = left.filter((tab) => tab !== owner);
      await owner.kill();
      for (const tab of left) await moreMessages(tab, 25);
    }
    const { verdicts } = await stage.bus.judge(left);
    assert.deepEqual(faults(verdicts), NO_FAULTS);
  });
});

test("B35: a node that dies while its page lives is replaced, and the page misses nothing", async (t) => {
  const stage = await scene(t, 2);
  const owner = await stage.bus.owner(TOPIC, stage.tabs);
  const before = await owner.evaluate(() => B.bus.snapshot().self.nodeId);
  await owner.evaluate(() => B.killWorker());
  await until("the page has another node", 10_000, () =>
    owner.evaluate((old: string | undefined) => {
      const { nodeId } = B.bus.snapshot().self;
      return nodeId !== undefined && nodeId !== old;
    }, before),
  );
  for (const tab of stage.tabs) await moreMessages(tab, 50);
  const { verdicts } = await stage.bus.judge(stage.tabs);
  assert.deepEqual(faults(verdicts), NO_FAULTS);
});
