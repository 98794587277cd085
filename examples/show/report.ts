import {
  outage,
  percentile,
  totals,
  type Accepted,
  type PageLog,
  type GapEntry,
  type TopicVerdict,
  type Window,
} from "@motet/browser-tests/checker";
import { atMost, CONNECTIONS_MAX, exactly, round, type Check } from "./bounds.ts";
import { TOPICS } from "./cast.ts";
import type { Happening, ShowEvent } from "./events.ts";

/**
 * The bounds on outages are given for a message every 20 ms. Where the feed itself paused for longer, an outage may
 * be longer by as much; the age of the messages, which does not depend on the feed, has the bound as it is.
 */
const BOUND_SPACING_MS = 20;

/** An event that took place, and the stretch of time that is judged by it. */
export interface Act {
  readonly event: ShowEvent;
  readonly happening: Happening;
  readonly window: Window;
  /** Names of the tabs that played on when the window ended. */
  readonly playing: readonly string[];
  readonly connectionsMax: number;
}

export interface Evidence {
  readonly accepted: readonly Accepted[];
  readonly logs: readonly PageLog[];
  readonly verdicts: readonly TopicVerdict[];
}

/** Figures of one event, as `report.json` has them. */
export interface EventReport {
  readonly name: string;
  readonly title: string;
  readonly victim: string | null;
  readonly tabs_judged: number;
  /** Largest time between two deliveries in each tab that it did not happen to. */
  readonly outage_ms_p50: number;
  readonly outage_ms_p99: number;
  /** Largest age of a message, from acceptance by the server to the handler. */
  readonly delay_ms_max: number;
  /** Largest time between two messages as the server accepted them: what no bus can undercut. */
  readonly feed_gap_ms: number;
  readonly lost: number;
  readonly repeated: number;
  readonly gaps: number;
  readonly connections_max: number;
  readonly messages_per_second: number;
  /** Why gaps were reported. */
  readonly gap_reasons: readonly string[];
  readonly restored_from_cache?: boolean;
}

export interface Report {
  readonly held: boolean;
  readonly browser: string;
  readonly calm: EventReport;
  readonly events: readonly EventReport[];
  readonly totals: Record<string, number>;
  readonly bounds: readonly Check[];
}

/** The figures of a window in which nothing happened, for comparison. */
export function reportCalm(act: Omit<Act, "event" | "happening">, evidence: Evidence): EventReport {
  return figures("calm", "nothing happens", undefined, act, evidence);
}

export function reportAct(act: Act, evidence: Evidence): EventReport {
  const { event, happening } = act;
  const report = figures(event.name, event.title, happening.victim?.name, act, evidence);
  return happening.restored === undefined ? report : { ...report, restored_from_cache: happening.restored.persisted };
}

export function checkAct(act: Act, report: EventReport, evidence: Evidence): Check[] {
  const { event, happening } = act;
  const { bound } = event;
  const checks: Check[] = [];
  if (bound !== undefined) {
    const { p50Ms, p99Ms } = bound;
    const spareMs = Math.max(0, report.feed_gap_ms - BOUND_SPACING_MS);
    checks.push(atMost(`${event.name}: outage p50`, report.outage_ms_p50, round(p50Ms + spareMs), " ms"));
    checks.push(atMost(`${event.name}: outage p99`, report.outage_ms_p99, round(p99Ms + spareMs), " ms"));
    checks.push(atMost(`${event.name}: oldest message delivered`, report.delay_ms_max, p99Ms, " ms"));
  }
  if (happening.restored !== undefined) {
    const { persisted, reasons } = happening.restored;
    const detail = persisted ? "yes" : `no: ${reasons.join(", ")}`;
    checks.push({ name: `${event.name}: restored from the cache`, held: persisted, detail });
  }
  for (const page of act.playing) {
    for (const channel of TOPICS) {
      const verdicts = evidence.verdicts.filter(
        (verdict) => tabOf(verdict.page) === page && verdict.channel === channel,
      );
      const { gaps } = totals(verdicts, act.window);
      if (gaps !== event.gapsPerTopic) {
        const reasons = gapsIn(verdicts, act.window).map((gap) => gap.reason).join(", ");
        const name = `${event.name}: gap events of ${page} for ${channel} (${reasons})`;
        checks.push(exactly(name, gaps, event.gapsPerTopic));
      }
    }
  }
  checks.push(atMost(`${event.name}: connections`, report.connections_max, CONNECTIONS_MAX));
  return checks;
}

