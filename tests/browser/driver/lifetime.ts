import { constants } from "node:os";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const cleanups = new Set<() => void>();

/**
 * Runs `cleanup`, which must be synchronous, when this process ends before the returned function was called:
 * by exit, by an uncaught error, or by a signal that nobody else listens to.
 */
export function beforeProcessEnds(cleanup: () => void): () => void {
  if (cleanups.size === 0) listen();
  cleanups.add(cleanup);
  return () => {
    cleanups.delete(cleanup);
    if (cleanups.size === 0) ignore();
  };
}

function listen(): void {
  process.on("exit", runAll);
  for (const name of SIGNALS) process.on(name, exitBySignal);
}

function ignore(): void {
  process.off("exit", runAll);
  for (const name of SIGNALS) process.off(name, exitBySignal);
}

function runAll(): void {
  for (const cleanup of cleanups) cleanup();
}

/** A signal ends a process without its exit handlers, unless somebody turns it into an exit. */
function exitBySignal(name: NodeJS.Signals): void {
  if (process.listenerCount(name) === 1) process.exit(128 + (constants.signals[name] ?? 0));
}
