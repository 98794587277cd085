import { MotetError } from "./error.js";
import type { Gap, Position } from "./message.js";

/** How far a subscription has come. */
export type SubscriptionState = "pending" | "ready" | "recovering" | "failed" | "ended";

/** In the order of the core's numbers. */
export const SUBSCRIPTION_STATES: readonly SubscriptionState[] = ["pending", "ready", "recovering", "failed"];

/** Options of `subscribe`. */
export interface SubscribeOptions {
  /** So many earlier messages are delivered first, marked as replayed. Default 0. */
  readonly replay?: number;
  /** Called when messages may be missing. */
  readonly onGap?: (gap: Gap) => void;
  /** Ends the subscription. */
  readonly signal?: AbortSignal;
}

/** A subscription; calling it ends it. */
export interface Subscription extends Disposable {
  (): void;
  readonly topic: string;
  /** Resolves with the position after which every message is delivered; rejects when the server refuses. */
  readonly ready: Promise<Position>;
  readonly state: SubscriptionState;
  /** Why it failed. */
  readonly error: MotetError | undefined;
}

/** One subscription's state, changed by the session. */
export class SubscriptionCell {
  readonly topic: string;
  readonly onGap: ((gap: Gap) => void) | undefined;
  readonly #over: (error: MotetError) => void;
  state: SubscriptionState = "pending";
  error: MotetError | undefined;
  readonly ready: Promise<Position>;
  #resolve: (position: Position) => void = () => undefined;
  #reject: (error: MotetError) => void = () => undefined;

  /** `over` hears that no message will come any more, unless the application tries again after a refusal. */
  constructor(topic: string, onGap: ((gap: Gap) => void) | undefined, over: (error: MotetError) => void) {
    this.topic = topic;
    this.onGap = onGap;
    this.#over = over;
    this.ready = new Promise<Position>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Whoever does not ask for `ready` sees the failure in `state` and `error`.
    this.ready.catch(() => undefined);
  }

  /** Takes the topic's state over. */
  update(state: SubscriptionState, position: Position | undefined, error: MotetError | undefined): void {
    if (this.state === "ended") return;
    this.state = state;
    this.error = error;
    if (state === "ready" && position !== undefined) this.#resolve(position);
    if (state !== "failed" || error === undefined) return;
    this.#reject(error);
    this.#over(error);
  }

  end(reason: MotetError): void {
    if (this.state === "ended") return;
    this.state = "ended";
    this.#reject(reason);
    this.#over(reason);
  }
}

/** The subscription as its user sees it. */
export function subscriptionOf(cell: SubscriptionCell, end: () => void): Subscription {
  const subscription = (): void => end();
  return Object.defineProperties(subscription, {
    topic: { value: cell.topic },
    ready: { value: cell.ready },
    state: { get: () => cell.state },
    error: { get: () => cell.error },
    [Symbol.dispose ?? Symbol.for("Symbol.dispose")]: { value: end },
  }) as unknown as Subscription;
}