export function checkWhole(acts: readonly Act[], evidence: Evidence): Check[] {
  const sums = totals(evidence.verdicts);
  const gapsInActs = acts.reduce((sum, act) => sum + totals(evidence.verdicts, act.window).gaps, 0);
  return [
    exactly("messages lost without a gap event", sums.lost, 0),
    exactly("messages repeated", sums.repeated, 0),
    exactly("messages out of order", sums.outOfOrder, 0),
    exactly("messages the server never accepted", sums.foreign, 0),
    exactly("gap events while nothing happened", sums.gaps - gapsInActs, 0),
  ];
}

/** Logs are named `tab3#2` when the tab has loaded more than once. */
export function tabOf(page: string): string {
  return page.split("#")[0] ?? page;
}

function figures(
  name: string,
  title: string,
  victim: string | undefined,
  act: Omit<Act, "event" | "happening">,
  { accepted, logs, verdicts }: Evidence,
): EventReport {
  const survivors = act.playing.filter((tab) => tab !== victim);
  // A tab that loads anew later is judged by the log that was being written when the window began.
  const outages = survivors.map((tab) => {
    const log = logs.findLast(
      ({ page, entries }) => tabOf(page) === tab && (entries[0]?.atMs ?? Infinity) <= act.window.fromMs,
    );
    if (log === undefined) throw new Error(`${tab} left no log of this time (${name}): ${JSON.stringify([act.window, logs.filter(({page})=>tabOf(page)===tab).map(l=>[l.page,l.entries.length,l.entries[0]?.atMs,l.entries.at(-1)?.atMs])])}`);
    return outage(accepted, log, act.window);
  });
  const gapsMs = outages.map(({ largestGapMs }) => largestGapMs);
  const sums = totals(verdicts, act.window);
  const seconds = (act.window.toMs - act.window.fromMs) / 1_000;
  const ofSurvivors = verdicts.filter((verdict) => survivors.includes(tabOf(verdict.page)));
  return {
    name,
    title,
    victim: victim ?? null,
    tabs_judged: survivors.length,
    outage_ms_p50: round(percentile(gapsMs, 0.5)),
    outage_ms_p99: round(percentile(gapsMs, 0.99)),
    delay_ms_max: round(Math.max(0, ...outages.map(({ largestDelayMs }) => largestDelayMs))),
    feed_gap_ms: round(feedGap(accepted, act.window)),
    lost: sums.lost,
    repeated: sums.repeated,
    gaps: sums.gaps,
    gap_reasons: [...new Set(gapsIn(verdicts, act.window).map((gap) => gap.reason))],
    connections_max: act.connectionsMax,
    messages_per_second: round(totals(ofSurvivors, act.window).delivered / seconds / Math.max(1, survivors.length)),
  };
}

function gapsIn(verdicts: readonly TopicVerdict[], { fromMs, toMs }: Window): GapEntry[] {
  return verdicts.flatMap((verdict) => verdict.gaps).filter(({ atMs }) => atMs >= fromMs && atMs < toMs);
}

function feedGap(accepted: Evidence["accepted"], window: Window): number {
  let previousMs = window.fromMs;
  let largestMs = 0;
  for (const { atMs } of accepted) {
    if (atMs < window.fromMs || atMs >= window.toMs) continue;
    largestMs = Math.max(largestMs, atMs - previousMs);
    previousMs = atMs;
  }
  return largestMs;
}
