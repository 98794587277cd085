/** The README's example, as it stands there. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { BusFixture } from "./bus-fixture.ts";

declare global {
  /** What the page has printed, each with the kind of its line. */
  var printed: unknown[][];
}

const EXAMPLE = /```ts\n(import \{ connect \}.*?)```/s;
const ADDRESS = "ws://127.0.0.1:8000/connection/websocket";

test("the README's example, run as it is, prints the message that it publishes and who owns the topic", async (t) => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const [, example = ""] = EXAMPLE.exec(readme) ?? [];
  assert.ok(example.includes(ADDRESS), "the example names the server of the command below it");
  let address = ADDRESS;
  const bus = await BusFixture.start(t, {
    site: {
      handlers: {
        "/example.js": (_, response) =>
          response.setHeader("content-type", "text/javascript").end(example.replace(ADDRESS, address)),
      },
    },
  });
  address = bus.server.websocketUrl;
  const tab = await bus.open({ connect: { autoStart: false } });
  await tab.evaluate(async () => {
    const lines: unknown[][] = (globalThis.printed = []);
    for (const kind of ["log", "table", "warn", "error"] as const) {
      console[kind] = (...what: unknown[]) => lines.push([kind, ...(JSON.parse(JSON.stringify(what)) as unknown[])]);
    }
    await import("/example.js" as string);
  });
  await tab.waitFor("has printed the message", 10_000, () => globalThis.printed.some(([kind]) => kind === "log"));
  const printed = await tab.evaluate(() => globalThis.printed);
  const table = printed.find(([kind]) => kind === "table");
  assert.deepEqual(printed.filter(([kind]) => kind !== "table"), [["log", 1, { symbol: "MSFT", price: 512.4 }]]);
  const [row, ...others] = (table ?? [])[1] as { topic: string }[];
  assert.deepEqual([row?.topic, others.length], ["price.feed", 0]);
});
