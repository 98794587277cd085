/** Any thrown value as text. */
export function text(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
