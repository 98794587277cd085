/**
 * The independent judge of delivery. It knows nothing of the bus: it compares what the server says it accepted
 * with what each page's own handler wrote down, by the sequence number that the payload itself carries.
 */
import { readFileSync } from "node:fs";

/** A publication the server accepted, in its order. */
export interface Accepted {
  readonly channel: string;
  readonly seq: number;
  readonly epoch: string;
  readonly offset: number;
  readonly atMs: number;
}

/** What a page wrote down, in the order in which it happened. Times: `performance.timeOrigin + performance.now()`. */
export type PageEntry = ReadyEntry | MessageEntry | GapEntry;

export interface ReadyEntry {
  readonly kind: "ready";
  readonly channel: string;
  readonly atMs: number;
  readonly position?: StreamPosition;
}

export interface MessageEntry {
  readonly kind: "message";
  readonly channel: string;
  readonly seq: number;
  readonly atMs: number;
  readonly position?: StreamPosition;
  readonly replayed?: boolean;
  /** Which of the page's handlers got it; the judge wants one handler a topic. */
  readonly handler?: string;
}

export interface GapEntry {
  readonly kind: "gap";
  readonly channel: string;
  readonly atMs: number;
  readonly reason: string;
  readonly from?: StreamPosition;
  readonly to?: StreamPosition;
}

export interface StreamPosition {
  readonly epoch: string;
  readonly offset: number;
}

/** The log of one page from its load on. A reloaded tab has one log for each load. */
export interface PageLog {
  readonly page: string;
  readonly entries: readonly PageEntry[];
  /**
   * True when the page was alive and every stream had ended when the log was read: then everything accepted must
   * be there. False for a page that went away while messages were flowing.
   */
  readonly complete: boolean;
}

export interface TopicVerdict {
  readonly page: string;
  readonly channel: string;
  readonly delivered: readonly MessageEntry[];
  /** Accepted, never delivered, and no gap event stands where they are missing. */
  readonly lost: readonly Accepted[];
  /** Missing, but told by a gap event at that place. */
  readonly coveredByGaps: readonly Accepted[];
  readonly repeated: readonly MessageEntry[];
  /** Delivered after a later one. */
  readonly outOfOrder: readonly MessageEntry[];
  /** Delivered, though the server never accepted them. */
  readonly foreign: readonly MessageEntry[];
  readonly gaps: readonly GapEntry[];
}

/** A stretch of time, its end not included. */
export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

export type Totals = Record<"delivered" | "lost" | "coveredByGaps" | "repeated" | "outOfOrder" | "foreign" | "gaps", number>;

export interface Outage {
  /** Largest time between two deliveries, from the last one before the window on, cut off at its end. */
  readonly largestGapMs: number;
  /** Largest age of a message at its delivery, of those accepted in the window. */
  readonly largestDelayMs: number;
}

/** Judges every page and every topic that the page subscribed to. */
export function judge(accepted: readonly Accepted[], logs: readonly PageLog[]): TopicVerdict[] {
  const streams = byChannel(accepted);
  return logs.flatMap((log) => {
    const channels = new Set(log.entries.map((entry) => entry.channel));
    return [...channels].map((channel) => judgeTopic(streams.get(channel) ?? [], log, channel));
  });
}

/** Counts over all verdicts, or of what happened (lost: was accepted) in a window of time. */
export function totals(verdicts: readonly TopicVerdict[], window?: Window): Totals {
  const count = (select: (verdict: TopicVerdict) => readonly { readonly atMs: number }[]): number =>
    verdicts.flatMap(select).filter(({ atMs }) => window === undefined || isWithin(atMs, window)).length;
  return {
    delivered: count((verdict) => verdict.delivered),
    lost: count((verdict) => verdict.lost),
    coveredByGaps: count((verdict) => verdict.coveredByGaps),
    repeated: count((verdict) => verdict.repeated),
    outOfOrder: count((verdict) => verdict.outOfOrder),
    foreign: count((verdict) => verdict.foreign),
    gaps: count((verdict) => verdict.gaps),
  };
}

function isWithin(atMs: number, window: Window): boolean {
  return atMs >= window.fromMs && atMs < window.toMs;
}

/** How long a page stood still after `fromMs`, judged until `toMs`; over one channel or all of the page's together. */
export function outage(
  accepted: readonly Accepted[],
  log: PageLog,
  window: Window,
  channel?: string,
): Outage {
  const deliveries = log.entries.filter(
    (entry): entry is MessageEntry =>
      entry.kind === "message" && entry.replayed !== true && (channel ?? entry.channel) === entry.channel,
  );
  const before = deliveries.findLast((entry) => entry.atMs <= window.fromMs);
  let previousMs = before?.atMs ?? window.fromMs;
  let largestGapMs = 0;
  for (const { atMs } of deliveries) {
    if (atMs <= window.fromMs) continue;
    if (atMs >= window.toMs) break;
    largestGapMs = Math.max(largestGapMs, atMs - previousMs);
    previousMs = atMs;
  }
  largestGapMs = Math.max(largestGapMs, window.toMs - previousMs);
  return { largestGapMs, largestDelayMs: largestDelay(accepted, deliveries, window) };
}

