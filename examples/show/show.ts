/**
 * The show: eight tabs follow two real feeds through one server while one after another they are killed, frozen,
 * cached, closed, reloaded and blocked. What every tab received is judged against the server's own log.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { judge, type Accepted } from "@motet/browser-tests/checker";
import { DeadlineExceeded, launchChromium, nowMs, type Browser } from "@motet/browser-tests/driver";
import { startServer } from "@motet/browser-tests/server";
import { round, type Check } from "./bounds.ts";
import { Cast, TABS, TOPICS } from "./cast.ts";
import { EVENTS, type ShowEvent, type Stage } from "./events.ts";
import { Feed } from "./feed.ts";
import { Recorder } from "./recorder.ts";
import { checkAct, checkWhole, reportAct, reportCalm, type Act, type Evidence, type Report } from "./report.ts";
import { serveSite } from "./site.ts";
import { StageServer } from "./stage-server.ts";
import { LiveTable, reportTable } from "./terminal.ts";
import { drawTimeline } from "./timeline.ts";

const BETWEEN_EVENTS_MS = 3_500;
const CAUGHT_UP_WITHIN_MS = 8_000;

const outputDirectory = new URL("../../target/demo/", import.meta.url).pathname;

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: { once: { type: "boolean", default: false }, port: { type: "string", default: "0" } },
  });
  const once = values.once || process.env["CI"] !== undefined || !process.stdout.isTTY;
  mkdirSync(outputDirectory, { recursive: true });

  await using server = await startServer();
  const stageServer = new StageServer();
  await using site = await serveSite({
    websocketUrl: server.websocketUrl,
    outputDirectory,
    port: portNumber(values.port),
    handlers: stageServer.handlers,
  });
  await using browser = await launchChromium();
  await using feed = await Feed.start(server.websocketUrl);
  const cast = new Cast(browser, site.url("/tab"));
  const stage: Stage = { cast, server, awayUrl: site.url("/away") };
  const table = new LiveTable(process.stdout.isTTY);
  using recorder = new Recorder(stage, table, stageServer);

  await feed.play();
  await cast.begin();
  while (cast.playing().length < TABS) await cast.enter();
  await cast.assertSeparateProcesses();
  table.headline(`${TABS} tabs in ${TABS} processes of ${browser.version}; ${site.origin}`);

  const calm = await playCalm(cast, recorder);
  const acts: Act[] = [];
  for (const event of EVENTS) acts.push(await play(event, stage, recorder));

  const acknowledged = await feed.pause();
  const accepted = await server.publicationsUpTo(acknowledged);
  await allCaughtUp(cast, accepted);
  const report = await writeReport({ browser, cast, accepted, recorder, calm, acts });
  table.headline(`\n${reportTable(report)}\n`);
  printVerdict(report);

  if (!once) {
    stageServer.open(stage);
    await feed.play();
    while (cast.playing().length < TABS) await cast.enter();
    table.headline(`Playing on at ${site.origin} (end with Ctrl-C)`);
    await interrupted();
  }
  return report.held;
}

function portNumber(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`--port ${text}: not a port number`);
  return port;
}

type Calm = Omit<Act, "event" | "happening">;

async function playCalm(cast: Cast, recorder: Recorder): Promise<Calm> {
  const fromMs = nowMs();
  recorder.begin("calm");
  await pause(BETWEEN_EVENTS_MS);
  return {
    window: { fromMs, toMs: nowMs() },
    playing: cast.playing().map((tab) => tab.name),
    connectionsMax: recorder.connectionsMax,
  };
}

async function play(event: ShowEvent, stage: Stage, recorder: Recorder): Promise<Act> {
  recorder.begin(event.title);
  const happening = await event.run(stage);
  await pause(BETWEEN_EVENTS_MS);
  return {
    event,
    happening,
    window: { fromMs: happening.atMs, toMs: nowMs() },
    playing: stage.cast.playing().map((tab) => tab.name),
    connectionsMax: recorder.connectionsMax,
  };
}

/** Waits until every playing tab has the last message of each topic; what is missing then, the checker will say. */
async function allCaughtUp(cast: Cast, accepted: readonly Accepted[]): Promise<void> {
  const last = TOPICS.map((topic) => accepted.findLast((publication) => publication.channel === topic)?.seq ?? 0);
  for (const tab of cast.playing()) {
    try {
      await tab.waitFor("has the last messages", CAUGHT_UP_WITHIN_MS, (topics: string[], seqs: number[]) => {
        const messages = window.__log.filter((entry) => entry.kind === "message");
        return topics.every((topic, index) =>
          messages.some((entry) => entry.channel === topic && entry.seq === seqs[index]));
      }, [...TOPICS], last);
    } catch (error) {
      if (!(error instanceof DeadlineExceeded)) throw error;
    }
  }
}

interface Run {
  readonly browser: Browser;
  readonly cast: Cast;
  readonly accepted: readonly Accepted[];
  readonly recorder: Recorder;
  readonly calm: Calm;
  readonly acts: readonly Act[];
}

async function writeReport({ browser, cast, accepted, recorder, calm, acts }: Run): Promise<Report> {
  const memory = cast.memoryBytes();
  const logs = await cast.logs();
  const evidence: Evidence = { accepted, logs, verdicts: judge(accepted, logs) };
  const events = acts.map((act) => reportAct(act, evidence));
  const bounds: Check[] = [
    ...acts.flatMap((act, index) => {
      const report = events[index];
      return report === undefined ? [] : checkAct(act, report, evidence);
    }),
    ...checkWhole(acts, evidence),
  ];
  const report: Report = {
    held: bounds.every((check) => check.held),
    browser: browser.version,
    calm: reportCalm(calm, evidence),
    events,
    totals: recorder.totals(evidence, memory),
    bounds,
  };
  writeFileSync(join(outputDirectory, "report.json"), `${JSON.stringify(report, null, 2)}\n`);
  // What the verdict rests on, for whoever wants to judge anew.
  writeFileSync(join(outputDirectory, "evidence.json"), JSON.stringify({ accepted, logs }));
  writeFileSync(join(outputDirectory, "timeline.png"), await drawTimeline(browser, logs, acts));
  return report;
}

function printVerdict(report: Report): void {
  const { totals } = report;
  process.stdout.write(
    `${totals["accepted"]} messages accepted, ${totals["delivered"]} delivered; lost ${totals["lost"]}, repeated ${totals["repeated"]}; ` +
      `at most ${totals["connections_max"]} connections; ${round((totals["memory_bytes_per_tab"] ?? 0) / 1e6)} MB per tab\n` +
      `report and timeline: target/demo/report.json, target/demo/timeline.png\n`,
  );
  for (const check of report.bounds.filter((candidate) => !candidate.held)) {
    process.stdout.write(`NOT HELD  ${check.name}: ${check.detail}\n`);
  }
  process.stdout.write(report.held ? "every bound held\n" : "some bounds did not hold\n");
}

async function interrupted(): Promise<void> {
  await new Promise<void>((resolve) => {
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => resolve());
  });
}

process.exitCode = (await main()) ? 0 : 1;
