/** A place in a topic's stream. Offsets compare only within the same epoch. */
export interface Position {
  readonly epoch: string;
  readonly offset: number;
}

/** What is known of a message besides its payload. */
export interface MessageMeta {
  readonly topic: string;
  /** Number of the message in its stream epoch. */
  readonly offset: number;
  readonly position: Position;
  /** Earlier than the subscription. */
  readonly replayed: boolean;
  /** Bytes on the wire. */
  readonly size: number;
  /** The application's message id. */
  readonly messageId?: string;
  /** The application's timestamp, milliseconds since 1970. */
  readonly timestamp?: number;
}

/** A message as async iteration yields it. */
export interface Message<T> {
  readonly payload: T;
  readonly meta: MessageMeta;
  /** Messages left out before this one because the loop was too slow. */
  readonly skipped: number;
}

/** Called with each message. */
export type Handler<T> = (message: T, meta: MessageMeta) => void;

/**
 * Why messages are missing: the server no longer has them, or began its stream anew; without history, the owner
 * changed or lost its connection; no owner filled the hole in time; the page's own queue was full; the one message
 * nests deeper than 512 levels.
 */
export type GapReason =
  | "not-retained"
  | "stream-reset"
  | "owner-changed"
  | "connection-lost"
  | "repair-timeout"
  | "overflow"
  | "too-deep";

/** In the order of the core's numbers. */
export const GAP_REASONS: readonly GapReason[] = [
  "not-retained",
  "stream-reset",
  "owner-changed",
  "connection-lost",
  "repair-timeout",
  "overflow",
  "too-deep",
];

/** Messages that may be missing: all after `from` and up to `to`. */
export interface Gap {
  readonly topic: string;
  /** The last message delivered. */
  readonly from: Position;
  /** The last one missing; absent when it is not known how many. */
  readonly to?: Position;
  readonly reason: GapReason;
}

/** The handler that the core calls, with plain arguments. */
export type CoreHandler = (
  payload: unknown,
  offset: number,
  epoch: string,
  replayed: boolean,
  size: number,
  messageId: string | undefined,
  timestamp: number | undefined,
) => void;

/** Gives the application's handler the shape that the core calls. */
export function coreHandler<T>(topic: string, handler: Handler<T>): CoreHandler {
  return (payload, offset, epoch, replayed, size, messageId, timestamp) => {
    handler(payload as T, {
      topic,
      offset,
      position: { epoch, offset },
      replayed,
      size,
      ...(messageId === undefined ? {} : { messageId }),
      ...(timestamp === undefined ? {} : { timestamp }),
    });
  };
}
