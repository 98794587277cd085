/** The picture of a show: commits a second and how long they took, with what happened to whom. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pictureOf, type Browser } from "@motet/browser-tests/driver";
import type { Entry } from "./judge.ts";

const BIN_MS = 250;
const SIZE = { width: 1_400, height: 860 } as const;
const COLOURS = ["#0f8a8a", "#d2691e", "#5b6abf", "#7a9a2f"];

/** Something that was done to a worker. */
export interface Happening {
  readonly title: string;
  readonly worker: string;
  readonly atMs: number;
}

export interface Course {
  /** From the first operation, in seconds: the middle of each bin. */
  readonly seconds: number[];
  /** Commits a second, by worker. */
  readonly rates: { readonly worker: string; readonly values: number[] }[];
  /** Of the commits that ended in a bin; nothing where none did. */
  readonly p50Ms: (number | null)[];
  readonly p99Ms: (number | null)[];
  readonly happenings: { readonly title: string; readonly second: number }[];
}

/** How the work went over time. Journals of the same worker, before and after it was killed, are one row. */
export function courseOf(journals: ReadonlyMap<string, readonly Entry[]>, happenings: readonly Happening[]): Course {
  const commits = [...journals].flatMap(([worker, entries]) =>
    entries.filter(({ changes }) => changes !== undefined).map(({ beganUs, endedUs }) => ({ worker: rowOf(worker), beganUs, endedUs })));
  const from = commits.reduce((least, { beganUs }) => Math.min(least, beganUs), Infinity) / 1_000;
  const to = commits.reduce((most, { endedUs }) => Math.max(most, endedUs), 0) / 1_000;
  // The last bin is not whole.
  const bins = Math.max(1, Math.floor((to - from) / BIN_MS));
  const binOf = (endedUs: number): number => Math.floor((endedUs / 1_000 - from) / BIN_MS);
  const workers = [...new Set([...journals.keys()].map(rowOf))];
  const rates = workers.map((worker) => ({ worker, values: Array.from({ length: bins }, () => 0) }));
  const took: number[][] = Array.from({ length: bins }, () => []);
  for (const { worker, beganUs, endedUs } of commits) {
    const bin = binOf(endedUs);
    took[bin]?.push((endedUs - beganUs) / 1_000);
    const row = rates[workers.indexOf(worker)];
    if (row !== undefined && bin < bins) row.values[bin] = (row.values[bin] ?? 0) + 1_000 / BIN_MS;
  }
  return {
    seconds: Array.from({ length: bins }, (_, bin) => ((bin + 0.5) * BIN_MS) / 1_000),
    rates,
    p50Ms: took.map((times) => quantile(times, 0.5)),
    p99Ms: took.map((times) => quantile(times, 0.99)),
    happenings: happenings.map(({ title, worker, atMs }) => ({ title: `${rowOf(worker)} ${title}`, second: (atMs - from) / 1_000 })),
  };
}

/** The part of a journal's name that says who works: `two.again` is `two`. */
function rowOf(journal: string): string {
  return journal.split(".")[0] ?? journal;
}

/** The nearest rank; nothing of nothing. */
export function quantile(values: readonly number[], share: number): number | null {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;
}

/** A PNG of it. */
export async function drawCourse(browser: Browser, course: Course): Promise<Uint8Array> {
  return await pictureOf(browser, page(course), SIZE);
}

function page(course: Course): string {
  const files = createRequire(import.meta.url);
  const library = readFileSync(files.resolve("uplot/dist/uPlot.iife.min.js"), "utf8");
  const style = readFileSync(files.resolve("uplot/dist/uPlot.min.css"), "utf8");
  return `<!doctype html>
<meta charset="utf-8"><title>course</title>
<style>${style}
body { margin: 0; padding: 18px 24px; background: #fbfcfb; color: #16211f; font: 15px system-ui; }
h1 { font-size: 21px; margin: 0 0 14px; } .u-title { font-size: 15px; text-align: left; }
</style>
<h1>Four processes on one store</h1><div id="rate"></div><div id="took"></div>
<script>${library}</script>
<script>
const course = ${JSON.stringify(course).replaceAll("<", "\\u003c")};
const COLOURS = ${JSON.stringify(COLOURS)};
const stacked = [];
course.rates.forEach(({ values }, index) => stacked.push(values.map((value, at) => value + (stacked[index - 1]?.[at] ?? 0))));
const marks = { hooks: { draw: [(chart) => {
  const { ctx, bbox } = chart;
  ctx.save(); ctx.strokeStyle = ctx.fillStyle = "#c62a2f"; ctx.font = "13px system-ui"; ctx.textAlign = "left"; ctx.setLineDash([5, 4]);
  course.happenings.forEach(({ title, second }, index) => {
    const x = chart.valToPos(second, "x", true);
    ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
    ctx.fillText(title, x + 5, bbox.top + 14 + (index % 2) * 17);
  });
  ctx.restore();
}] } };
const axes = [{ values: (_, ticks) => ticks.map((tick) => tick + " s") }, { size: 70 }];
const common = { width: ${SIZE.width - 48}, height: 340, plugins: [marks], legend: { live: false }, axes };
const x = { time: false };
const rows = course.rates.map(({ worker }, index) => ({ label: worker, stroke: COLOURS[index], fill: COLOURS[index] + "66", points: { show: false } }));
// The highest of a stack is drawn first, so that the lower ones lie on it.
new uPlot({ ...common, title: "Commits a second, all durable", scales: { x, y: { range: (_, least, most) => [0, most * 1.15] } }, series: [{}, ...rows.toReversed()] },
  [course.seconds, ...stacked.toReversed()], document.querySelector("#rate"));
new uPlot({ ...common, title: "Time to commit, in ms", scales: { x, y: { distr: 3 } }, series: [{},
  { label: "p50", stroke: "#0f8a8a", width: 2, points: { show: false } },
  { label: "p99", stroke: "#d2691e", width: 2, points: { show: false } }] },
  [course.seconds, course.p50Ms, course.p99Ms], document.querySelector("#took"));
</script>`;
}
