import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { python } from "./python.ts";
import { API_KEY, Server, TOKEN_SECRET } from "./server.ts";

let server: Server;
before(async () => {
  server = await Server.start();
});
after(async () => {
  await server[Symbol.asyncDispose]();
});

/** Runs a module of unittest cases in Python against the server. */
async function unittest(module: string): Promise<void> {
  const child = spawn(python(), ["-m", "unittest", "-v", module], {
    cwd: import.meta.dirname,
    env: {
      ...process.env,
      MOTET_WEBSOCKET: server.websocketUrl,
      MOTET_API: server.apiUrl,
      MOTET_API_KEY: API_KEY,
      MOTET_TOKEN_SECRET: TOKEN_SECRET,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => { output += text; });
  child.stderr.setEncoding("utf8").on("data", (text: string) => { output += text; });
  const [code] = (await once(child, "exit")) as [number | null];
  assert.equal(code, 0, output);
  assert.match(output, /Ran [1-9]\d* tests?/, output);
}

test("PyPI centrifuge-python 0.7.0 works over JSON and Protobuf", () => unittest("client_cases"));

test("PyPI cent 5.2.0 works against the HTTP API", () => unittest("api_cases"));
