import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readPublicationLog, type Accepted } from "./checker.ts";
import { beforeProcessEnds, nowMs, until, within } from "./driver/index.ts";

/** The real `motet serve` in a process of its own. */
export interface MotetServer extends AsyncDisposable {
  readonly port: number;
  readonly websocketUrl: string;
  readonly pid: number;
  /** What the server accepted so far, over all its restarts; the last 100 ms may still be missing. */
  publications(): Accepted[];
  /** As {@link publications}, once they hold what a publisher was told is accepted. */
  publicationsUpTo(acknowledged: ReadonlyMap<string, number>): Promise<Accepted[]>;
  /**
   * SIGKILL; resolves with the time of the signal once the process is gone. The last 100 ms of its publication log
   * may be missing.
   */
  kill(): Promise<number>;
  /** SIGTERM: the server says goodbye and writes its log to the end. Resolves as {@link kill} does. */
  stop(): Promise<number>;
  /** Starts again on the same port; resolves when it accepts connections. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export interface ServerOptions {
  /** TOML that replaces {@link OPEN_CONFIG}; the sections `http_server` and `log` are added to it. */
  readonly config?: string;
}

const START_WITHIN_MS = 15_000;
const END_WITHIN_MS = 5_000;
const LOG_WITHIN_MS = 5_000;

/** Anybody may do everything; history outlasts the longest absence of a tab in any test. */
export const OPEN_CONFIG = `
[client]
insecure = true
allowed_origins = ["*"]

[channel.without_namespace]
history_size = 2000
history_ttl = "300s"
force_recovery = true
`;

export async function startServer(options: ServerOptions = {}): Promise<MotetServer> {
  const directory = mkdtempSync(join(tmpdir(), "motet-serve-"));
  const server = new ServeProcess(directory, await freePort(), options.config ?? OPEN_CONFIG);
  try {
    await server.restart();
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

class ServeProcess implements MotetServer {
  readonly port: number;
  readonly #directory: string;
  readonly #executable = serverExecutable();
  #process: ChildProcess | undefined;
  readonly #outlived = beforeProcessEnds(() => {
    this.#process?.kill("SIGKILL");
    rmSync(this.#directory, { recursive: true, force: true });
  });

  constructor(directory: string, port: number, config: string) {
    this.port = port;
    this.#directory = directory;
    const log = JSON.stringify(this.#file("publications.jsonl"));
    writeFileSync(
      this.#file("motet.toml"),
      `${config}\n[http_server]\nport = ${port}\n\n[log]\nlevel = "warn"\npublication_log = ${log}\n`,
    );
  }

  get websocketUrl(): string {
    return `ws://127.0.0.1:${this.port}/connection/websocket`;
  }

  get pid(): number {
    const pid = this.#process?.pid;
    if (pid === undefined) throw new Error("the server does not run");
    return pid;
  }

  publications(): Accepted[] {
    const file = this.#file("publications.jsonl");
    return existsSync(file) ? readPublicationLog(file) : [];
  }

  publicationsUpTo(acknowledged: ReadonlyMap<string, number>): Promise<Accepted[]> {
    return until("the publication log holds what was acknowledged", LOG_WITHIN_MS, () => {
      const accepted = this.publications();
      const isThere = ([channel, seq]: [string, number]): boolean =>
        accepted.some((publication) => publication.channel === channel && publication.seq === seq);
      return [...acknowledged].every(isThere) && accepted;
    });
  }

  kill(): Promise<number> {
    return this.#end("SIGKILL");
  }

  stop(): Promise<number> {
    return this.#end("SIGTERM");
  }

  async restart(): Promise<void> {
    const output = openSync(this.#file("output.txt"), "a");
    const started = spawn(this.#executable, ["serve", "--config", this.#file("motet.toml")], {
      stdio: ["ignore", output, output],
    });
    closeSync(output);
    this.#process = started;
    const failed = new Promise<never>((_, reject) => started.once("error", reject));
    failed.catch(() => undefined);
    await Promise.race([failed, until("the server listens", START_WITHIN_MS, () => this.#listens(started))]);
  }

  async close(): Promise<void> {
    this.#outlived();
    try {
      await this.kill();
    } finally {
      rmSync(this.#directory, { recursive: true, force: true });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #end(signal: "SIGKILL" | "SIGTERM"): Promise<number> {
    const running = this.#process;
    const atMs = nowMs();
    if (running !== undefined && running.exitCode === null && running.signalCode === null) {
      const ended = new Promise((resolve) => running.once("exit", resolve));
      running.kill(signal);
      await within(END_WITHIN_MS, `the server ends after ${signal}`, ended);
    }
    this.#process = undefined;
    return atMs;
  }

  #file(name: string): string {
    return join(this.#directory, name);
  }

  async #listens(started: ChildProcess): Promise<boolean> {
    if (started.exitCode !== null || started.signalCode !== null) {
      throw new Error(`motet serve ended while starting:\n${readFileSync(this.#file("output.txt"), "utf8")}`);
    }
    return new Promise((resolve) => {
      const socket = connect(this.port, "127.0.0.1");
      socket.once("connect", () => {
        socket.destroy();
        resolve(true);
      });
      socket.once("error", () => resolve(false));
    });
  }
}

/** `$MOTET_BIN`, or whichever of the two builds is newer. */
function serverExecutable(): string {
  const given = process.env["MOTET_BIN"];
  if (given !== undefined) return given;
  const target = new URL("../../target/", import.meta.url).pathname;
  const [newest] = ["release/motet", "debug/motet"]
    .map((name) => join(target, name))
    .filter((file) => existsSync(file))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  if (newest === undefined) throw new Error("no motet binary in target/: run `cargo build --release -p motet-server`");
  return newest;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
