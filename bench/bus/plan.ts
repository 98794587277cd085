/** How much is measured. */
export interface Plan {
  /** Runs of each way in which an owner ends. */
  readonly runs: number;
  /** Runs of what takes seconds each time. */
  readonly slowRuns: number;
  readonly samples: number;
  readonly burst: { readonly messages: number; readonly rounds: number };
  readonly topics: number;
  readonly cycles: number;
  readonly idleTabs: number;
  readonly idleForMs: number;
}

export function plan(runs: number, quick: boolean): Plan {
  if (quick) {
    return {
      runs: Math.min(runs, 2),
      slowRuns: 1,
      samples: 60,
      burst: { messages: 5_000, rounds: 1 },
      topics: 100,
      cycles: 1_000,
      idleTabs: 6,
      idleForMs: 3_000,
    };
  }
  return {
    runs,
    slowRuns: Math.min(runs, 10),
    samples: 400,
    burst: { messages: 50_000, rounds: 3 },
    topics: 500,
    cycles: 10_000,
    idleTabs: 20,
    idleForMs: 15_000,
  };
}
