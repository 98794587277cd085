import { setInterval } from "node:timers/promises";

/** A condition or call that did not come about within its bound. */
export class DeadlineExceeded extends Error {
  readonly what: string;
  readonly withinMs: number;

  constructor(what: string, withinMs: number) {
    super(`${what}: not within ${withinMs} ms`);
    this.name = "DeadlineExceeded";
    this.what = what;
    this.withinMs = withinMs;
  }
}

/** Wall time with fractions, comparable to `performance.timeOrigin + performance.now()` of a page on this machine. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

/** Settles as `work` does, or rejects with {@link DeadlineExceeded}; `work` itself is not cancelled. */
export async function within<T>(withinMs: number, what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineExceeded(what, withinMs)), withinMs);
  });
  // The loser of the race may reject later, when nobody listens any more.
  work.catch(() => undefined);
  try {
    return await Promise.race([work, expiry]);
  } finally {
    clearTimeout(timer);
  }
}

const POLL_INTERVAL_MS = 5;

/**
 * Asks `probe` again and again until it answers something truthy, and returns that answer.
 * Rejects with {@link DeadlineExceeded} after `withinMs`; a probe that throws ends the wait at once.
 */
export async function until<T>(
  what: string,
  withinMs: number,
  probe: () => T | Promise<T>,
): Promise<Exclude<T, false | null | undefined | 0 | "">> {
  const ended = new AbortController();
  try {
    return await within(withinMs, what, ask(probe, ended.signal));
  } finally {
    ended.abort();
  }
}

async function ask<T>(probe: () => T | Promise<T>, ended: AbortSignal): Promise<Exclude<T, false | null | undefined | 0 | "">> {
  let answer = await probe();
  if (!answer) {
    for await (const _ of setInterval(POLL_INTERVAL_MS, undefined, { signal: ended })) {
      answer = await probe();
      if (answer) break;
    }
  }
  return answer as Exclude<T, false | null | undefined | 0 | "">;
}
