/** What `pages/bench.js` offers to `Tab.evaluate`. */
import type { BusPage } from "@motet/browser-tests/bus-page";
import type { GapEntry } from "@motet/browser-tests/checker";

/** A gap event of a lean subscription: so many messages had been delivered before it. */
export interface PlacedGap extends GapEntry {
  readonly after?: number;
}

export interface BenchPage extends BusPage {
  /** From the call of `connect` until the page's node was a member. */
  readonly connectMs: number;
  /** `performance.timeOrigin + performance.now()`. */
  now(): number;
  /** Writes every message of a topic down. */
  subscribe(topic: string): void;
  /** Writes only sequence numbers and times down, for streams that leave no time for more. */
  subscribeLean(topic: string, capacity: number): void;
  lean(topic: string): { readonly count: number; readonly firstMs: number; readonly lastMs: number; readonly lastSeq: number };
  leanSeqs(topic: string): number[];
  /** Publishes to a topic the page is subscribed to and waits for its own handler, so often; milliseconds each. */
  roundTrips(topic: string, count: number, waitMs: number): Promise<number[]>;
  /** Publishes and posts along the bare chain in turn; the times of both calls. */
  alternate(topic: string, count: number, waitMs: number): Promise<{ published: number[]; posted: number[] }>;
  startBare(role: "sender" | "owner" | "receiver", url: string): Promise<void>;
  /** Arrivals at the end of the bare chain, by number. */
  readonly bareArrivals: readonly number[];
  forgetBareArrivals(): void;
  /** What another context's clock shows minus what this one's shows, in milliseconds. */
  clockAhead(context: string): Promise<number>;
  /** Posts counted in this page and in its worker (instrumented pages only). */
  posts(): Promise<number>;
  /** WebAssembly pages of this page's and of its worker's memories (instrumented pages only). */
  wasmPages(): Promise<{ readonly page: number; readonly node: number }>;
  /** When the worker's socket got each sequence number, on the worker's clock (instrumented pages only). */
  arrivals(): Promise<Record<string, number>>;
  block(forMs: number): void;
}

declare global {
  // eslint-disable-next-line no-var
  var P: BenchPage;
}
