import type { Snapshot } from "motet";
import type { PageEntry } from "@motet/browser-tests/checker";

export interface PageStats {
  readonly status: string;
  readonly delivered: number;
  readonly gaps: number;
  readonly perSecond: number;
  readonly snapshot: Snapshot;
}

/** What the show may read of a page and do to it. */
export interface StageApi {
  readonly log: readonly PageEntry[];
  stats(): PageStats;
  block(forMs: number): void;
  /** Subscribes to a topic that the page's address told it to leave. */
  follow(topic: "quakes" | "prices"): void;
}

declare global {
  interface Window {
    readonly __log: readonly PageEntry[];
    readonly __stage: StageApi;
  }
}
