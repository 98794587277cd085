import { MotetError } from "./error.js";

/** What a value must be, when it is not that. */
export type Check = (value: unknown) => string | undefined;

/** A check for each member. */
export type Checks<T> = { readonly [Name in keyof Required<T>]: Check };

const when = (holds: (value: unknown) => boolean, wanted: string): Check => (value) =>
  holds(value) ? undefined : wanted;

/** Judged elsewhere, or by nobody. */
export const anything: Check = () => undefined;
export const isText: Check = when((value) => typeof value === "string", "a string");
export const isName: Check = when((value) => typeof value === "string" && value !== "", "a name");
export const isFlag: Check = when((value) => typeof value === "boolean", "true or false");
export const isFunction: Check = when((value) => typeof value === "function", "a function");
export const isObject: Check = when((value) => typeof value === "object" && value !== null, "an object");
export const isTime: Check = when(
  (value) => Number.isFinite(value instanceof Date ? value.getTime() : value),
  "milliseconds or a valid date",
);
export const isAddress: Check = when((value) => {
  try {
    return (typeof value === "string" || value instanceof URL) && new URL(value, location.href).href !== "";
  } catch {
    return false;
  }
}, "an address");
/** Of this page or of another one: what counts is what it can do. */
export const isSignal: Check = when(
  (value) => typeof (value as AbortSignal | null)?.addEventListener === "function",
  "an AbortSignal",
);

export function isOneOf(...allowed: readonly string[]): Check {
  return when((value) => allowed.includes(value as string), `one of ${allowed.join(", ")}`);
}

export function isWhole(least: number, most: number): Check {
  return when(
    (value) => Number.isInteger(value) && (value as number) >= least && (value as number) <= most,
    `a whole number from ${least} to ${most}`,
  );
}

export function isBetween(least: number, most: number): Check {
  return when(
    (value) => typeof value === "number" && value >= least && value <= most,
    `a number from ${least} to ${most}`,
  );
}

/**
 * Checks the members of an object; those that are absent are well.
 *
 * @throws {@link MotetError} `CONFIG_INVALID` that names the member and what it must be.
 */
export function checkMembers<T>(given: T, checks: Checks<T>, name = ""): void {
  checkValue(name === "" ? "options" : name, isObject, given);
  const prefix = name === "" ? "" : `${name}.`;
  const strange = Object.keys(given as object).find((member) => !Object.hasOwn(checks, member));
  if (strange !== undefined) invalid(prefix + strange, "no such option");
  for (const member of Object.keys(checks) as (keyof T & string)[]) {
    if (given[member] !== undefined) checkValue(prefix + member, checks[member], given[member]);
  }
}

/** Throws `CONFIG_INVALID` for a value that does not pass, also when it is absent. */
export function checkValue(name: string, check: Check, value: unknown): void {
  const wanted = check(value);
  if (wanted !== undefined) invalid(name, wanted);
}

export function invalid(name: string, wanted: string): never {
  throw new MotetError("CONFIG_INVALID", { detail: `${name}: ${wanted}` });
}

/** A topic must be a string before the core can say what is wrong with it. */
export function checkTopic(topic: unknown): void {
  if (typeof topic !== "string") throw new MotetError("TOPIC_INVALID", { detail: `of type ${typeof topic}` });
}

/** What a check throws, as a value. */
export function refusalOf(check: () => void): MotetError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof MotetError) return error;
    throw error;
  }
}