/** The value below or at which `fraction` of the values lie (nearest rank); 0 for none. */
export function percentile(values: readonly number[], fraction: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? 0;
}

/** Reads the publication log of `motet serve`: a JSON object a line, the payload's `seq` in `data`. */
export function readPublicationLog(file: string): Accepted[] {
  const lines = readFileSync(file, "utf8").split("\n");
  // A killed server may leave its last line unfinished.
  const whole = lines.slice(0, -1);
  return whole.map((line, index) => parseAccepted(line, `${file}:${index + 1}`));
}

function parseAccepted(line: string, where: string): Accepted {
  const { ts_ms, channel, epoch, offset, data } = JSON.parse(line) as Record<string, unknown>;
  const seq = (data as { seq?: unknown } | undefined)?.seq;
  if (
    typeof ts_ms !== "number" ||
    typeof channel !== "string" ||
    typeof epoch !== "string" ||
    typeof offset !== "number" ||
    typeof seq !== "number"
  ) {
    throw new Error(`${where}: not a publication with a sequence number: ${line.slice(0, 200)}`);
  }
  return { channel, seq, epoch, offset, atMs: ts_ms };
}

function byChannel(accepted: readonly Accepted[]): Map<string, Accepted[]> {
  const streams = new Map<string, Accepted[]>();
  for (const publication of accepted) {
    const stream = streams.get(publication.channel);
    if (stream === undefined) streams.set(publication.channel, [publication]);
    else stream.push(publication);
  }
  return streams;
}

function judgeTopic(stream: readonly Accepted[], log: PageLog, channel: string): TopicVerdict {
  const indexOf = new Map(stream.map((publication, index) => [publication.seq, index]));
  if (indexOf.size !== stream.length) throw new Error(`${channel}: the publisher used a sequence number twice`);
  const entries = log.entries.filter((entry) => entry.channel === channel);
  const delivered = new Map<number, MessageEntry>();
  const missing = new Map<number, { publication: Accepted; covered: boolean }>();
  const repeated: MessageEntry[] = [];
  const outOfOrder: MessageEntry[] = [];
  const foreign: MessageEntry[] = [];
  const gaps: GapEntry[] = [];
  let last = startIndex(stream, entries, indexOf);
  let covered = false;

  const skipTo = (index: number): void => {
    for (const publication of stream.slice(last + 1, index)) missing.set(publication.seq, { publication, covered });
  };
  for (const entry of entries) {
    if (entry.kind === "gap") {
      gaps.push(entry);
      covered = true;
    }
    if (entry.kind !== "message") continue;
    const index = indexOf.get(entry.seq);
    if (delivered.has(entry.seq)) repeated.push(entry);
    else if (index === undefined) foreign.push(entry);
    else if (index <= last) outOfOrder.push(entry);
    else {
      skipTo(index);
      last = index;
      covered = false;
    }
    if (!delivered.has(entry.seq)) delivered.set(entry.seq, entry);
    missing.delete(entry.seq);
  }
  if (log.complete) skipTo(stream.length);
  const without = (told: boolean): Accepted[] =>
    [...missing.values()].filter((hole) => hole.covered === told).map((hole) => hole.publication);
  return {
    page: log.page,
    channel,
    delivered: [...delivered.values()],
    lost: without(false),
    coveredByGaps: without(true),
    repeated,
    outOfOrder,
    foreign,
    gaps,
  };
}

/** Index of the publication before the first one that the page must see. */
function startIndex(stream: readonly Accepted[], entries: readonly PageEntry[], indexOf: Map<number, number>): number {
  const ready = entries.find((entry) => entry.kind === "ready");
  const first = entries.find((entry) => entry.kind === "message");
  const firstIndex = first === undefined ? undefined : indexOf.get(first.seq);
  let promised: number | undefined;
  if (ready?.position !== undefined) {
    const { epoch, offset } = ready.position;
    promised = stream.findLastIndex((publication) => publication.epoch === epoch && publication.offset <= offset);
  }
  if (firstIndex !== undefined) return Math.min(promised ?? Infinity, firstIndex - 1);
  if (promised !== undefined) return promised;
  // Nothing came and no position was named: what was accepted after the page was told it is ready must have come.
  return ready === undefined ? stream.length - 1 : stream.findLastIndex(({ atMs }) => atMs <= ready.atMs);
}

function largestDelay(accepted: readonly Accepted[], deliveries: readonly MessageEntry[], window: Window): number {
  const deliveredAt = new Map(deliveries.map((entry) => [keyOf(entry), entry.atMs]));
  let largestMs = 0;
  for (const publication of accepted) {
    const atMs = deliveredAt.get(keyOf(publication));
    if (atMs !== undefined && isWithin(publication.atMs, window)) largestMs = Math.max(largestMs, atMs - publication.atMs);
  }
  return largestMs;
}

function keyOf(entry: { readonly channel: string; readonly seq: number }): string {
  return `${entry.channel} ${entry.seq}`;
}
