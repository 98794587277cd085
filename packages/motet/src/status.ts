import type { MotetError } from "./error.js";

/** Where a bus stands. */
export type BusState =
  | "idle"
  | "starting"
  | "running"
  | "suspended"
  | "recovering"
  | "degraded"
  | "failed"
  | "closing"
  | "closed";

/** In the order of the core's numbers. */
export const BUS_STATES: readonly BusState[] = [
  "idle",
  "starting",
  "running",
  "suspended",
  "recovering",
  "degraded",
  "failed",
  "closing",
  "closed",
];

/** Where the node runs. */
export type HostKind = "worker" | "shared-worker" | "page";

/** The host in use, and why it is this one. */
export interface HostInUse {
  readonly kind: HostKind;
  /** Why: it was asked for, or what was wrong with those before it. */
  readonly reason: string;
}

/** The state of a bus at one moment. */
export interface BusStatus {
  readonly state: BusState;
  /** The page's node, while it is a member of the cluster. */
  readonly nodeId?: string;
  /** Why the bus is degraded or failed. */
  readonly error?: MotetError;
  readonly host?: HostInUse;
  /** How nodes agree. */
  readonly coordination: "locks";
}

/** The present state, and whoever wants to hear of changes. */
export interface StatusView extends BusStatus {
  /** Calls at once with the present state, then at every change. The result ends it. */
  subscribe(listener: (status: BusStatus) => void): () => void;
}

/** Keeps the present status and tells listeners. */
export class StatusCell {
  #now: BusStatus = { state: "idle", coordination: "locks" };
  readonly #listeners = new Set<(status: BusStatus) => void>();
  readonly #thrown: (cause: unknown) => void;

  /** `thrown` hears what a listener threw. */
  constructor(thrown: (cause: unknown) => void) {
    this.#thrown = thrown;
  }

  get now(): BusStatus {
    return this.#now;
  }

  set(status: BusStatus): void {
    this.#now = status;
    for (const listener of Array.from(this.#listeners)) this.#tell(listener);
  }

  subscribe(listener: (status: BusStatus) => void): () => void {
    this.#listeners.add(listener);
    this.#tell(listener);
    return () => void this.#listeners.delete(listener);
  }

  #tell(listener: (status: BusStatus) => void): void {
    try {
      listener(this.#now);
    } catch (cause) {
      this.#thrown(cause);
    }
  }
}
