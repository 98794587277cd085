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
  const deadline = performance.now() + withinMs;
  for (;;) {
    const remainingMs = deadline - performance.now();
    if (remainingMs <= 0) throw new DeadlineExceeded(what, withinMs);
    const answer = await within(remainingMs, what, Promise.resolve(probe()));
    if (answer) return answer as Exclude<T, false | null | undefined | 0 | "">;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}
