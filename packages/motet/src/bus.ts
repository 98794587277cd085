/// <reference lib="esnext.disposable" preserve="true" />
import {
  checkMembers,
  checkTopic,
  checkValue,
  isFunction,
  isObject,
  isSignal,
  isWhole,
  refusalOf,
  type Checks,
} from "./checks.js";
import { MotetError } from "./error.js";
import type { BusError } from "./listeners.js";
import type { RestartConfig } from "./options.js";
import type { Handler } from "./message.js";
import type { PublishOptions, Session } from "./session.js";
import type { Snapshot } from "./snapshot.js";
import type { StatusView } from "./status.js";
import { SubscriptionCell, subscriptionOf, type SubscribeOptions, type Subscription } from "./subscription.js";
import { Topic } from "./topic.js";

/** Payload type of each topic. Without one, payloads are `unknown`. */
export type TopicMap = object;

/** Names of the topics in a map. */
export type TopicName<Topics extends TopicMap> = keyof Topics & string;

/** One publication of a batch. */
export type Publication<Topics extends TopicMap> = {
  [Name in TopicName<Topics>]: {
    readonly topic: Name;
    readonly payload: Topics[Name];
    readonly options?: PublishOptions;
  };
}[TopicName<Topics>];

/** Outcome of one publication of a batch. */
export type PublishOutcome = { readonly ok: true } | { readonly ok: false; readonly error: MotetError };

/** Options of {@link Bus.ready}. */
export interface ReadyOptions {
  /** Gives up waiting: the call rejects with `ABORTED`. */
  readonly signal?: AbortSignal;
}

/** Options of {@link Bus.start}. */
export interface StartOptions extends ReadyOptions {
  /** Options in place of those that `connect` was given. */
  readonly config?: RestartConfig;
}

const READY: Checks<ReadyOptions> = { signal: isSignal };
const START: Checks<StartOptions> = { ...READY, config: isObject };
const SUBSCRIBE: Checks<SubscribeOptions> = { replay: isWhole(0, 10_000), onGap: isFunction, signal: isSignal };

const ASYNC_DISPOSE: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/** A page's handle on a cluster. */
export class Bus<Topics extends TopicMap = Record<string, unknown>> implements AsyncDisposable {
  readonly #session: Session;
  readonly #ends = new Set<() => void>();
  readonly #release: () => Promise<void>;
  #starting: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /** Made by {@link connect}; `release` gives the session back. */
  constructor(session: Session, release: () => Promise<void>) {
    this.#session = session;
    this.#release = release;
  }

