import type { PageEntry } from "@motet/browser-tests/checker";

/** Oldest entries go first when a page stays open for days; a show writes a few thousand. */
const ENTRIES_MAX = 200_000;

/**
 * What this page's own handlers saw, in order, for a judge who trusts nobody's counters.
 * Times are comparable between all pages and processes of one machine.
 */
export class DeliveryLog {
  readonly entries: PageEntry[] = [];
  #dropped = 0;

  note(entry: PageEntry): void {
    if (this.entries.length === ENTRIES_MAX) {
      this.entries.shift();
      this.#dropped += 1;
    }
    this.entries.push(entry);
  }

  /** Entries that no longer are in {@link entries}. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Messages noted at or after a time. */
  messagesSince(fromMs: number): number {
    let count = 0;
    for (let index = this.entries.length - 1; index >= 0; index -= 1) {
      const entry = this.entries[index];
      if (entry === undefined || entry.atMs < fromMs) break;
      if (entry.kind === "message") count += 1;
    }
    return count;
  }
}

export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
