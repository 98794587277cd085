/**
 * The store's show: four processes book seats on twenty thousand real flights in one store; one of them is killed, one
 * is stopped. What each was acknowledged is judged against the change log and the documents.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { launchChromium, nowMs } from "@motet/browser-tests/driver";
import { courseOf, drawCourse, type Happening } from "./chart.ts";
import { jsonLines, writeFlights } from "./flights.ts";
import { judge, type Change, type Entry, type Exported } from "./judge.ts";
import { reportOf, type Report } from "./report.ts";
import { Worker, type WorkersOptions } from "./workers.ts";

const CALM_MS = 5_000;
const DEAD_MS = 2_000;
const STOPPED_MS = 4_000;
const NAMES = ["one", "two", "three", "four"] as const;

const folder = new URL("../../target/demo/store/", import.meta.url).pathname;
const data = join(folder, "data");

/** A program that the show was started with. */
function program(variable: string): string {
  const path = process.env[variable];
  if (path === undefined) throw new Error(`${variable} is not set: start the show with "cargo xtask demo store"`);
  return path;
}

async function main(): Promise<boolean> {
  const { values } = parseArgs({ options: { once: { type: "boolean", default: false } } });
  const options: WorkersOptions = { program: program("MOTET_STORE_SHOW"), data, folder };
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });

  const flights = join(folder, "flights.jsonl");
  say(`Importing ${await writeFlights(flights)} flights`);
  await run(program("MOTET_BIN"), ["import", "--data", data, flights]);
  say("Building indexes");
  await run(options.program, ["index", "--data", data]);

  const { workers, happenings } = await play(options);
  const report = await judged(workers, happenings);
  await using browser = await launchChromium();
  writeFileSync(join(folder, "report.json"), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(folder, "course.png"), await drawCourse(browser, report.course));
  printVerdict(report);
  if (!values.once) printNext();
  return report.held;
}

interface Played {
  readonly workers: readonly Worker[];
  readonly happenings: readonly Happening[];
}

async function play(options: WorkersOptions): Promise<Played> {
  const [one, two, three, four] = NAMES.map((name) => new Worker(name, options)) as [Worker, Worker, Worker, Worker];
  const happenings: Happening[] = [];
  const happens = (title: string, worker: Worker): void => {
    say(`${worker.name} (process ${worker.pid}) ${title}`);
    happenings.push({ title, worker: worker.name, atMs: nowMs() });
  };
  say(`Four processes work: ${[one, two, three, four].map(({ pid }) => pid).join(", ")}`);
  await pause(CALM_MS);
  happens("is killed", two);
  await two.kill();
  await pause(DEAD_MS);
  const again = new Worker("two.again", options);
  happens("is started again", again);
  await pause(CALM_MS);
  happens("is stopped", three);
  three.stop();
  await pause(STOPPED_MS);
  happens("goes on", three);
  three.goOn();
  await pause(CALM_MS);
  await Promise.all([one, again, three, four].map((worker) => worker.end()));
  return { workers: [one, two, again, three, four], happenings };
}

async function judged(workers: readonly Worker[], happenings: readonly Happening[]): Promise<Report> {
  say("Judging");
  const motet = program("MOTET_BIN");
  const [log, exported] = [join(folder, "log.jsonl"), join(folder, "documents.jsonl")];
  await run(motet, ["export", "--data", data, "--out", exported]);
  await run(motet, ["log", "--data", data, "--json", "--limit", String(Number.MAX_SAFE_INTEGER)], log);
  const checked = await succeeds(motet, ["check", "--data", data]);
  const changes = (await lines(log)) as Change[];
  const documents = (await lines(exported)) as Exported[];
  const journals = new Map<string, Entry[]>();
  for (const { name, journal } of workers) journals.set(name, (await lines(journal)) as Entry[]);
  const verdict = judge(changes, documents, journals);
  const course = courseOf(journals, happenings);
  const untouched = ["one", "two", "two.again", "four"];
  return reportOf({ verdict, journals, untouched, happenings, checked, course, changes: changes.length, documents: documents.length });
}

async function lines(path: string): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const line of jsonLines(path)) all.push(line);
  return all;
}

/** Runs a program to its end, its standard output into a file where one is given; it must succeed. */
async function run(path: string, args: readonly string[], into?: string): Promise<void> {
  if (!(await succeeds(path, args, into))) throw new Error(`${path} ${args.join(" ")} failed`);
}

async function succeeds(path: string, args: readonly string[], into?: string): Promise<boolean> {
  const output = into === undefined ? "inherit" : openSync(into, "w");
  const child = spawn(path, args, { stdio: ["ignore", output, "inherit"] });
  const [code] = (await once(child, "exit")) as [number | null];
  if (typeof output === "number") closeSync(output);
  return code === 0;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function printVerdict({ totals, refusals, bounds, held }: Report): void {
  const of = (name: string): string => (totals[name] ?? 0).toLocaleString("en", { maximumFractionDigits: 1 });
  say(`\n${of("commits")} commits and ${of("queries")} queries; ${of("conflicts")} conflicts, each tried again`);
  say(`a commit took ${of("commit_ms_p50")} ms (p50), ${of("commit_ms_p99")} ms (p99)`);
  say(`lost ${of("lost")}, torn ${of("torn")}, out of order ${of("out_of_order")}; refused: ${JSON.stringify(refusals)}`);
  say(`report and picture: ${relative(process.cwd(), folder)}/report.json, course.png`);
  for (const { name, detail } of bounds.filter((check) => !check.held)) say(`NOT HELD  ${name}: ${detail}`);
  say(held ? "every bound held" : "some bounds did not hold");
}

function printNext(): void {
  const motet = relative(process.cwd(), program("MOTET_BIN"));
  const at = `--data ${relative(process.cwd(), data)}`;
  say(`\nThe store is still there. For example:`);
  say(`  ${motet} query ${at} Flight --filter '{"origin": "LAX"}' --sort=-delay --limit 5`);
  say(`  ${motet} query ${at} Flight --filter '{"destination": "SFO", "delay": {"$gt": 60}}' --explain`);
  say(`  ${motet} log ${at} --after 20000 --limit 10`);
  say(`  ${motet} watch ${at}`);
}

process.exitCode = (await main()) ? 0 : 1;
