import { parts, type Json, type JsonObject } from "./json.ts";
import type { Random } from "./random.ts";

const NAMES = ["a", "b", "c"] as const;
const STEPS = ["a", "b", "a", "b", "0", "1"] as const;
const NUMBERS = [-3, -1, 0, 1, 1, 2, 3, 2.5, 1e300, 2 ** 53 - 1, -(2 ** 53 - 1)] as const;
const STRINGS = ["", "a", "a", "ab", "b", "B", "10", "a\nb", "\uffff", "\u{10000}"] as const;
const COMPARISONS = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"] as const;
const REGEXES = ["a", "^a", "b$", "^$", "^.b", "[ab]+", "^(a|b)*$", "9|1", "B"] as const;
const TYPES = ["number", "string", "bool", "array", "null"] as const;
const NESTED_ARRAYS = 0.04;

/** A value of a document and the path that leads to it. */
interface Place {
  path: string;
  value: Json;
}

/** Documents and filters over the same few names and values; most conditions are about a place of their document. */
export class Generator {
  readonly #random: Random;
  #places: Place[] = [];
  #near: Json[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  pair(): { filter: JsonObject; document: JsonObject } {
    const document = this.#object(3, 4, 1);
    this.#places = [...places(document, "")];
    return { filter: this.#filter(2), document };
  }

  #filter(depth: number): JsonObject {
    const filter: JsonObject = {};
    for (const [name, operand] of this.#random.some(1, this.#random.chance(0.2) ? 2 : 1, () => this.#entry(depth))) filter[name] = operand;
    return filter;
  }

  #entry(depth: number): [string, Json] {
    if (depth > 0 && this.#random.chance(0.2)) {
      const operator = this.#random.pick(["$and", "$or", "$nor"]);
      return [operator, this.#random.some(1, 2, () => this.#filter(depth - 1))];
    }
    return [this.#path(), this.#random.chance(0.2) ? this.#operand() : this.#condition(depth)];
  }

  #path(): string {
    const random = this.#random;
    if (this.#places.length > 0 && random.chance(0.75)) {
      const { path, value } = random.pick(this.#places);
      this.#near = [...parts(value)];
      return path;
    }
    this.#near = [];
    return [random.pick(NAMES), ...random.some(0, 2, () => random.pick(STEPS))].join(".");
  }

  /** The operators of one field or element. */
  #condition(depth: number): JsonObject {
    const condition = this.#operator(depth);
    return this.#random.chance(0.2) ? { ...condition, ...this.#operator(depth) } : condition;
  }

  #operator(depth: number): JsonObject {
    const random = this.#random;
    switch (random.below(depth > 0 ? 12 : 10)) {
      case 0: return { [random.pick(["$in", "$nin"])]: random.some(0, 3, () => this.#operand()) };
      case 1: return { $all: random.some(random.chance(0.1) ? 0 : 1, 2, () => (random.chance(0.1) ? this.#operand() : this.#scalar())) };
      case 2: return { $exists: random.chance(0.5) };
      case 3: return { $type: random.pick(TYPES) };
      case 4: return { $size: random.below(4) };
      case 5: return { $mod: [1 + random.below(3), random.below(3) - 1] };
      case 6: return this.#regex();
      case 10: return { $not: this.#condition(depth - 1) };
      case 11: return { $elemMatch: this.#ofElement(depth - 1) };
      default: return { [random.pick(COMPARISONS)]: this.#operand() };
    }
  }

  #ofElement(depth: number): JsonObject {
    if (this.#random.chance(0.5)) return this.#condition(depth);
    const outer = this.#places;
    this.#places = this.#near.flatMap((element) => [...places(element, "")]);
    const filter = this.#filter(depth);
    this.#places = outer;
    return filter;
  }

  #regex(): JsonObject {
    const regex = { $regex: this.#random.pick(REGEXES) };
    return this.#random.chance(0.3) ? { ...regex, $options: this.#random.pick(["i", "m", "s", "ims"]) } : regex;
  }

  #operand(): Json {
    if (this.#near.length > 0 && this.#random.chance(0.5)) return this.#random.pick(this.#near);
    return this.#random.chance(0.9) ? this.#scalar() : this.#value(2);
  }

  #scalar(): Json {
    const random = this.#random;
    switch (random.below(10)) {
      case 0: case 1: return null;
      case 2: return random.chance(0.5);
      case 3: case 4: case 5: return random.pick(STRINGS);
      default: return random.pick(NUMBERS);
    }
  }

  #value(depth: number): Json {
    if (depth === 0 || this.#random.chance(0.45)) return this.#scalar();
    return this.#random.chance(0.5) ? this.#array(depth) : this.#object(depth - 1, 3);
  }

  #array(depth: number): Json[] {
    return this.#random.some(0, 3, () => {
      const inner = this.#value(depth - 1);
      return Array.isArray(inner) && !this.#random.chance(NESTED_ARRAYS) ? this.#object(depth - 1, 3) : inner;
    });
  }

  #object(depth: number, fieldsMax: number, fieldsMin = 0): JsonObject {
    const object: JsonObject = {};
    for (const name of this.#random.some(fieldsMin, fieldsMax, () => this.#random.pick(NAMES))) object[name] = this.#value(depth);
    return object;
  }
}

/** Every value inside another one, by its path: through an array with the position and without. */
function* places(value: Json, prefix: string): Iterable<Place> {
  if (typeof value !== "object" || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    const path = prefix === "" ? name : `${prefix}.${name}`;
    yield { path, value: inner };
    yield* places(inner, path);
    if (Array.isArray(value)) yield* places(inner, prefix);
  }
}
