import type { MotetError } from "./error.js";

/** The part of the bus that an error concerns. */
export type ErrorSource = "dispatch" | "transport" | "coordination" | "config" | "storage";

/** In the order of the core's numbers. */
export const ERROR_SOURCES: readonly ErrorSource[] = ["dispatch", "transport", "coordination", "config", "storage"];

/** Something that went wrong outside of any call. */
export interface BusError {
  readonly source: ErrorSource;
  readonly error: MotetError;
}

/** Those who want to hear of errors. Without any, errors go to the console, so that none is silent. */
export class ErrorListeners {
  readonly #listeners = new Set<(error: BusError) => void>();

  add(listener: (error: BusError) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  tell(source: ErrorSource, error: MotetError): void {
    if (this.#listeners.size === 0) console.error(`motet (${source})`, error);
    for (const listener of Array.from(this.#listeners)) {
      try {
        listener({ source, error });
      } catch (thrown) {
        // Reporting a failing reporter to itself would not end.
        console.error("motet: an onError listener threw", thrown);
      }
    }
  }
}
