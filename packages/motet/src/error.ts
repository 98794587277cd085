import { ERRORS, errorCode, type ErrorCode, type Severity } from "./errors.js";
import { Refusal } from "./refusal.js";
import { text } from "./thrown.js";

/** What WebAssembly says of an error: numbers and texts, nothing that is in the table. */
export interface ErrorObject {
  readonly code: number;
  readonly serverCode?: number;
  readonly detail?: string;
  readonly retryAfterMs?: number;
}

/** Every error of Motet: a stable code, and from the table what happened and what to do. */
export class MotetError extends Error {
  override readonly name = "MotetError";
  /** Stable name, the same everywhere. */
  readonly code: ErrorCode;
  /** Stable number of the code. */
  readonly number: number;
  /** Whether the same call may succeed later unchanged. */
  readonly retryable: boolean;
  /** How loudly to report it. */
  readonly severity: Severity;
  /** What to do about it. */
  readonly nextStep: string;
  /** What it concerns: a topic, an option, the server's text. */
  readonly detail: string | undefined;
  /** The server's own code, where a server refused something. */
  readonly serverCode: number | undefined;
  /** Milliseconds to wait before trying again, where the refuser named them. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, more: Omit<ErrorObject, "code"> & { readonly cause?: unknown } = {}) {
    const row = ERRORS[code];
    const about = more.detail ? ` (${more.detail})` : "";
    super(`${code}: ${row.message}${about} ${row.nextStep}`, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.number = row.number;
    this.retryable = row.retryable;
    this.severity = row.severity;
    this.nextStep = row.nextStep;
    this.detail = more.detail;
    this.serverCode = more.serverCode;
    this.retryAfterMs = more.retryAfterMs;
  }

  /**
   * The exception for what the core says.
   * @internal
   */
  static from(object: ErrorObject, cause?: unknown): MotetError {
    return new MotetError(errorCode(object.code) ?? "UNRECOGNISED", { ...object, cause });
  }

  /**
   * The exception for what a host says that could not start a node. It may be of another build, so its code is one of
   * this table or none.
   * @internal
   */
  static refused(code: unknown, detail: unknown): MotetError {
    if (typeof code === "string" && Object.hasOwn(ERRORS, code))
      return new MotetError(code as ErrorCode, { detail: String(detail) });
    return new MotetError("NODE_UNAVAILABLE", { detail: `${String(code)}: ${String(detail)}` });
  }

  /**
   * The exception for what stopped a node's start.
   * @internal
   */
  static of(thrown: unknown): MotetError {
    if (thrown instanceof MotetError) return thrown;
    if (thrown instanceof Refusal) return new MotetError(thrown.code, { detail: thrown.message, cause: thrown.cause });
    return new MotetError("NODE_UNAVAILABLE", { detail: text(thrown), cause: thrown });
  }
}
