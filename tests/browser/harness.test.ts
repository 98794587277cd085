/** The harness keeps its own promises: bounded, clean, and honest about what it did to a tab. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { DeadlineExceeded, descendants, isRunning, launchChromium, until, within } from "./driver/index.ts";
import { serveStatic } from "./static-server.ts";

const PAGES = new URL("./pages/", import.meta.url).pathname;

describe("the static server", () => {
  test("names the type of what it serves and sends the given policy", async (t) => {
    const server = await serveStatic({
      directories: { "/": PAGES },
      pages: { "/given": "<p>given" },
      contentSecurityPolicy: "worker-src 'none'",
    });
    t.after(() => server.close());
    const script = await fetch(server.url("/platform.js"));
    assert.equal(script.headers.get("content-type"), "text/javascript; charset=utf-8");
    assert.equal(script.headers.get("content-security-policy"), "worker-src 'none'");
    assert.equal(await (await fetch(server.url("/given"))).text(), "<p>given");
  });

  test("serves nothing outside of its directories", async (t) => {
    const server = await serveStatic({ directories: { "/pages/": PAGES } });
    t.after(() => server.close());
    for (const path of ["/pages/%2e%2e/package.json", "/pages/..%2fpackage.json", "/platform.js", "/pages/%zz"]) {
      assert.equal((await fetch(server.url(path))).status, 404, path);
    }
  });
});

test("a browser leaves no process and no profile behind, even with a stopped tab", async (t) => {
  const others = new Set(descendants(process.pid));
  const browser = await launchChromium();
  t.after(() => browser.close());
  const server = await serveStatic({ directories: { "/": PAGES } });
  t.after(() => server.close());
  const tab = await browser.open(server.url("/platform.html"));
  await tab.stop();
  const processes = descendants(process.pid).filter((pid) => !others.has(pid));
  const profile = processes.map(profileOf).find((found) => found !== undefined);
  assert.ok(profile !== undefined && existsSync(profile));
  await browser.close();
  assert.deepEqual(processes.filter(isRunning), []);
  assert.equal(existsSync(profile), false);
});

function profileOf(pid: number): string | undefined {
  const given = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  return given.find((argument) => argument.startsWith("--user-data-dir="))?.slice("--user-data-dir=".length);
}

describe("a page's answer", () => {
  test("is awaited, and its error becomes the test's", async (t) => {
    const browser = await launchChromium();
    t.after(() => browser.close());
    const server = await serveStatic({ directories: { "/": PAGES } });
    t.after(() => server.close());
    const tab = await browser.open(server.url("/platform.html"));
    assert.equal(await tab.evaluate(async (a: number, b: number) => a + b, 2, 3), 5);
    await assert.rejects(tab.evaluate(() => { throw new TypeError("no such thing"); }), /TypeError: no such thing/);
  });

  test("does not come from a page that is stopped, and the wait for it ends", async (t) => {
    const browser = await launchChromium();
    t.after(() => browser.close());
    const server = await serveStatic({ directories: { "/": PAGES } });
    t.after(() => server.close());
    const tab = await browser.open(server.url("/platform.html"));
    await tab.stop();
    await assert.rejects(within(200, "an answer", tab.evaluate(() => 1)), DeadlineExceeded);
    await tab.cont();
    assert.equal(await tab.evaluate(() => 1), 1);
  });
});

test("a wait for what never happens ends with what was waited for", async () => {
  await assert.rejects(until("the impossible", 30, () => false), /the impossible: not within 30 ms/);
});
