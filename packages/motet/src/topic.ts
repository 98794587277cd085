import { MotetError } from "./error.js";
import type { Handler, Message } from "./message.js";
import type { PublishOptions } from "./session.js";
import type { SubscribeOptions, Subscription } from "./subscription.js";

/** Options of an iteration. */
export interface IterateOptions extends SubscribeOptions {
  /** Messages kept for a loop that is slower than they come; the oldest is left out beyond it. Default 1000. */
  readonly limit?: number;
}

interface Access<T> {
  subscribe(handler: Handler<T>, options: SubscribeOptions, over: (error: MotetError) => void): Subscription;
  publish(payload: T, options: PublishOptions): Promise<void>;
}

const LIMIT = 1_000;

/** One topic of a bus. */
export class Topic<T> implements AsyncIterable<Message<T>> {
  readonly name: string;
  readonly #access: Access<T>;

  /** Made by `bus.topic`. */
  constructor(name: string, access: Access<T>) {
    this.name = name;
    this.#access = access;
  }

  /** Subscribes a handler. */
  subscribe(handler: Handler<T>, options: SubscribeOptions = {}): Subscription {
    return this.#access.subscribe(handler, options, () => undefined);
  }

  /** Publishes; resolves when the server acknowledged it. */
  publish(payload: T, options: PublishOptions = {}): Promise<void> {
    return this.#access.publish(payload, options);
  }

  /** Iterates with the defaults. */
  [Symbol.asyncIterator](): AsyncIterator<Message<T>, undefined> {
    return this.messages();
  }

  /**
   * Messages as they come. What a slow loop leaves out is counted in `skipped`. Ends when the loop ends, when
   * `signal` aborts, or with the error of a refused subscription.
   */
  messages(options: IterateOptions = {}): AsyncIterableIterator<Message<T>, undefined> {
    const limit = options.limit ?? LIMIT;
    const waiting: Message<T>[] = [];
    let skipped = 0;
    let wake: (() => void) | undefined;
    let failure: MotetError | undefined;
    let over = false;
    const subscription = this.#access.subscribe(
      (payload, meta) => {
        if (waiting.length >= limit) {
          waiting.shift();
          skipped += 1;
        }
        waiting.push({ payload, meta, skipped: 0 });
        wake?.();
      },
      options,
      (error) => {
        over = true;
        // The loop, the signal or the bus has ended it: that is no failure of the topic.
        if (error.code !== "ABORTED" && error.code !== "CLOSED") failure = error;
        wake?.();
      },
    );
    const next = async (): Promise<IteratorResult<Message<T>, undefined>> => {
      for (;;) {
        const message = waiting.shift();
        if (message !== undefined) {
          const value = { ...message, skipped };
          skipped = 0;
          return { done: false, value };
        }
        if (failure !== undefined) {
          subscription();
          throw failure;
        }
        if (over) return { done: true, value: undefined };
        await new Promise<void>((resolve) => (wake = resolve));
      }
    };
    return {
      next,
      return: () => {
        subscription();
        return Promise.resolve({ done: true, value: undefined });
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }
}
