/** The processes that work on the store, and what is done to them. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { beforeProcessEnds, within } from "@motet/browser-tests/driver";

const ENDS_WITHIN_MS = 10_000;

export interface WorkersOptions {
  readonly program: string;
  readonly data: string;
  /** Where the journals are written. */
  readonly folder: string;
}

export class Worker {
  readonly name: string;
  readonly journal: string;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #errors = "";

  constructor(name: string, { program, data, folder }: WorkersOptions) {
    this.name = name;
    this.journal = join(folder, `${name}.jsonl`);
    const rest = ["work", "--data", data, "--name", name, "--journal", this.journal];
    this.#child = spawn(program, rest, { stdio: ["pipe", "ignore", "pipe"] });
    this.#child.stderr?.on("data", (text: Buffer) => (this.#errors += text.toString()));
    // Ended by a signal, it no longer reads what it is told.
    this.#child.stdin?.on("error", () => {});
    this.#ended = once(this.#child, "exit");
    if (this.#child.pid === undefined) throw new Error(`${program} could not be started`);
    this.pid = this.#child.pid;
    beforeProcessEnds(() => this.#child.kill("SIGKILL"));
  }

  /** Ends it as a power cut of this one process would. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await within(ENDS_WITHIN_MS, `${this.name} ends`, this.#ended);
  }

  stop(): void {
    this.#child.kill("SIGSTOP");
  }

  goOn(): void {
    this.#child.kill("SIGCONT");
  }

  /** Tells it to end, and fails if it had something to complain of. */
  async end(): Promise<void> {
    this.#child.stdin?.end();
    await within(ENDS_WITHIN_MS, `${this.name} ends`, this.#ended);
    if (this.#child.exitCode !== 0) throw new Error(`${this.name} ended with ${this.#child.exitCode}: ${this.#errors}`);
  }
}
