/**
 * Facts about the browser that the coordination rules stand on, in raw JavaScript. When one of these fails,
 * the browser has changed and the design has to be looked at again.
 */
import assert from "node:assert/strict";
import { after, before, describe, test, type TestContext } from "node:test";
import { DeadlineExceeded, launchChromium, until, type Browser, type Tab } from "./driver/index.ts";
import { serveStatic, type StaticServer } from "./static-server.ts";

interface Note {
  readonly what: string;
  readonly atMs: number;
  readonly lock?: string;
  readonly error?: string;
  readonly data?: unknown;
}

interface PlatformPage {
  readonly ready?: true;
  readonly events: Note[];
  startWorker(): void;
  startShared(): void;
  openChannel(name: string): void;
  closeChannel(name: string): void;
  post(name: string, data: unknown): void;
  lock(name: string, options?: LockOptions): void;
  release(name: string): void;
  tell(message: object): void;
  tellShared(message: object): void;
  terminate(): void;
  onPagehide(action: () => void): void;
}

declare const T: PlatformPage;

const NOTICED_WITHIN_MS = 10_000;
/** Generous beside the tens of milliseconds that are usual, because test machines are busy. No timeout frees a lock. */
const LOCK_FREE_WITHIN_MS = 5_000;
/** How long something that must not happen is watched for. */
const QUIET_FOR_MS = 700;

let server: StaticServer;

before(async () => {
  server = await serveStatic({ directories: { "/": new URL("./pages/", import.meta.url).pathname } });
});
after(() => server.close());

async function browserWithTabs(t: TestContext, count: number): Promise<[Browser, ...Tab[]]> {
  const browser = await launchChromium();
  t.after(() => browser.close());
  const tabs: Tab[] = [];
  for (let index = 0; index < count; index += 1) tabs.push(await openPage(browser));
  await browser.assertSeparateProcesses();
  return [browser, ...tabs];
}

async function openPage(browser: Browser): Promise<Tab> {
  const tab = await browser.open(server.url("/platform.html"));
  await tab.waitFor("page is ready", NOTICED_WITHIN_MS, () => T.ready);
  return tab;
}

const noted = (tab: Tab, what: string, count = 1, withinMs = NOTICED_WITHIN_MS): Promise<Note[]> =>
  until(`${tab.name}: ${count} x ${what}`, withinMs, async () => {
    const notes = (await tab.evaluate(() => T.events)).filter((note) => note.what === what);
    return notes.length >= count && notes;
  });

async function firstNote(tab: Tab, what: string): Promise<Note> {
  const [note] = await noted(tab, what);
  assert.ok(note);
  return note;
}

async function staysQuiet(tab: Tab, what: string): Promise<void> {
  await assert.rejects(noted(tab, what, 1, QUIET_FOR_MS), DeadlineExceeded);
}

/** Resolves when `count` requests for the lock wait, so that a queue's order is known. */
async function queued(tab: Tab, name: string, count: number): Promise<void> {
  await tab.waitFor(`${count} requests wait for ${name}`, NOTICED_WITHIN_MS, async (lock, expected) => {
    const { pending = [] } = await navigator.locks.query();
    return pending.filter((request) => request.name === lock).length >= expected;
  }, name, count);
}

async function holdInWorker(tab: Tab, name: string): Promise<void> {
  await tab.evaluate((lock) => {
    T.startWorker();
    T.tell({ action: "lock", name: lock });
  }, name);
}

describe("a lock held by a tab's worker falls to the next waiter", () => {
  for (const end of ["kill", "crash", "close", "reload"] as const) {
    test(`when the tab ends by ${end}`, async (t) => {
      const [, holder, waiter] = (await browserWithTabs(t, 2)) as [Browser, Tab, Tab];
      await holdInWorker(holder, "L");
      await noted(holder, "granted");
      await holdInWorker(waiter, "L");
      await queued(waiter, "L", 1);
      const endedAtMs = await holder[end]();
      const { atMs } = await firstNote(waiter, "granted");
      assert.ok(atMs - endedAtMs < LOCK_FREE_WITHIN_MS, `granted after ${atMs - endedAtMs} ms`);
    });
  }

  test("when its page goes to the back/forward cache and terminates the worker in pagehide", async (t) => {
    const [, holder, waiter] = (await browserWithTabs(t, 2)) as [Browser, Tab, Tab];
    await holdInWorker(holder, "L");
    await noted(holder, "granted");
    await holdInWorker(waiter, "L");
    await queued(waiter, "L", 1);
    await holder.evaluate(() => T.onPagehide(() => T.terminate()));
    const leftAtMs = await holder.leave(server.url("/away.html"));
    const { atMs } = await firstNote(waiter, "granted");
    assert.ok(atMs - leftAtMs < LOCK_FREE_WITHIN_MS, `granted after ${atMs - leftAtMs} ms`);
    const { persisted, reasons } = await holder.back();
    assert.ok(persisted, `not restored: ${reasons.join()}`);
  });
});

async function cachedWaiter(t: TestContext, abortInPagehide: boolean): Promise<{ cached: Tab; behind: Tab }> {
  const [, holder, cached, behind] = (await browserWithTabs(t, 3)) as [Browser, Tab, Tab, Tab];
  await holder.evaluate(() => T.lock("L"));
  await noted(holder, "granted");
  await cached.evaluate(() => T.lock("L"));
  await queued(holder, "L", 1);
  await behind.evaluate(() => T.lock("L"));
  await queued(holder, "L", 2);
  if (abortInPagehide) await cached.evaluate(() => T.onPagehide(() => T.release("L")));
  await cached.leave(server.url("/away.html"));
  await holder.evaluate(() => T.release("L"));
  return { cached, behind };
}

