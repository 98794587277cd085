import type { MotetError } from "./error.js";
import type { Message, MessageMeta } from "./message.js";

type Result<T> = IteratorResult<Message<T>, undefined>;

interface Asked<T> {
  readonly resolve: (result: Result<T>) => void;
  readonly reject: (error: MotetError) => void;
}

/** Messages on their way from a subscription to a loop. Calls of `next` that wait are served in their order. */
export class Iteration<T> implements AsyncIterableIterator<Message<T>, undefined> {
  readonly #limit: number;
  readonly #waiting: Message<T>[] = [];
  readonly #asked: Asked<T>[] = [];
  #skipped = 0;
  #over = false;
  #failure: MotetError | undefined;
  #end: () => void = () => undefined;

  /** So many messages are kept for a loop that is slower than they come; the oldest is left out beyond it. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Names what ends the subscription. */
  over(end: () => void): void {
    this.#end = end;
  }

  /** Takes a message. */
  push(payload: T, meta: MessageMeta): void {
    if (this.#waiting.length >= this.#limit) {
      this.#waiting.shift();
      this.#skipped += 1;
    }
    this.#waiting.push({ payload, meta, skipped: 0 });
    this.#serve();
  }

  /** No message comes any more; what is here is still handed out, then `failure` is told. */
  finish(failure: MotetError | undefined): void {
    this.#over = true;
    this.#failure = failure;
    this.#serve();
  }

  next(): Promise<Result<T>> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ resolve, reject });
      this.#serve();
    });
  }

  return(): Promise<Result<T>> {
    this.#waiting.length = 0;
    this.#end();
    this.finish(undefined);
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #serve(): void {
    while (this.#waiting.length > 0 || this.#over) {
      const asked = this.#asked.shift();
      if (asked === undefined) return;
      const message = this.#waiting.shift();
      const failure = this.#failure;
      if (message !== undefined) {
        asked.resolve({ done: false, value: { ...message, skipped: this.#skipped } });
        this.#skipped = 0;
      } else if (failure !== undefined) {
        this.#failure = undefined;
        asked.reject(failure);
        this.#end();
      } else {
        asked.resolve({ done: true, value: undefined });
      }
    }
  }
}
