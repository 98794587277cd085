import { totals as sumsOf } from "@motet/browser-tests/checker";
import { establishedConnections } from "@motet/browser-tests/driver";
import { tabOf, type Evidence } from "./report.ts";
import type { Stage } from "./events.ts";
import type { StageServer } from "./stage-server.ts";
import type { LiveTable } from "./terminal.ts";

const LOOK_EVERY_MS = 500;
const COUNT_EVERY_MS = 50;
/** The foreign publisher holds one connection itself. */
const PUBLISHERS = 1;

/** Looks at the tabs and counts connections while the show runs. */
export class Recorder implements Disposable {
  readonly #stage: Stage;
  readonly #table: LiveTable;
  readonly #stageServer: StageServer;
  readonly #timers: NodeJS.Timeout[];
  readonly #startedMs = performance.now();
  #title = "opening the tabs";
  #connectionsMax = 0;
  #connectionsMaxOfAll = 0;
  #looking = false;

  constructor(stage: Stage, table: LiveTable, stageServer: StageServer) {
    this.#stage = stage;
    this.#table = table;
    this.#stageServer = stageServer;
    this.#timers = [setInterval(() => void this.#look(), LOOK_EVERY_MS), setInterval(() => this.#count(), COUNT_EVERY_MS)];
  }

  /** Names what happens from now on, and counts anew. */
  begin(title: string): void {
    this.#title = title;
    this.#connectionsMax = 0;
    this.#table.headline(`${this.#elapsedSeconds()} s  ${title}`);
  }

  /** The most connections of the tabs to the server since {@link begin}. */
  get connectionsMax(): number {
    return this.#connectionsMax;
  }

  totals(evidence: Evidence, memoryBytes: readonly number[]): Record<string, number> {
    const sums = sumsOf(evidence.verdicts);
    const seconds = (performance.now() - this.#startedMs) / 1_000;
    const tabs = new Set(evidence.logs.map((log) => tabOf(log.page))).size;
    const memory = memoryBytes.reduce((total, bytes) => total + bytes, 0);
    return {
      accepted: evidence.accepted.length,
      delivered: sums.delivered,
      lost: sums.lost,
      repeated: sums.repeated,
      out_of_order: sums.outOfOrder,
      gaps: sums.gaps,
      missing_told_by_gaps: sums.coveredByGaps,
      connections_max: this.#connectionsMaxOfAll,
      tabs,
      seconds: Math.round(seconds),
      messages_per_second: Math.round(sums.delivered / seconds),
      memory_bytes_per_tab: Math.round(memory / Math.max(1, memoryBytes.length)),
    };
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  #count(): void {
    const connections = Math.max(0, establishedConnections(this.#stage.server.port) - PUBLISHERS);
    this.#connectionsMax = Math.max(this.#connectionsMax, connections);
    this.#connectionsMaxOfAll = Math.max(this.#connectionsMaxOfAll, connections);
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      const sights = await this.#stage.cast.sights();
      const connections = Math.max(0, establishedConnections(this.#stage.server.port) - PUBLISHERS);
      this.#stageServer.show(sights, connections);
      this.#table.draw(sights, `${this.#elapsedSeconds()} s  ${this.#title}  |  ${connections} connections to the server`);
    } finally {
      this.#looking = false;
    }
  }

  #elapsedSeconds(): string {
    return ((performance.now() - this.#startedMs) / 1_000).toFixed(1).padStart(5);
  }
}
