import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  judge,
  outage,
  percentile,
  readPublicationLog,
  totals,
  type Accepted,
  type PageEntry,
  type PageLog,
  type TopicVerdict,
} from "./checker.ts";

const SPACING_MS = 20;

function stream(count: number, channel = "prices"): Accepted[] {
  return Array.from({ length: count }, (_, index) => ({
    channel,
    seq: index + 1,
    epoch: "e",
    offset: index + 1,
    atMs: 1_000 + index * SPACING_MS,
  }));
}

const message = (seq: number, atMs = 1_001 + (seq - 1) * SPACING_MS, channel = "prices"): PageEntry => ({
  kind: "message",
  channel,
  seq,
  atMs,
});
const gap = (): PageEntry => ({ kind: "gap", channel: "prices", atMs: 0, reason: "history_lost" });
const page = (entries: readonly PageEntry[], complete = true): PageLog => ({ page: "tab1", entries, complete });

const seqs = (entries: readonly { seq: number }[]): number[] => entries.map(({ seq }) => seq);

function verdictOf(accepted: readonly Accepted[], log: PageLog): TopicVerdict {
  const [verdict, ...others] = judge(accepted, [log]);
  assert.ok(verdict);
  assert.deepEqual(others, []);
  return verdict;
}

describe("the checker", () => {
  test("finds nothing wrong with a complete log in order", () => {
    const verdict = verdictOf(stream(5), page([1, 2, 3, 4, 5].map((seq) => message(seq))));
    assert.deepEqual(totals([verdict]), {
      delivered: 5,
      lost: 0,
      coveredByGaps: 0,
      repeated: 0,
      outOfOrder: 0,
      foreign: 0,
      gaps: 0,
    });
  });

  test("finds a lost message", () => {
    assert.deepEqual(seqs(verdictOf(stream(4), page([message(1), message(2), message(4)])).lost), [3]);
  });

  test("finds a message lost at the end of a complete log, and none in a log that was cut off", () => {
    const entries = [message(1), message(2)];
    assert.deepEqual(seqs(verdictOf(stream(3), page(entries)).lost), [3]);
    assert.deepEqual(seqs(verdictOf(stream(3), page(entries, false)).lost), []);
  });

  test("finds a repeated message", () => {
    const verdict = verdictOf(stream(3), page([message(1), message(2), message(2), message(3)]));
    assert.deepEqual(seqs(verdict.repeated), [2]);
    assert.deepEqual(seqs(verdict.lost), []);
  });

  test("finds two swapped messages, which are neither lost nor repeated", () => {
    const verdict = verdictOf(stream(4), page([message(1), message(3), message(2), message(4)]));
    assert.deepEqual(seqs(verdict.outOfOrder), [2]);
    assert.deepEqual(seqs(verdict.lost), []);
    assert.deepEqual(seqs(verdict.repeated), []);
  });

  test("finds a message that the server never accepted", () => {
    assert.deepEqual(seqs(verdictOf(stream(2), page([message(1), message(9), message(2)])).foreign), [9]);
  });

  test("excuses what is missing exactly where a gap event stands", () => {
    const verdict = verdictOf(stream(6), page([message(1), gap(), message(4), message(6)]));
    assert.deepEqual(seqs(verdict.coveredByGaps), [2, 3]);
    assert.deepEqual(seqs(verdict.lost), [5]);
    assert.equal(verdict.gaps.length, 1);
  });

  test("does not excuse a loss by a gap event that comes after it", () => {
    assert.deepEqual(seqs(verdictOf(stream(4), page([message(1), message(3), gap(), message(4)])).lost), [2]);
  });

  test("begins at the position that ready named, or else at the first delivery", () => {
    const late = [message(4), message(5)];
    const ready: PageEntry = { kind: "ready", channel: "prices", atMs: 0, position: { epoch: "e", offset: 2 } };
    assert.deepEqual(seqs(verdictOf(stream(5), page(late)).lost), []);
    assert.deepEqual(seqs(verdictOf(stream(5), page([ready, ...late])).lost), [3]);
  });

  test("misses everything accepted after ready when nothing came", () => {
    const ready: PageEntry = { kind: "ready", channel: "prices", atMs: 1_000 + SPACING_MS };
    assert.deepEqual(seqs(verdictOf(stream(4), page([ready])).lost), [3, 4]);
  });

  test("judges each topic by its own sequence", () => {
    const accepted = [...stream(2), ...stream(2, "quakes")];
    const entries = [message(1), message(1, 1_000, "quakes"), message(2), message(2, 1_001, "quakes")];
    assert.equal(totals(judge(accepted, [page(entries)])).repeated, 0);
  });
});

test("totals of a window count what happened in it", () => {
  const verdicts = judge(stream(5), [page([message(1), message(2), message(2, 1_070), message(5, 1_090)])]);
  assert.deepEqual(totals(verdicts, { fromMs: 1_030, toMs: 1_050 }).lost, 1);
  assert.deepEqual(totals(verdicts, { fromMs: 1_060, toMs: 1_080 }).repeated, 1);
});

describe("the outage in a window", () => {
  const window = { fromMs: 1_050, toMs: 1_200 };

  test("is the largest time between deliveries, the one the fault fell into included", () => {
    const log = page([message(1, 1_000), message(2, 1_040), message(3, 1_130), message(4, 1_150), message(5, 1_210)]);
    assert.equal(outage(stream(5), log, window).largestGapMs, 90);
  });

  test("reaches to the end of the window when nothing comes any more", () => {
    assert.equal(outage(stream(5), page([message(1, 1_000)]), window).largestGapMs, 200);
  });

  test("knows how old a message was when it was delivered at last", () => {
    const log = page([message(1, 1_001), message(4, 1_145)]);
    assert.equal(outage(stream(5), log, window).largestDelayMs, 85);
  });
});

test("percentiles are values that occurred", () => {
  assert.equal(percentile([4, 1, 3, 2], 0.5), 2);
  assert.equal(percentile([4, 1, 3, 2], 0.99), 4);
  assert.equal(percentile([], 0.5), 0);
});

test("a publication log is read up to the line a killed server left unfinished", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "motet-log-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, "log.jsonl");
  const line = { ts_ms: 5, channel: "prices", epoch: "e", offset: 1, data: { seq: 7 } };
  writeFileSync(file, `${JSON.stringify(line)}\n{"ts_ms":6,"chan`);
  assert.deepEqual(readPublicationLog(file), [{ channel: "prices", seq: 7, epoch: "e", offset: 1, atMs: 5 }]);
  writeFileSync(file, '{"ts_ms":5}\n');
  assert.throws(() => readPublicationLog(file), /log\.jsonl:1/);
});
