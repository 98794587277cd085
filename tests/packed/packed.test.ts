/**
 * The tarball that `cargo xtask npm` packs, as a stranger would use it: installed from a file into a
 * fresh application far from this repository, type-checked, bundled, and run in two tabs.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { launchChromium } from "@motet/browser-tests/driver";
import { startServer } from "@motet/browser-tests/server";
import { serveStatic } from "@motet/browser-tests/static-server";

const run = promisify(execFile);
const here = new URL(".", import.meta.url).pathname;

const COMMAND_WITHIN_MS = 180_000;
const READY_WITHIN_MS = 15_000;
const VITE = "7.3.8";
const TYPESCRIPT = "6.0.3";

declare global {
  // eslint-disable-next-line no-var
  var say: (text: string) => Promise<void>;
}

describe("the packed package", { concurrency: false }, () => {
  const folder = mkdtempSync(join(tmpdir(), "motet-fresh-"));
  const command = (name: string, ...args: string[]): Promise<{ stdout: string }> =>
    run(name, args, { cwd: folder, timeout: COMMAND_WITHIN_MS });

  before(async () => {
    const manifest = {
      name: "fresh",
      private: true,
      type: "module",
      dependencies: { motet: `file:${tarball()}` },
      devDependencies: { typescript: TYPESCRIPT, vite: VITE },
    };
    cpSync(join(here, "app"), folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
    await command("npm", "install", "--no-audit", "--no-fund", "--loglevel=error");
  });

  after(() => rmSync(folder, { recursive: true, force: true }));

  test("its files are all there: modules, types, source maps, licences", () => {
    const installed = join(folder, "node_modules/motet");
    const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as { type?: string; dependencies?: object };
    assert.equal(manifest.type, "module");
    assert.deepEqual(Object.keys(manifest.dependencies ?? {}), [], "a page loads nothing but Motet");
    const files = readdirSync(installed, { recursive: true, encoding: "utf8" });
    for (const wanted of ["dist/index.js", "dist/index.js.map", "dist/index.d.ts", ".wasm", "LICENSE-MIT", "LICENSE-APACHE"]) {
      assert.ok(files.some((file) => file.endsWith(wanted)), `the package lacks ${wanted}`);
    }
  });

  test("importing it outside of a browser is safe", async () => {
    const { stdout } = await command("node", "--eval", 'import("motet").then((motet) => console.log(typeof motet.connect))');
    assert.equal(stdout.trim(), "function");
  });

  test("its types fit an application that checks every library", async () => {
    await command(join(folder, "node_modules/.bin/tsc"), "--project", ".");
  });

  test("a bundled application runs: what one tab says, both tabs show", async () => {
    await command(join(folder, "node_modules/.bin/vite"), "build", "--logLevel", "warn");
    await using server = await startServer();
    await using site = await serveStatic({ directories: { "/": join(folder, "dist") } });
    await using browser = await launchChromium();
    const page = site.url(`/index.html?${new URLSearchParams({ server: server.websocketUrl }).toString()}`);
    const tabs = [await browser.open(page), await browser.open(page)] as const;
    for (const tab of tabs) {
      await tab.waitFor("is subscribed", READY_WITHIN_MS, () => typeof globalThis.say === "function");
    }
    await tabs[0].evaluate(() => globalThis.say("hello"));
    for (const tab of tabs) {
      await tab.waitFor("shows the message", READY_WITHIN_MS, () => document.querySelector("li")?.textContent === "hello");
    }
  });
});

function tarball(): string {
  const path = process.env["MOTET_TARBALL"];
  if (path === undefined || !existsSync(path)) {
    throw new Error("MOTET_TARBALL names no file: run this by `cargo xtask test --only packed`");
  }
  return path;
}
