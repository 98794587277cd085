/** Whether a payload is binary: bytes that are passed on as they are. */
export function isBinary(payload: unknown): payload is ArrayBuffer | ArrayBufferView {
  return payload instanceof ArrayBuffer || ArrayBuffer.isView(payload);
}

/** Bytes that a payload has on the wire at least, as far as that costs nothing to know; of an object it does. */
export function bytesAtLeast(payload: unknown): number {
  if (isBinary(payload)) return payload.byteLength;
  return typeof payload === "string" ? payload.length : 0;
}
