/** Whether a payload is binary: bytes that are passed on as they are. */
export function isBinary(payload: unknown): payload is ArrayBuffer | ArrayBufferView {
  return payload instanceof ArrayBuffer || ArrayBuffer.isView(payload);
}

/** Bytes that a payload has on the wire at least, as far as that costs nothing to know; of an object it does. */
export function bytesAtLeast(payload: unknown): number {
  if (isBinary(payload)) return payload.byteLength;
  return typeof payload === "string" ? payload.length : 0;
}

/** How deep a payload may nest; copying values between contexts fails far beyond it. The core's number. */
export const JSON_DEPTH_MAX = 512;

/** Whether a payload nests deeper than that; one that contains itself does. Its getters run, and may throw. */
export function isTooDeep(payload: unknown, levels = JSON_DEPTH_MAX): boolean {
  if (typeof payload !== "object" || payload === null || isBinary(payload)) return false;
  return levels === 0 || Object.values(payload).some((member) => isTooDeep(member, levels - 1));
}
