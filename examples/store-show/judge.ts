/**
 * The judge: says from the workers' journals, the change log and the documents whether anything was lost, torn or out
 * of order. It shares no code with the store and asks it nothing.
 */
import { PASSENGERS_AT_FIRST } from "./flights.ts";

/** A line of `motet log --json`. */
export interface Change {
  readonly clock: number;
  readonly type: string;
  readonly key: string;
  readonly op: string;
  readonly previous?: number;
  readonly timeMs: number;
  readonly transaction: number;
  readonly value?: { readonly passengers?: number; readonly flight?: string };
}

/** A line of `motet export`. */
export interface Exported {
  readonly type: string;
  readonly key: string;
  readonly value: unknown;
}

/** A line of a worker's journal. */
export interface Entry {
  readonly op: string;
  readonly beganUs: number;
  readonly endedUs: number;
  readonly changes?: readonly { readonly type: string; readonly key: string; readonly clock: number }[];
  readonly conflicts?: number;
  readonly rows?: number;
  readonly error?: string;
  readonly says?: string;
}

/** What is wrong, of each kind; all empty when all is well. */
export interface Verdict {
  /** Acknowledged and not in the log as it was acknowledged, or in the log and not in the documents. */
  readonly lost: string[];
  /** Transactions of which a part is there, or that worked on something else than the state before them. */
  readonly torn: string[];
  /** Clocks, versions or times that do not follow each other, or contradict what workers saw. */
  readonly disorder: string[];
}

const nameOf = (type: string, key: string): string => `${type}/${key}`;

/** Judges a whole show. `journals` are by worker. */
export function judge(
  log: readonly Change[],
  documents: readonly Exported[],
  journals: ReadonlyMap<string, readonly Entry[]>,
): Verdict {
  const verdict: Verdict = { lost: [], torn: [], disorder: [] };
  checkClocks(log, verdict);
  checkTransactions(log, verdict);
  checkAcknowledged(log, journals, verdict);
  checkRealTime(journals, verdict);
  checkDocuments(log, documents, verdict);
  return verdict;
}

/** Clocks count without a hole, versions continue each other, time never goes back. */
function checkClocks(log: readonly Change[], { disorder }: Verdict): void {
  const versions = new Map<string, number>();
  let before: Change | undefined;
  for (const change of log) {
    const expected = (before?.clock ?? 0) + 1;
    if (change.clock !== expected) disorder.push(`clock ${change.clock} follows ${expected - 1}`);
    if (before !== undefined && change.timeMs < before.timeMs) disorder.push(`the time of clock ${change.clock} goes back`);
    const name = nameOf(change.type, change.key);
    if (change.previous !== versions.get(name)) {
      disorder.push(`clock ${change.clock} follows version ${change.previous} of ${name}, which had ${versions.get(name)}`);
    }
    if (change.op === "put") versions.set(name, change.clock);
    else versions.delete(name);
    before = change;
  }
}

/** Every transaction is whole, and moves just one passenger from the state before it. */
function checkTransactions(log: readonly Change[], { torn }: Verdict): void {
  const passengers = new Map<string, number>();
  for (const changes of transactions(log)) {
    const moves: number[] = [];
    const bookings: Change[] = [];
    for (const change of changes) {
      if (change.type === "Booking") {
        bookings.push(change);
        continue;
      }
      const now = change.value?.passengers ?? NaN;
      moves.push(now - (passengers.get(change.key) ?? 0));
      passengers.set(change.key, now);
    }
    const imported = bookings.length === 0 && moves.every((move) => move === PASSENGERS_AT_FIRST);
    const booked = bookings.length === 1 && changes.length === 2 && moves[0] === 1 && bookings[0]?.value?.flight === changes[1]?.key;
    const rebooked = bookings.length === 0 && moves.length === 2 && moves[0] === -1 && moves[1] === 1;
    if (!imported && !booked && !rebooked) {
      torn.push(`transaction ${changes[0]?.transaction} of ${changes.length} changes moves ${moves.join(", ")}`);
    }
  }
}

function* transactions(log: readonly Change[]): Generator<Change[]> {
  let changes: Change[] = [];
  for (const change of log) {
    if (changes.length > 0 && changes[0]?.transaction !== change.transaction) {
      yield changes;
      changes = [];
    }
    changes.push(change);
  }
  if (changes.length > 0) yield changes;
}

/** What was acknowledged is in the log, under its clock. */
function checkAcknowledged(log: readonly Change[], journals: ReadonlyMap<string, readonly Entry[]>, { lost }: Verdict): void {
  const byClock = new Map(log.map((change) => [change.clock, change]));
  for (const [worker, entries] of journals) {
    for (const { type, key, clock } of entries.flatMap((entry) => entry.changes ?? [])) {
      const found = byClock.get(clock);
      if (found === undefined || nameOf(found.type, found.key) !== nameOf(type, key)) {
        lost.push(`clock ${clock}, acknowledged to ${worker} as ${nameOf(type, key)}`);
      }
    }
  }
}

/** What had ended before something else began comes before it. */
function checkRealTime(journals: ReadonlyMap<string, readonly Entry[]>, { disorder }: Verdict): void {
  const commits = [...journals.values()].flat().flatMap((entry) => {
    const clocks = (entry.changes ?? []).map((change) => change.clock);
    return clocks.length === 0 ? [] : [{ ...entry, first: Math.min(...clocks), last: Math.max(...clocks) }];
  });
  const byBegin = commits.toSorted((one, other) => one.beganUs - other.beganUs);
  const byEnd = commits.toSorted((one, other) => one.endedUs - other.endedUs);
  let highest = 0;
  let ended = 0;
  for (const commit of byBegin) {
    for (let next = byEnd[ended]; next !== undefined && next.endedUs < commit.beganUs; next = byEnd[++ended]) {
      highest = Math.max(highest, next.last);
    }
    if (commit.first < highest) disorder.push(`clock ${commit.first} began after clock ${highest} was acknowledged`);
  }
}

/** The documents are what the log makes of nothing. */
function checkDocuments(log: readonly Change[], documents: readonly Exported[], { lost }: Verdict): void {
  const replayed = new Map<string, Change>();
  for (const change of log) {
    const name = nameOf(change.type, change.key);
    if (change.op === "put") replayed.set(name, change);
    else replayed.delete(name);
  }
  for (const { type, key, value } of documents) {
    const name = nameOf(type, key);
    const last = replayed.get(name);
    replayed.delete(name);
    if (JSON.stringify(last?.value) !== JSON.stringify(value)) {
      lost.push(`${name} is not as its last change in the log, of clock ${last?.clock}, left it`);
    }
  }
  for (const name of replayed.keys()) lost.push(`${name} is in the log and not in the documents`);
}
