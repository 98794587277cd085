import { checkValue, isWhole } from "./checks.js";
import type { MotetError } from "./error.js";
import { Iteration } from "./iteration.js";
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
   *
   * @throws {@link MotetError} `CONFIG_INVALID` for a limit that is none.
   */
  messages(options: IterateOptions = {}): AsyncIterableIterator<Message<T>, undefined> {
    const { limit = LIMIT, ...rest } = options;
    checkValue("limit", isWhole(1, 1_000_000), limit);
    const iteration = new Iteration<T>(limit);
    const subscription = this.#access.subscribe(
      (payload, meta) => iteration.push(payload, meta),
      rest,
      // The loop, the signal or the bus has ended it: that is no failure of the topic.
      (error) => iteration.finish(error.code === "ABORTED" || error.code === "CLOSED" ? undefined : error),
    );
    iteration.over(subscription);
    return iteration;
  }
}
