import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Json } from "./json.ts";

export interface Question {
  filter: Json;
  document: Json;
}

/** What Motet answers: whether the document matches, or the error of a filter that is refused. */
export type Answer = boolean | string;

function binary(): string {
  const path = process.env.MOTET_EVALUATE_FILTERS ?? resolve(import.meta.dirname, "../../target/debug/examples/evaluate_filters");
  if (!existsSync(path)) {
    throw new Error(`${path} is missing: run cargo build -p motet-store --example evaluate_filters`);
  }
  return path;
}

/** Asks Motet all questions in one process. */
export async function evaluate(questions: readonly Question[]): Promise<Answer[]> {
  const child = spawn(binary(), { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit") as Promise<[number | null]>;
  child.stdin.end(questions.map((question) => `${JSON.stringify(question)}\n`).join(""));
  const answers: Answer[] = [];
  for await (const line of createInterface({ input: child.stdout })) answers.push(answer(line));
  const [code] = await exited;
  if (code !== 0 || answers.length !== questions.length) {
    throw new Error(`the evaluator ended with ${code} after ${answers.length} of ${questions.length} answers`);
  }
  return answers;
}

function answer(line: string): Answer {
  return line === "true" || line === "false" ? line === "true" : line;
}
