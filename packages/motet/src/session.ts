import {
  checkMembers,
  checkTopic,
  isBetween,
  isFlag,
  isSignal,
  isText,
  isTime,
  refusalOf,
  type Checks,
} from "./checks.js";
import { MotetError, type ErrorObject } from "./error.js";
import { startHost } from "./host.js";
import { ERROR_SOURCES, ErrorListeners, type ErrorSource } from "./listeners.js";
import { coreHandler, GAP_REASONS, type Gap, type Handler, type Position } from "./message.js";
import { fingerprint, messageSizeLimit, reconfigured, type ConnectOptions, type RestartConfig } from "./options.js";
import { bytesAtLeast, isTooDeep, JSON_DEPTH_MAX } from "./payload.js";
import { text } from "./thrown.js";
import { SnapshotCollector, type Snapshot } from "./snapshot.js";
import { BUS_STATES, StatusCell, type BusStatus, type HostInUse } from "./status.js";
import { SUBSCRIPTION_STATES, SubscriptionCell } from "./subscription.js";
import { BUILD } from "./wasm/build.js";
import { PageBus } from "./wasm/page/motet_web.js";

/** Options of a publication. */
export interface PublishOptions {
  /** The application's id of the message. */
  readonly messageId?: string;
  /** The application's timestamp. */
  readonly timestamp?: number | Date;
  /** The same key for the same operation makes repeating it safe. One is drawn when absent. */
  readonly idempotencyKey?: string;
  /** Time it has; the bus's `publishDeadlineMs` when absent. */
  readonly deadlineMs?: number;
  /** Gives up waiting: the call rejects with `ABORTED`. */
  readonly signal?: AbortSignal;
  /** Move a binary payload to the node instead of copying it; it is detached here. */
  readonly transfer?: boolean;
}

interface Call {
  readonly resolve: () => void;
  readonly reject: (error: MotetError) => void;
}

const PUBLISH: Checks<PublishOptions> = {
  messageId: isText,
  timestamp: isTime,
  idempotencyKey: isText,
  deadlineMs: isBetween(0, 3_600_000),
  signal: isSignal,
  transfer: isFlag,
};

const ENDED = new Set(["closing", "closed", "suspended", "failed"]);

