import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { python } from "./python.ts";
import { Server } from "./server.ts";

/** Without tokens, so that every operation can be reached. */
const CONFIG = `
[http_server]
port = 0

[store]
path = "data"
backup_path = "backups"
environments_max = 8
`;

/** How many examples of each operation, so that all of it takes less than a minute and a half. */
const EXAMPLES = 40;

interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

test("PyPI schemathesis 4.32.5 finds the store's API to be what its description says", async () => {
  await using server = await Server.start(CONFIG);
  const address = `${server.apiUrl}/openapi.json`;
  // What the examples of the description name.
  const order = await fetch(`${server.apiUrl}/default/types/Order/o-1`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  assert.equal(order.status, 200);
  const [code, output] = await schemathesis(address);
  assert.equal(code, 0, output);
  const description = (await (await fetch(address)).json()) as Description;
  assert.deepEqual(await neverDone(server, description), [], output);
});

async function schemathesis(address: string): Promise<[number | null, string]> {
  const command = ["-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run", address];
  const options = ["--checks", "all", "--max-examples", String(EXAMPLES), "--seed", "1", "--no-color"];
  const child = spawn(python(), [...command, ...options], {
    cwd: import.meta.dirname,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => { output += text; });
  child.stderr.setEncoding("utf8").on("data", (text: string) => { output += text; });
  const [code] = (await once(child, "exit")) as [number | null];
  return [code, output];
}

/** The operations that the server has not carried out once, by its own count. */
async function neverDone(server: Server, description: Description): Promise<string[]> {
  const metrics = await (await fetch(`http://${server.host}/metrics`)).text();
  const missing: string[] = [];
  for (const [path, operations] of Object.entries(description.paths)) {
    for (const method of Object.keys(operations).map((name) => name.toUpperCase())) {
      const label = `method="${method}",route="${path}",status="200"`;
      if (!metrics.includes(`motet_store_requests_total{${label}}`)) missing.push(`${method} ${path}`);
    }
  }
  return missing;
}
