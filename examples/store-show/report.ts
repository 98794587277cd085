/** The bounds of the show, and its report. */
import { quantile, type Course, type Happening } from "./chart.ts";
import type { Entry, Verdict } from "./judge.ts";

/** A waiter hears after 2 s who is stopped; what it does next starts anew. */
const OPERATION_MAX_MS = 3_000;
/** A dead process's lock is free at once; the rest is the machine. */
const PAUSE_AFTER_KILL_MAX_MS = 1_000;

export interface Evidence {
  readonly verdict: Verdict;
  readonly journals: ReadonlyMap<string, readonly Entry[]>;
  /** Journals of workers that nothing was done to. */
  readonly untouched: readonly string[];
  readonly happenings: readonly Happening[];
  /** What `motet check` found. */
  readonly checked: boolean;
  readonly course: Course;
  readonly changes: number;
  readonly documents: number;
}

export interface Check {
  readonly name: string;
  readonly held: boolean;
  readonly detail: string;
}

export interface Report {
  readonly held: boolean;
  readonly totals: Record<string, number>;
  readonly refusals: Record<string, number>;
  readonly bounds: readonly Check[];
  readonly course: Course;
}

export function reportOf(evidence: Evidence): Report {
  const { verdict, journals, untouched, course, changes, documents } = evidence;
  const entries = [...journals.values()].flat();
  const commits = entries.filter((entry) => entry.changes !== undefined);
  const took = commits.map(({ beganUs, endedUs }) => (endedUs - beganUs) / 1_000);
  const refusals: Record<string, number> = {};
  for (const { error } of entries) if (error !== undefined) refusals[error] = (refusals[error] ?? 0) + 1;
  const longest = untouched.flatMap((worker) => journals.get(worker) ?? []).reduce((most, { beganUs, endedUs }) => Math.max(most, (endedUs - beganUs) / 1_000), 0);
  const killed = evidence.happenings.find(({ title }) => title === "is killed");
  const pause = killed === undefined ? 0 : pauseAfter(killed.atMs, commits);
  const bounds = [
    nothing("nothing acknowledged is lost", verdict.lost),
    nothing("no transaction is torn", verdict.torn),
    nothing("nothing is out of order", verdict.disorder),
    { name: "motet check finds nothing", held: evidence.checked, detail: "" },
    atMost("nobody waits without a bound", longest, OPERATION_MAX_MS),
    atMost("the others go on when one is killed", pause, PAUSE_AFTER_KILL_MAX_MS),
    { name: "only a stopped writer is a reason to refuse", held: Object.keys(refusals).every((code) => code === "WRITER_STALLED"), detail: JSON.stringify(refusals) },
  ];
  return {
    held: bounds.every(({ held }) => held),
    totals: {
      commits: commits.length,
      queries: entries.filter((entry) => entry.rows !== undefined).length,
      conflicts: commits.reduce((sum, { conflicts = 0 }) => sum + conflicts, 0),
      changes,
      documents,
      lost: verdict.lost.length,
      torn: verdict.torn.length,
      out_of_order: verdict.disorder.length,
      commit_ms_p50: quantile(took, 0.5) ?? 0,
      commit_ms_p99: quantile(took, 0.99) ?? 0,
      longest_operation_ms: longest,
      pause_after_kill_ms: pause,
    },
    refusals,
    bounds,
    course,
  };
}

/** How long after a moment nobody had a commit acknowledged. */
function pauseAfter(atMs: number, commits: readonly Entry[]): number {
  const next = commits.reduce((least, { endedUs }) => (endedUs / 1_000 > atMs ? Math.min(least, endedUs / 1_000) : least), Infinity);
  return next - atMs;
}

function nothing(name: string, found: readonly string[]): Check {
  return { name, held: found.length === 0, detail: found.slice(0, 3).join("; ") };
}

function atMost(name: string, ms: number, boundMs: number): Check {
  return { name, held: ms <= boundMs, detail: `${ms.toFixed(0)} ms, at most ${boundMs}` };
}