/** One page's work on one cluster: what all handles that `connect` gave for it share. */
export class Session {
  readonly errors = new ErrorListeners();
  readonly status = new StatusCell((cause) => this.#report("dispatch", cause));
  #options: ConnectOptions;
  readonly #core: PageBus;
  readonly #topics = new Map<string, Set<SubscriptionCell>>();
  readonly #calls = new Map<number, Call>();
  #lastCall = 0;
  /** The start of a host that is under way, or was the last. */
  #launch: AbortController | undefined;
  #freed = false;

  constructor(options: ConnectOptions) {
    this.#options = options;
    this.#core = new PageBus(
      { ...options, fingerprint: fingerprint(options), build: BUILD },
      {
        startNode: (start: number, tab: string, visible: boolean) => void this.#startNode(start, tab, visible),
        abandonNode: () => this.#launch?.abort(),
        status: (state: number, nodeId?: string, error?: ErrorObject) => this.#onStatus(state, nodeId, error),
        subscription: (topic: string, state: number, epoch: string | undefined, offset: number, error?: ErrorObject) =>
          this.#onSubscription(topic, state, epoch === undefined ? undefined : { epoch, offset }, error),
        gap: (topic: string, epoch: string, offset: number, toEpoch: string | undefined, to: number, reason: number) =>
          this.#onGap({
            topic,
            from: { epoch, offset },
            ...(toEpoch === undefined ? {} : { to: { epoch: toEpoch, offset: to } }),
            reason: GAP_REASONS[reason] ?? "repair-timeout",
          }),
        settled: (call: number, error?: ErrorObject) => this.#onSettled(call, error),
        tokenWanted: (topic?: string) => void this.#onTokenWanted(topic),
        failed: (source: number, error: ErrorObject, cause: unknown) =>
          this.errors.tell(ERROR_SOURCES[source] ?? "coordination", MotetError.from(error, cause)),
      },
    );
  }

  /** Its present options. */
  get options(): ConnectOptions {
    return this.#options;
  }

  /** Takes other options for the node's next start. */
  configure(config: RestartConfig): void {
    const { state } = this.status.now;
    if (state !== "idle" && state !== "failed") {
      throw new MotetError("CONFIG_INVALID", { detail: `options cannot change while the bus is ${state}` });
    }
    this.#options = reconfigured(this.#options, config);
  }

  start(): void {
    if (!this.#freed) this.#core.start();
  }

  /**
   * Resolves when the page's node runs; rejects when none can while things stand as they do. The failure that a start
   * is to overcome is `before` it and does not count.
   */
  ready(signal?: AbortSignal, before?: BusStatus): Promise<void> {
    return this.#until((status) => {
      if (status === before && status.state === "failed") return false;
      const degraded = status.state === "degraded";
      if (status.state === "running" || (degraded && status.nodeId !== undefined)) return true;
      if (degraded || ENDED.has(status.state)) throw endOf(status);
      return false;
    }, signal);
  }

  /** Leaves the cluster, handing topics over, and resolves when nothing is left of it. */
  async close(): Promise<void> {
    if (!this.#freed) {
      this.#core.close();
      if (this.status.now.state === "idle") this.#onStatus(BUS_STATES.indexOf("closed"));
    }
    await this.#until(({ state }) => state === "closed");
    if (this.#freed) return;
    this.#freed = true;
    for (const cells of this.#topics.values()) for (const cell of cells) cell.end(new MotetError("CLOSED"));
    this.#topics.clear();
    for (const call of this.#calls.values()) call.reject(new MotetError("OUTCOME_UNKNOWN"));
    this.#calls.clear();
    this.#core.end();
    this.#core.free();
  }

  /** Adds a handler; the result takes it away. */
  subscribe(cell: SubscriptionCell, handler: Handler<unknown>, replay: number): () => void {
    if (this.#freed) {
      cell.end(new MotetError("CLOSED"));
      return () => undefined;
    }
    const { topic } = cell;
    const id = this.#core.subscribe(topic, coreHandler(topic, handler), replay);
    const cells = this.#topics.get(topic) ?? new Set();
    this.#topics.set(topic, cells.add(cell));
    return () => {
      cell.end(new MotetError("ABORTED", { detail: topic }));
      if (!cells.delete(cell) || this.#freed) return;
      if (cells.size === 0) this.#topics.delete(topic);
      this.#core.unsubscribe(id);
    };
  }

  publish(topic: string, payload: unknown, options: PublishOptions): Promise<void> {
    const size = bytesAtLeast(payload);
    const refusal = this.#refusal(topic, payload, size, options);
    if (refusal !== undefined) return Promise.reject(refusal);
    const { signal, timestamp } = options;
    const call = ++this.#lastCall;
    this.#core.publish(
      call,
      topic,
      payload,
      size,
      options.messageId,
      timestamp === undefined ? undefined : Number(timestamp),
      options.idempotencyKey,
      options.deadlineMs,
      options.transfer ?? false,
    );
    // The core tells of outcomes later, never during the call.
    const settled = new Promise<void>((resolve, reject) => this.#calls.set(call, { resolve, reject }));
    if (signal === undefined) return settled;
    const abort = (): void => {
      if (!this.#freed) this.#core.abort(call);
    };
    signal.addEventListener("abort", abort, { once: true });
    return settled.finally(() => signal.removeEventListener("abort", abort));
  }

  /** Why a publication is not even taken. */
  #refusal(topic: string, payload: unknown, size: number, options: PublishOptions): MotetError | undefined {
    const invalid = refusalOf(() => {
      checkTopic(topic);
      checkMembers(options, PUBLISH);
    });
    if (invalid !== undefined) return invalid;
    if (this.#freed) return new MotetError("CLOSED");
    if (options.signal?.aborted === true) return new MotetError("ABORTED", { cause: options.signal.reason });
    const most = messageSizeLimit(this.#options);
    if (size > most) return new MotetError("PAYLOAD_TOO_LARGE", { detail: `${size} bytes, at most ${most}` });
    try {
      if (!isTooDeep(payload)) return undefined;
      return new MotetError("UNCLONEABLE", { detail: `nested deeper than ${JSON_DEPTH_MAX} levels` });
    } catch (cause) {
      return new MotetError("UNCLONEABLE", { detail: text(cause), cause });
    }
  }

  retry(): void {
    if (!this.#freed) this.#core.retry();
  }

  snapshot(): Snapshot {
    const collector = new SnapshotCollector();
    if (!this.#freed) this.#core.snapshot(collector);
    return collector.finish(this.status.now);
  }

  async #startNode(start: number, tab: string, visible: boolean): Promise<void> {
    const { transport } = this.#options;
    const launch = new AbortController();
    this.#launch = launch;
    try {
      const host = await startHost({
        signal: launch.signal,
        options: this.#options,
        node: {
          fingerprint: fingerprint(this.#options),
          tab,
          visible,
          build: BUILD,
          maxActiveNodes: this.#options.maxActiveNodes,
          ringMessages: this.#options.ringMessages,
          ringBytes: this.#options.ringBytes,
          url: new URL(transport.url, location.href).href,
          protobuf: transport.protocol === "protobuf",
          messageSizeLimit: messageSizeLimit(this.#options),
          name: transport.name,
          version: transport.version,
          data: transport.data,
          tokenNeeded: transport.token !== undefined,
          topicTokens: transport.topicTokens,
          commandTimeoutMs: transport.commandTimeoutMs,
        },
        died: (error) => this.#nodeGone(start, error),
      });
      if (this.#freed) return host.stop();
      this.#tellPassedOver(host.passedOver, this.status.now.host);
      this.status.set({ ...this.status.now, host: host.inUse });
      this.#core.nodeReady(start, host.port, () => host.stop(), host.inUse.kind === "shared-worker");
    } catch (cause) {
      this.#nodeGone(start, MotetError.of(cause));
    }
  }

  /** Tells that wanted hosts cannot be used; once, not at every restart of the node. */
  #tellPassedOver(detail: string | undefined, before: HostInUse | undefined): void {
    if (detail === undefined || detail === before?.reason) return;
    this.errors.tell("config", new MotetError("HOST_UNAVAILABLE", { detail }));
  }

  #nodeGone(start: number, error: MotetError): void {
    if (!this.#freed) this.#core.nodeGone(start, error.number, error.detail);
  }

  #onStatus(state: number, nodeId?: string, error?: ErrorObject): void {
    const { host, coordination } = this.status.now;
    this.status.set({
      state: BUS_STATES[state] ?? "failed",
      coordination,
      ...(nodeId === undefined ? {} : { nodeId }),
      ...(error === undefined ? {} : { error: MotetError.from(error) }),
      ...(host === undefined ? {} : { host }),
    });
  }

  #onSubscription(topic: string, state: number, position: Position | undefined, error?: ErrorObject): void {
    const failure = error === undefined ? undefined : MotetError.from(error);
    for (const cell of Array.from(this.#topics.get(topic) ?? [])) {
      cell.update(SUBSCRIPTION_STATES[state] ?? "pending", position, failure);
    }
  }

  #onGap(gap: Gap): void {
    for (const cell of Array.from(this.#topics.get(gap.topic) ?? [])) {
      try {
        cell.onGap?.(gap);
      } catch (cause) {
        this.#report("dispatch", cause);
      }
    }
  }

  #onSettled(number: number, error?: ErrorObject): void {
    const call = this.#calls.get(number);
    this.#calls.delete(number);
    if (error === undefined) call?.resolve();
    else call?.reject(MotetError.from(error));
  }

  async #onTokenWanted(topic: string | undefined): Promise<void> {
    let token: string | undefined;
    try {
      const given: unknown = await this.#options.transport.token?.(topic === undefined ? {} : { topic });
      if (typeof given === "string") token = given;
      else if (given !== undefined && given !== null) throw new TypeError(`token() gave a ${typeof given}, not a string`);
    } catch (cause) {
      const about = topic === undefined ? {} : { detail: topic };
      this.errors.tell("transport", new MotetError("TOKEN_UNAVAILABLE", { ...about, cause }));
    }
    if (!this.#freed) this.#core.token(topic, token);
  }

  #report(source: ErrorSource, cause: unknown): void {
    this.errors.tell(source, new MotetError("DISPATCH_FAILED", { detail: text(cause), cause }));
  }

  /** Waits for a status; `accepts` may throw what the wait rejects with. */
  #until(accepts: (status: BusStatus) => boolean, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const ends: (() => void)[] = [];
      let over = false;
      const end = (then: () => void): void => {
        over = true;
        for (const one of ends) one();
        then();
      };
      const aborted = (): void => end(() => reject(new MotetError("ABORTED", { cause: signal?.reason })));
      if (signal?.aborted === true) return aborted();
      signal?.addEventListener("abort", aborted, { once: true });
      ends.push(() => signal?.removeEventListener("abort", aborted));
      const stop = this.status.subscribe((status) => {
        if (over) return;
        try {
          if (accepts(status)) end(resolve);
        } catch (cause) {
          end(() => reject(cause instanceof Error ? cause : new Error(String(cause))));
        }
      });
      // The present status may have ended it during the call.
      if (over) stop();
      else ends.push(stop);
    });
  }
}

function endOf(status: BusStatus): MotetError {
  if (status.error !== undefined) return status.error;
  return new MotetError(status.state === "suspended" ? "SUSPENDED" : "CLOSED");
}
