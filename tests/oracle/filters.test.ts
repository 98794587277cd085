import assert from "node:assert/strict";
import { test } from "node:test";
import * as siftPackage from "sift";
import { DIFFERENCES, type Pair } from "./differences.ts";
import { evaluate } from "./evaluator.ts";
import { Generator } from "./generate.ts";
import { Random } from "./random.ts";

const PAIRS = 20_000;
const SEED = Number(process.env.MOTET_SEED ?? Math.floor(Math.random() * 2 ** 32));

// The package is CommonJS with a default export of its own.
const sift = siftPackage.default.default;

function siftMatches({ filter, document }: Pair): boolean {
  return sift(filter)(document);
}

test("D6: filters match what npm sift 17.1.4 matches, but for the listed differences", async (context) => {
  context.diagnostic(`seed ${SEED}: set MOTET_SEED to repeat`);
  const generator = new Generator(new Random(SEED));
  const pairs = Array.from({ length: PAIRS }, () => generator.pair());
  const answers = await evaluate(pairs);
  const counts = new Map(DIFFERENCES.map(({ name }) => [name, 0]));
  const unexplained: string[] = [];
  for (const [at, pair] of pairs.entries()) {
    const [ours, theirs] = [answers[at], siftMatches(pair)];
    if (ours === theirs) continue;
    const difference = DIFFERENCES.find(({ applies }) => applies(pair.filter, pair.document));
    if (difference) counts.set(difference.name, (counts.get(difference.name) ?? 0) + 1);
    else unexplained.push(`${JSON.stringify(pair)}: sift ${theirs}, Motet ${ours}`);
  }
  context.diagnostic(`${PAIRS} pairs, ${answers.filter((answer) => answer === true).length} match`);
  for (const [name, count] of counts) context.diagnostic(`${count} differ: ${name}`);
  assert.deepEqual(unexplained.slice(0, 20), [], `${unexplained.length} unexplained, seed ${SEED}`);
});

test("D6: every listed difference from sift is one, and applies to its example only", async () => {
  const answers = await evaluate(DIFFERENCES.map(({ example }) => example));
  for (const [at, { name, example }] of DIFFERENCES.entries()) {
    assert.equal(typeof answers[at], "boolean", name);
    assert.notEqual(answers[at], siftMatches(example), name);
    const found = DIFFERENCES.filter(({ applies }) => applies(example.filter, example.document));
    assert.deepEqual(found.map((difference) => difference.name), [name]);
  }
});

/** Filters that sift accepts, mostly without doing what they seem to say, and the code that Motet refuses them with. */
const REFUSED: readonly [filter: Pair["filter"], code: string][] = [
  [{ a: { $in: 1 } }, "FILTER_INVALID"],
  [{ a: { $exists: 1 } }, "FILTER_INVALID"],
  [{ a: { $not: 1 } }, "FILTER_INVALID"],
  [{ a: { $mod: [0, 1] } }, "FILTER_INVALID"],
  [{ a: { $size: "1" } }, "FILTER_INVALID"],
  [{ a: { $elemMatch: [1] } }, "FILTER_INVALID"],
  [{ a: { $options: "i" } }, "FILTER_INVALID"],
  [{ a: { $regex: "a", $options: "g" } }, "FILTER_INVALID"],
  [{ a: { $all: [{ $gt: 1 }] } }, "FILTER_INVALID"],
  [{ $not: { a: 1 } }, "FILTER_INVALID"],
  [{ $gt: 1 }, "FILTER_INVALID"],
  [{ $where: "true" }, "FILTER_INVALID"],
  [{ "a..b": 1 }, "FILTER_INVALID"],
  [{ a: { $regex: "a(?=b)" } }, "REGEX_UNSUPPORTED"],
  [{ a: { $regex: "(a)\\1" } }, "REGEX_UNSUPPORTED"],
];

test("D6: filters that say nothing clear, or take more than linear time, are refused", async () => {
  const answers = await evaluate(REFUSED.map(([filter]) => ({ filter, document: {} })));
  for (const [at, [filter, code]] of REFUSED.entries()) {
    assert.doesNotThrow(() => sift(filter), JSON.stringify(filter));
    assert.equal(String(answers[at]).split(" ")[0], code, JSON.stringify(filter));
  }
});
