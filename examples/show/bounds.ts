/** What must hold for the show to have gone well; the figures are those the project promises for the bus. */

export interface OutageBound {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** An owner's renderer is killed. */
export const OWNER_KILLED: OutageBound = { p50Ms: 60, p99Ms: 300 };
/** The coordinator's renderer is killed; it may own topics too. */
export const COORDINATOR_KILLED: OutageBound = { p50Ms: 100, p99Ms: 400 };
/** An owner is frozen with the `freeze` event. */
export const FROZEN: OutageBound = { p50Ms: 300, p99Ms: 300 };
/** A tab goes by closing, reloading or into the back/forward cache. */
export const LEFT: OutageBound = { p50Ms: 60, p99Ms: 150 };
/** The owner's main thread is blocked. */
export const BLOCKED: OutageBound = { p50Ms: 60, p99Ms: 60 };

export const CONNECTIONS_MAX = 3;

export interface Check {
  readonly name: string;
  readonly held: boolean;
  readonly detail: string;
}

export function atMost(name: string, value: number, bound: number, unit = ""): Check {
  return { name, held: value <= bound, detail: `${round(value)}${unit} (bound ${bound}${unit})` };
}

export function exactly(name: string, value: number, expected: number): Check {
  return { name, held: value === expected, detail: `${value} (must be ${expected})` };
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
