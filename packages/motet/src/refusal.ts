import type { ErrorCode } from "./errors.js";

/** Why a module cannot be compiled. A code alone: workers carry no texts of the error table. */
export class Refusal extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, detail: string, cause?: unknown) {
    super(detail, { cause });
    this.code = code;
  }
}
