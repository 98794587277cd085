import { conditions, hasFields, type Condition } from "./conditions.ts";
import { isObject, parts, type Json, type JsonObject } from "./json.ts";

export interface Pair {
  filter: JsonObject;
  document: JsonObject;
}

/** One accepted difference from sift. */
export interface Difference {
  /** What differs. */
  name: string;
  example: Pair;
  /** Why Motet does not follow. */
  reason: string;
  /** Whether a filter and a document can differ for it. */
  applies: (filter: JsonObject, document: JsonObject) => boolean;
}

export const DIFFERENCES: readonly Difference[] = [
  {
    name: "an empty $all matches nothing",
    example: { filter: { a: { $all: [] } }, document: { a: 1 } },
    reason: "as in MongoDB; sift lets it match everything",
    applies: (filter) => some(filter, ({ operator, operand }) => operator === "$all" && isEmpty(operand)),
  },
  {
    name: "objects and arrays in $all are values",
    example: { filter: { a: { $all: [{ b: 1 }] } }, document: { a: { b: 1, c: 2 } } },
    reason: "as in MongoDB; sift reads them as filters of the field",
    applies: (filter) => some(filter, ({ operator, operand }) => operator === "$all" && Array.isArray(operand) && operand.some(isContainer)),
  },
  {
    name: "$mod asks numbers only",
    example: { filter: { a: { $mod: [2, 0] } }, document: { a: "4" } },
    reason: "as in MongoDB; sift converts as JavaScript does: null, \"\" and [] count as 0, true as 1, \"4\" as 4",
    applies: (filter, document) => some(filter, ({ operator }) => operator === "$mod") && contains(document, (part) => typeof part !== "number"),
  },
  {
    name: "objects and arrays have an order, null equals only itself",
    example: { filter: { a: { $gte: null } }, document: { a: [] } },
    reason: "comparisons stay within a class, with the order of the store; sift compares what JavaScript converts both sides to",
    applies: (filter, document) => some(filter, (condition) => isComparison(condition) && (isContainer(condition.operand) || condition.operand === null))
      && contains(document, isContainer),
  },
  {
    name: "strings are ordered by code points",
    example: { filter: { a: { $lt: "\uffff" } }, document: { a: "\u{10000}" } },
    reason: "as UTF-8 bytes and MongoDB order them; sift orders UTF-16 code units, which puts U+10000 before U+FFFF",
    applies: (filter, document) => some(filter, (condition) => isComparison(condition) && typeof condition.operand === "string")
      && [filter, document].some((side) => contains(side, (part) => typeof part === "string" && /[\ud800-\udfff]/.test(part))),
  },
  {
    name: "a null field is no absent field inside an object that is compared whole",
    example: { filter: { a: { x: null } }, document: { a: { y: 1 } } },
    reason: "as in MongoDB; sift takes {x: null} for equal to {y: 1}",
    applies: (filter) => some(filter, (condition) => isEquality(condition) && contains(condition.operand, hasNullField)),
  },
  {
    name: "strings have no positions",
    example: { filter: { "a.0": "x" }, document: { a: "xy" } },
    reason: "a path goes into objects and arrays; sift reads \"a.0\" of a string as its first character",
    applies: (filter, document) => some(filter, hasPosition) && contains(document, (part) => typeof part === "string"),
  },
  {
    name: "a position past the end is absent, and null equals it",
    example: { filter: { "a.5": null }, document: { a: [] } },
    reason: "as everywhere else, and as sift itself says for $in and $ne; only its equality does not",
    applies: (filter, document) => some(filter, (condition) => hasPosition(condition) && acceptsNull(condition)) && contains(document, Array.isArray),
  },
  {
    name: "a path through null does not end there",
    example: { filter: { "a.b": { $type: "null" } }, document: { a: null } },
    reason: "as in MongoDB: $type \"null\" asks for a field that is there and null; sift takes a null on the way for the field",
    applies: (filter, document) => some(filter, (condition) => isLong(condition) && condition.operator === "$type" && condition.operand === "null")
      && contains(document, (part) => part === null),
  },
  {
    name: "elements that are no objects have no fields, not absent ones",
    example: { filter: { "a.b": null }, document: { a: [1] } },
    reason: "as in MongoDB: {\"a.b\": null} does not match {a: [1]}; sift finds an absent b in 1",
    applies: (filter, document) => some(filter, (condition) => isLong(condition) && acceptsNull(condition)) && contains(document, hasScalarElement),
  },
  {
    name: "fields in $elemMatch are asked of objects only",
    example: { filter: { a: { $elemMatch: { b: null } } }, document: { a: [1] } },
    reason: "as in MongoDB: {$elemMatch: {b: null}} does not match [1]; sift finds an absent b in 1",
    applies: (filter, document) => some(filter, ({ operator, operand }) => operator === "$elemMatch" && hasFields(operand))
      && contains(document, (part) => Array.isArray(part) && part.some((element) => !isObject(element))),
  },
  {
    name: "arrays directly in arrays are values, and not searched",
    example: { filter: { a: 1 }, document: { a: [[1]] } },
    reason: "as in MongoDB: {a: 1} matches {a: [1]}, not {a: [[1]]}; an index holds one entry per element. sift searches to any depth",
    applies: (_, document) => contains(document, (part) => Array.isArray(part) && part.some(Array.isArray)),
  },
];

function some(filter: JsonObject, test: (condition: Condition) => boolean): boolean {
  return [...conditions(filter)].some(test);
}

function contains(value: Json, test: (part: Json) => boolean): boolean {
  return [...parts(value)].some(test);
}

function isContainer(value: Json): boolean {
  return typeof value === "object" && value !== null;
}

function isEmpty(value: Json): boolean {
  return Array.isArray(value) && value.length === 0;
}

function isComparison({ operator }: Condition): boolean {
  return ["$gt", "$gte", "$lt", "$lte"].includes(operator);
}

function isEquality({ operator }: Condition): boolean {
  return ["$eq", "$ne", "$in", "$nin", "$all"].includes(operator);
}

/** Whether an absent value passes, or passes what is negated. */
function acceptsNull({ operator, operand }: Condition): boolean {
  if (["$in", "$nin", "$all"].includes(operator)) return Array.isArray(operand) && operand.includes(null);
  return ["$eq", "$ne", "$gte", "$lte"].includes(operator) && operand === null;
}

/** Whether the path has more than one step. */
function isLong({ path }: Condition): boolean {
  return path?.includes(".") ?? false;
}

function hasPosition({ path }: Condition): boolean {
  return path?.split(".").some((step) => /^\d+$/.test(step)) ?? false;
}

function hasNullField(value: Json): boolean {
  return isObject(value) && Object.values(value).includes(null);
}

function hasScalarElement(value: Json): boolean {
  return Array.isArray(value) && value.some((element) => !isContainer(element));
}
