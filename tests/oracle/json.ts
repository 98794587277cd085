export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [name: string]: Json;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value and everything inside it. */
export function* parts(value: Json): Generator<Json> {
  yield value;
  if (typeof value !== "object" || value === null) return;
  for (const inner of Object.values(value)) yield* parts(inner);
}
