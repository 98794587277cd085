import { spawn, type ChildProcess } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export const TOKEN_SECRET = "secret";
export const API_KEY = "test-api-key";

/** Rights and channels that the clients' own test suites expect of a server. */
const CONFIG = `
[http_server]
port = 0

[client]
insecure = false
allow_anonymous_connect_without_token = true

[client.token]
hmac_secret_key = "${TOKEN_SECRET}"

[http_api]
key = "${API_KEY}"

[channel.without_namespace]
presence = true
join_leave = true
force_push_join_leave = true
history_size = 100
history_ttl = "300s"
force_recovery = true
allow_subscribe_for_client = true
allow_subscribe_for_anonymous = true
allow_publish_for_subscriber = true
allow_presence_for_subscriber = true
allow_history_for_subscriber = true

[[channel.namespaces]]
name = "smallhistory"
history_size = 2
history_ttl = "300s"
force_recovery = true
allow_subscribe_for_client = true
allow_subscribe_for_anonymous = true
allow_publish_for_subscriber = true

[[channel.namespaces]]
name = "private"
presence = true
`;

const START_WITHIN_MS = 15_000;

/** The real `motet serve` in a process of its own. */
export class Server implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly host: string;

  private constructor(process: ChildProcess, folder: string, host: string) {
    this.#process = process;
    this.#folder = folder;
    this.host = host;
  }

  static async start(content: string = CONFIG): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), "motet-foreign-"));
    const config = join(folder, "motet.toml");
    writeFileSync(config, content);
    const process = spawn(executable(), ["serve", "--config", config], {
      cwd: folder,
      stdio: ["ignore", "ignore", "pipe"],
    });
    const host = await listening(process);
    return new Server(process, folder, host);
  }

  get websocketUrl(): string {
    return `ws://${this.host}/connection/websocket`;
  }

  get apiUrl(): string {
    return `http://${this.host}/api`;
  }

  async api(method: string, body: unknown): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.apiUrl}/${method}`, {
      method: "POST",
      headers: { "X-API-Key": API_KEY, "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as { result?: Record<string, unknown>; error?: unknown };
    if (answer.result === undefined) throw new Error(`${method}: ${JSON.stringify(answer.error)}`);
    return answer.result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null) {
      this.#process.kill("SIGTERM");
      await once(this.#process, "exit");
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function executable(): string {
  const path = process.env.MOTET_BIN ?? resolve(import.meta.dirname, "../../target/debug/motet");
  if (!existsSync(path)) throw new Error(`${path} is missing: run cargo build -p motet-server`);
  return path;
}

function listening(process: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let log = "";
    const timer = setTimeout(() => reject(new Error(`the server did not start: ${log}`)), START_WITHIN_MS);
    process.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${log}`)));
    process.stderr?.setEncoding("utf8").on("data", (text: string) => {
      log += text;
      const host = /listening on http:\/\/([0-9.:]+)/.exec(log)?.[1];
      if (host === undefined) return;
      clearTimeout(timer);
      resolve(host);
    });
  });
}

/** A token as an application's backend would sign it. */
export function token(claims: Record<string, unknown>): string {
  const signed = `${base64url({ alg: "HS256", typ: "JWT" })}.${base64url(claims)}`;
  const signature = createHmac("sha256", TOKEN_SECRET).update(signed).digest("base64url");
  return `${signed}.${signature}`;
}

function base64url(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
