import type { Bus } from "motet";

const BLOCK_MS = 2_000;

const workers = new Set<Worker>();

/**
 * Keeps hold of the workers that the page starts, so that a button can end one without a word, as a crash would.
 * Must run before the bus connects.
 */
export function watchWorkers(): void {
  const Original = globalThis.Worker;
  globalThis.Worker = class extends Original {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(url, options);
      workers.add(this);
    }
  };
}

/** Occupies the main thread: the page can neither draw nor deliver meanwhile. */
export function blockMainThread(forMs = BLOCK_MS): void {
  const until = performance.now() + forMs;
  while (performance.now() < until);
}

export function killWorker(): void {
  for (const worker of workers) worker.terminate();
  workers.clear();
}

export function wireButtons(bus: Pick<Bus, "close">): void {
  on("open", () => window.open(location.href, "_blank", "noopener"));
  on("block", () => blockMainThread());
  on("kill", killWorker);
  on("leave", () => location.assign("/away"));
  on("reload", () => location.reload());
  on("close", () => bus.close());
}

function on(id: string, action: () => unknown): void {
  document.getElementById(id)?.addEventListener("click", action);
}