describe("a lock request of a page in the back/forward cache", () => {
  test("is granted and blocks the requests behind it", async (t) => {
    const { behind } = await cachedWaiter(t, false);
    await staysQuiet(behind, "granted");
  });

  test("blocks nobody when pagehide aborted it, and the page is still restored", async (t) => {
    const { cached, behind } = await cachedWaiter(t, true);
    await noted(behind, "granted");
    const { persisted, reasons } = await cached.back();
    assert.ok(persisted, `not restored: ${reasons.join()}`);
  });
});

describe("a BroadcastChannel message posted in pagehide arrives", () => {
  for (const end of ["leave", "close"] as const) {
    test(`when the tab goes by ${end}`, async (t) => {
      const [, leaving, other] = (await browserWithTabs(t, 2)) as [Browser, Tab, Tab];
      await other.evaluate(() => T.openChannel("C"));
      await leaving.evaluate(() => {
        T.openChannel("C");
        T.onPagehide(() => {
          T.post("C", "leaving");
          T.closeChannel("C");
        });
      });
      await (end === "leave" ? leaving.leave(server.url("/away.html")) : leaving.close());
      assert.equal((await firstNote(other, "channel")).data, "leaving");
    });
  }
});

test("a page with an open BroadcastChannel loses its place in the back/forward cache to the first message", async (t) => {
  const [, cached, other] = (await browserWithTabs(t, 2)) as [Browser, Tab, Tab];
  for (const tab of [cached, other]) await tab.evaluate(() => T.openChannel("C"));
  await cached.leave(server.url("/away.html"));
  await other.evaluate(() => T.post("C", "message"));
  const { persisted } = await cached.back();
  assert.equal(persisted, false);
});

describe("a lock is stolen at once from a holder that cannot run", () => {
  for (const way of ["stop", "freeze"] as const) {
    test(`by ${way}, and the thawed holder handles queued messages before it learns of the loss`, async (t) => {
      const [, holder, thief] = (await browserWithTabs(t, 2)) as [Browser, Tab, Tab];
      await holdInWorker(holder, "L");
      await noted(holder, "granted");
      await holder.evaluate(() => T.tell({ action: "listen", name: "C" }));
      await noted(holder, "listening");
      await holder[way]();
      await thief.evaluate(() => {
        T.openChannel("C");
        for (let index = 0; index < 3; index += 1) T.post("C", index);
        T.startWorker();
        T.tell({ action: "lock", name: "L", steal: true });
      });
      await noted(thief, "granted");
      await (way === "stop" ? holder.cont() : holder.resume());
      const [lost] = await noted(holder, "lost");
      await noted(holder, "channel", 3);
      assert.equal(lost?.error, "AbortError");
      const order = (await holder.evaluate(() => T.events)).map((note) => note.what);
      assert.ok(order.indexOf("channel") < order.indexOf("lost"), `order was ${order.join()}`);
    });
  }
});

test("timers of a hidden page's worker keep their rate", async (t) => {
  const [, hidden] = (await browserWithTabs(t, 1)) as [Browser, Tab];
  await hidden.hide();
  await hidden.evaluate(() => {
    T.startWorker();
    T.tell({ action: "ticks", intervalMs: 50 });
  });
  // A busy machine delays some of them; throttled to one a second they would take a minute.
  const ticks = await noted(hidden, "tick", 60, 30_000);
  const spanMs = (ticks[59]?.atMs ?? 0) - (ticks[0]?.atMs ?? 0);
  assert.ok(spanMs < 20_000, `60 ticks of 50 ms took ${spanMs} ms`);
});

test("a SharedWorker dies with the process of its creator, frees its lock, and tells no client", async (t) => {
  const [browser, creator] = (await browserWithTabs(t, 1)) as [Browser, Tab];
  await creator.evaluate(() => {
    T.startShared();
    T.tellShared({ action: "lock", name: "S" });
  });
  await noted(creator, "granted");
  const client = await openPage(browser);
  await client.evaluate(() => {
    T.startShared();
    T.tellShared({ action: "ping" });
    T.lock("S");
  });
  await noted(client, "pong");
  const killedAtMs = await creator.kill();
  const { atMs } = await firstNote(client, "granted");
  assert.ok(atMs - killedAtMs < LOCK_FREE_WITHIN_MS, `granted after ${atMs - killedAtMs} ms`);
  await client.evaluate(() => T.tellShared({ action: "ping" }));
  await assert.rejects(noted(client, "pong", 2, QUIET_FOR_MS), DeadlineExceeded);
  const heard = (await client.evaluate(() => T.events)).map((note) => note.what);
  assert.deepEqual(heard.filter((what) => what.startsWith("shared-") || what.startsWith("port-")), []);
});

test("a window opened by a page gets a copy of its session storage", async (t) => {
  const [, original] = (await browserWithTabs(t, 1)) as [Browser, Tab];
  await original.evaluate(() => sessionStorage.setItem("id", "one"));
  const copy = await original.duplicate();
  const copied = await copy.waitFor("the page has loaded", NOTICED_WITHIN_MS, () => sessionStorage.getItem("id"));
  assert.equal(copied, "one");
});
