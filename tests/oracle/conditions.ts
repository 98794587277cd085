import { isObject, type Json, type JsonObject } from "./json.ts";

/** One operator of a filter, on a field or (without a path) on an array's element. */
export interface Condition {
  path: string | undefined;
  operator: string;
  operand: Json;
}

/** All conditions of a filter, with those inside others. A plain value is a `$eq`. */
export function* conditions(filter: Json): Generator<Condition> {
  if (!isObject(filter)) return;
  for (const [name, operand] of Object.entries(filter)) {
    if (Array.isArray(operand) && ["$and", "$or", "$nor"].includes(name)) {
      for (const inner of operand) yield* conditions(inner);
    } else if (hasOperators(operand)) {
      yield* operators(name, operand);
    } else {
      yield { path: name, operator: "$eq", operand };
    }
  }
}

function* operators(path: string | undefined, condition: JsonObject): Generator<Condition> {
  for (const [operator, operand] of Object.entries(condition)) {
    yield { path, operator, operand };
    if (operator === "$not" && isObject(operand)) yield* operators(path, operand);
    if (operator === "$elemMatch" && isObject(operand)) {
      yield* hasFields(operand) ? conditions(operand) : operators(undefined, operand);
    }
  }
}

/** Whether the operand of a `$elemMatch` is a filter of its elements' fields. */
export function hasFields(operand: Json): boolean {
  return isObject(operand) && !Object.keys(operand).some((name) => name.startsWith("$") && !["$and", "$or", "$nor"].includes(name));
}

function hasOperators(operand: Json): operand is JsonObject {
  return isObject(operand) && Object.keys(operand).some((name) => name.startsWith("$"));
}