  /** The present state; `subscribe` calls at once and at every change. */
  get status(): StatusView {
    const cell = this.#session.status;
    return { ...cell.now, subscribe: (listener) => this.#owned(cell.subscribe(listener)) };
  }

  /**
   * Begins, or begins again after a failure. Starting twice is starting once: such calls share a promise.
   *
   * `config` replaces what the node is made from, while the bus has not begun or has failed; at other times, and for
   * options that decide who belongs together, it is refused (`CONFIG_INVALID`, `CLUSTER_CONFIG_MISMATCH`).
   */
  start(options: StartOptions = {}): Promise<void> {
    const invalid = refusalOf(() => checkMembers(options, START));
    if (invalid !== undefined) return Promise.reject(invalid);
    const { signal, config } = options;
    if (this.#closing !== undefined) return Promise.reject(new MotetError("CLOSED"));
    if (signal?.aborted === true) return Promise.reject(new MotetError("ABORTED", { cause: signal.reason }));
    const before = this.#session.status.now;
    try {
      if (config !== undefined) this.#session.configure(config);
    } catch (refusal) {
      return Promise.reject(refusal as MotetError);
    }
    this.#session.start();
    // A call that can be given up has a promise of its own.
    if (signal !== undefined) return this.#session.ready(signal, before);
    this.#starting ??= this.#session.ready(undefined, before).finally(() => (this.#starting = undefined));
    return this.#starting;
  }

  /** Resolves when the page's node is a member and, if it owns topics, is connected. */
  ready(options: ReadyOptions = {}): Promise<void> {
    const invalid = refusalOf(() => checkMembers(options, READY));
    if (invalid !== undefined) return Promise.reject(invalid);
    if (this.#closing !== undefined) return Promise.reject(new MotetError("CLOSED"));
    return this.#session.ready(options.signal);
  }

  /** Subscribes a handler to a topic. Legal before the bus runs. */
  subscribe<Name extends TopicName<Topics>>(
    topic: Name,
    handler: Handler<Topics[Name]>,
    options: SubscribeOptions = {},
  ): Subscription {
    return this.#subscribe(topic, handler as Handler<unknown>, options, () => undefined);
  }

  /** Publishes; resolves when the server acknowledged it. */
  publish<Name extends TopicName<Topics>>(
    topic: Name,
    payload: Topics[Name],
    options: PublishOptions = {},
  ): Promise<void> {
    if (this.#closing !== undefined) return Promise.reject(new MotetError("CLOSED"));
    return this.#session.publish(topic, payload, options);
  }

  /** Publishes several at once; resolves with the outcome of each, in order. */
  publishBatch(publications: readonly Publication<Topics>[]): Promise<PublishOutcome[]> {
    const calls = publications.map(async ({ topic, payload, options }): Promise<PublishOutcome> => {
      try {
        await this.publish(topic, payload, options);
        return { ok: true };
      } catch (error) {
        if (error instanceof MotetError) return { ok: false, error };
        throw error;
      }
    });
    return Promise.all(calls);
  }

  /** One topic: to iterate over, or to pass on. */
  topic<Name extends TopicName<Topics>>(name: Name): Topic<Topics[Name]> {
    return new Topic<Topics[Name]>(name, {
      subscribe: (handler, options, over) => this.#subscribe(name, handler as Handler<unknown>, options, over),
      publish: (payload, options) => this.publish(name, payload, options),
    });
  }

  /** Hears of errors outside of calls. The result ends it. */
  onError(listener: (error: BusError) => void): () => void {
    return this.#owned(this.#session.errors.add(listener));
  }

  /** Tries again what the server refused for good. */
  retry(): void {
    this.#session.retry();
  }

  /** What there is to see. Reading changes nothing; the node may be asked for its newest beats. */
  snapshot(): Snapshot {
    return this.#session.snapshot();
  }

  /** Ends this handle; the last one of a page leaves the cluster, handing its topics over. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [ASYNC_DISPOSE](): Promise<void> {
    return this.close();
  }

  #subscribe(
    topic: string,
    handler: Handler<unknown>,
    options: SubscribeOptions,
    over: (error: MotetError) => void,
  ): Subscription {
    const invalid = refusalOf(() => {
      checkTopic(topic);
      checkValue("handler", isFunction, handler);
      checkMembers(options, SUBSCRIBE);
    });
    if (invalid !== undefined) {
      const cell = new SubscriptionCell(typeof topic === "string" ? topic : "", undefined, over);
      cell.update("failed", undefined, invalid);
      return subscriptionOf(cell, () => undefined);
    }
    const cell = new SubscriptionCell(topic, options.onGap, over);
    const { signal } = options;
    if (this.#closing !== undefined || signal?.aborted === true) {
      cell.end(new MotetError(signal?.aborted === true ? "ABORTED" : "CLOSED", { detail: topic }));
      return subscriptionOf(cell, () => undefined);
    }
    const remove = this.#session.subscribe(cell, handler, options.replay ?? 0);
    const end = this.#owned(() => {
      signal?.removeEventListener("abort", end);
      remove();
    });
    signal?.addEventListener("abort", end, { once: true });
    return subscriptionOf(cell, end);
  }

  async #close(): Promise<void> {
    const released = this.#release();
    await released;
    for (const end of Array.from(this.#ends)) end();
  }

  /** Something that ends with this handle at the latest. */
  #owned(end: () => void): () => void {
    const once = (): void => {
      if (this.#ends.delete(once)) end();
    };
    this.#ends.add(once);
    return once;
  }
}
