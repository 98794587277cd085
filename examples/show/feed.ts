import { fork, type ChildProcess } from "node:child_process";
import { within } from "@motet/browser-tests/driver";
import type { FeedAnswer, FeedOrder } from "./feed-process.ts";

const ANSWER_WITHIN_MS = 20_000;

/** Both series, published by npm `centrifuge` from a process of its own. */
export class Feed implements AsyncDisposable {
  readonly #process: ChildProcess;

  private constructor(process: ChildProcess) {
    this.#process = process;
  }

  static async start(websocketUrl: string): Promise<Feed> {
    const child = fork(new URL("./feed-process.ts", import.meta.url), [websocketUrl], { execArgv: ["--import", "tsx"] });
    const feed = new Feed(child);
    await feed.#answer("ready");
    return feed;
  }

  /** Goes on where {@link pause} stopped. */
  async play(): Promise<void> {
    await this.#order("play", "playing");
  }

  /** Resolves when nothing is under way any more, with the last acknowledged sequence number of each channel. */
  async pause(): Promise<ReadonlyMap<string, number>> {
    const { acknowledged } = await this.#order("pause", "paused");
    return new Map(acknowledged);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    if (this.#process.connected) this.#process.send("end" satisfies FeedOrder);
    try {
      await within(ANSWER_WITHIN_MS, "the feed ends", ended);
    } finally {
      this.#process.kill("SIGKILL");
    }
  }

  #order(order: FeedOrder, expected: FeedAnswer["state"]): Promise<FeedAnswer> {
    const answered = this.#answer(expected);
    this.#process.send(order);
    return answered;
  }

  #answer(expected: FeedAnswer["state"]): Promise<FeedAnswer> {
    const answered = new Promise<FeedAnswer>((resolve, reject) => {
      const ended = (): void => reject(new Error(`the feed ended before it was ${expected}`));
      this.#process.once("exit", ended);
      this.#process.once("message", (message) => {
        this.#process.off("exit", ended);
        const answer = message as FeedAnswer;
        if (answer.state === expected) resolve(answer);
        else reject(new Error(`the feed is ${answer.state} instead of ${expected}`));
      });
    });
    return within(ANSWER_WITHIN_MS, `the feed is ${expected}`, answered);
  }
}
