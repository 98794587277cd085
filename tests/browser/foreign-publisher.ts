import { Centrifuge } from "centrifuge";
import { WebSocket } from "ws";
import { nowMs, until, within } from "./driver/index.ts";

/**
 * Publishes through the server with the npm client `centrifuge`, which knows nothing of Motet. Every payload
 * carries the next sequence number of its channel, and the time at which it was handed over.
 */
export interface ForeignPublisher extends AsyncDisposable {
  /** Resolves when the server acknowledged; the sequence number is used up in any case. */
  publish(channel: string, payload?: object): Promise<number>;
  /**
   * Publishes one payload after another, each `waitMs` after the one before. While the connection is down the
   * payloads of that time are skipped, as a live feed would. Ends with the payloads, or by `stop`.
   */
  pace(channel: string, payloads: Iterable<PacedPayload>): PacedStream;
  /** Stops every paced stream; resolves when nothing is under way any more. */
  pause(): Promise<void>;
  /** Resolves when the connection is up. */
  connected(): Promise<void>;
  /** The highest sequence number of each channel that the server acknowledged. */
  readonly acknowledged: ReadonlyMap<string, number>;
  readonly counts: { readonly acknowledged: number; readonly unacknowledged: number; readonly skipped: number };
  close(): Promise<void>;
}

export interface PacedPayload {
  readonly waitMs: number;
  readonly payload: object;
}

export interface PacedStream {
  /** Resolves when nothing of this stream is under way any more. */
  stop(): Promise<void>;
  readonly ended: Promise<void>;
}

const CONNECT_WITHIN_MS = 10_000;
const PUBLISH_WITHIN_MS = 5_000;

export async function connectPublisher(websocketUrl: string): Promise<ForeignPublisher> {
  const client = new Centrifuge(websocketUrl, {
    websocket: WebSocket,
    minReconnectDelay: 50,
    maxReconnectDelay: 250,
    timeout: PUBLISH_WITHIN_MS,
  });
  // Errors of single attempts: the client tries again by itself, connected() bounds the wait.
  client.on("error", () => undefined);
  client.connect();
  const publisher = new CentrifugePublisher(client);
  try {
    await publisher.connected();
  } catch (error) {
    await publisher.close();
    throw error;
  }
  return publisher;
}

class CentrifugePublisher implements ForeignPublisher {
  readonly counts = { acknowledged: 0, unacknowledged: 0, skipped: 0 };
  readonly acknowledged = new Map<string, number>();
  readonly #client: Centrifuge;
  readonly #lastSeq = new Map<string, number>();
  readonly #streams = new Set<PacedStream>();

  constructor(client: Centrifuge) {
    this.#client = client;
  }

  async connected(): Promise<void> {
    await within(CONNECT_WITHIN_MS, "the foreign publisher connects", this.#client.ready(CONNECT_WITHIN_MS));
  }

  async publish(channel: string, payload: object = {}): Promise<number> {
    const seq = (this.#lastSeq.get(channel) ?? 0) + 1;
    this.#lastSeq.set(channel, seq);
    try {
      await this.#client.publish(channel, { ...payload, seq, publishedAtMs: nowMs() });
      this.counts.acknowledged += 1;
      this.acknowledged.set(channel, Math.max(seq, this.acknowledged.get(channel) ?? 0));
    } catch (error) {
      this.counts.unacknowledged += 1;
      throw error;
    }
    return seq;
  }

  pace(channel: string, payloads: Iterable<PacedPayload>): PacedStream {
    const iterator = payloads[Symbol.iterator]();
    const underway = new Set<Promise<unknown>>();
    const stopping = new AbortController();
    const ended = this.#run(channel, iterator, underway, stopping.signal);
    const stream: PacedStream = {
      ended,
      stop: async () => {
        stopping.abort();
        await ended;
      },
    };
    this.#streams.add(stream);
    void ended.finally(() => this.#streams.delete(stream));
    return stream;
  }

  async pause(): Promise<void> {
    await Promise.all([...this.#streams].map((stream) => stream.stop()));
  }

  async close(): Promise<void> {
    await this.pause();
    this.#client.disconnect();
    await until("the foreign publisher disconnects", CONNECT_WITHIN_MS, () => this.#client.state === "disconnected");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Due times add up, so that a late timer does not slow the stream down. */
  async #run(
    channel: string,
    iterator: Iterator<PacedPayload>,
    underway: Set<Promise<unknown>>,
    stopped: AbortSignal,
  ): Promise<void> {
    let dueMs = performance.now();
    for (let next = iterator.next(); next.done !== true && !stopped.aborted; next = iterator.next()) {
      dueMs += next.value.waitMs;
      await due(dueMs, stopped);
      if (stopped.aborted) break;
      if (this.#client.state !== "connected") {
        this.counts.skipped += 1;
        continue;
      }
      // An unacknowledged publication is counted; whether it arrived is for the server's log to say.
      const attempt = this.publish(channel, next.value.payload).catch(() => undefined);
      underway.add(attempt);
      void attempt.finally(() => underway.delete(attempt));
    }
    await within(PUBLISH_WITHIN_MS * 2, `publications to ${channel} settle`, Promise.all(underway));
  }
}

function due(dueMs: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      stopped.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, Math.max(0, dueMs - performance.now()));
    stopped.addEventListener("abort", finish);
  });
}
