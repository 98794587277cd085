import { pictureOf, type Browser } from "@motet/browser-tests/driver";
import type { PageLog } from "@motet/browser-tests/checker";
import { TOPICS } from "./cast.ts";
import { tabOf, type Act } from "./report.ts";

const WIDTH_PX = 1_800;
const ROW_PX = 56;
const HEAD_PX = 190;
const FOOT_PX = 50;

interface Row {
  readonly tab: string;
  /** Times from the beginning of the picture, by topic. */
  readonly deliveries: Record<string, number[]>;
  readonly gaps: number[];
}

interface Picture {
  readonly spanMs: number;
  readonly topics: readonly string[];
  readonly rows: readonly Row[];
  readonly events: readonly { readonly atMs: number; readonly title: string; readonly tab: string | null }[];
}

/** A PNG with a row for each tab, a stroke for each delivery, and the events across them. */
export async function drawTimeline(browser: Browser, logs: readonly PageLog[], acts: readonly Act[]): Promise<Uint8Array> {
  const picture = compose(logs, acts);
  const height = HEAD_PX + picture.rows.length * ROW_PX + FOOT_PX;
  return await pictureOf(browser, page(picture), { width: WIDTH_PX, height });
}

function compose(logs: readonly PageLog[], acts: readonly Act[]): Picture {
  const times = logs.flatMap((log) => log.entries.map((entry) => entry.atMs));
  const fromMs = times.reduce((least, time) => Math.min(least, time), Infinity);
  const toMs = times.reduce((most, time) => Math.max(most, time), -Infinity);
  const tabs = [...new Set(logs.map((log) => tabOf(log.page)))];
  const rows = tabs.map((tab) => {
    const entries = logs.filter((log) => tabOf(log.page) === tab).flatMap((log) => log.entries);
    const of = (topic: string): number[] =>
      entries
        .filter((entry) => entry.kind === "message" && entry.channel === topic)
        .map((entry) => entry.atMs - fromMs);
    return {
      tab,
      deliveries: Object.fromEntries(TOPICS.map((topic) => [topic, of(topic)])),
      gaps: entries.filter((entry) => entry.kind === "gap").map((entry) => entry.atMs - fromMs),
    };
  });
  return {
    spanMs: toMs - fromMs,
    topics: TOPICS,
    rows,
    events: acts.map(({ event, happening }) => ({
      atMs: happening.atMs - fromMs,
      title: event.title,
      tab: happening.victim?.name ?? null,
    })),
  };
}

function page(picture: Picture): string {
  return `<!doctype html>
<meta charset="utf-8"><title>timeline</title>
<style>html,body{margin:0;background:#fbfcfb;overflow:hidden}canvas{display:block}</style>
<canvas width="${WIDTH_PX}" height="${HEAD_PX + picture.rows.length * ROW_PX + FOOT_PX}"></canvas>
<script>
const picture = ${JSON.stringify(picture).replaceAll("<", "\\u003c")};
const LEFT = 90, RIGHT = 150, HEAD = ${HEAD_PX}, ROW = ${ROW_PX};
const COLOURS = { quakes: "#d2691e", prices: "#0f8a8a" };
const canvas = document.querySelector("canvas");
const ctx = canvas.getContext("2d");
const bottom = HEAD + picture.rows.length * ROW;
const x = (ms) => LEFT + (ms / picture.spanMs) * (canvas.width - LEFT - RIGHT);
const text = (value, left, top, style, font) => { ctx.fillStyle = style; ctx.font = font; ctx.fillText(value, left, top); };
text("Deliveries in every tab", 20, 34, "#16211f", "600 22px system-ui");
let legend = 20;
for (const topic of picture.topics) {
  ctx.fillStyle = COLOURS[topic]; ctx.fillRect(legend, 50, 12, 12);
  text(topic, legend + 18, 61, "#5d6b68", "14px system-ui"); legend += 90;
}
ctx.fillStyle = "#c62a2f"; ctx.beginPath(); ctx.arc(legend + 6, 56, 5, 0, 7); ctx.fill();
text("gap event", legend + 18, 61, "#5d6b68", "14px system-ui");
picture.rows.forEach((row, index) => {
  const top = HEAD + index * ROW;
  ctx.fillStyle = index % 2 ? "#fbfcfb" : "#f0f4f2"; ctx.fillRect(0, top, canvas.width, ROW);
  text(row.tab, 20, top + ROW / 2 + 5, "#16211f", "600 15px ui-monospace, monospace");
  picture.topics.forEach((topic, lane) => {
    ctx.fillStyle = COLOURS[topic]; ctx.globalAlpha = 0.6;
    for (const at of row.deliveries[topic]) ctx.fillRect(x(at), top + 6 + lane * 23, 1.2, 20);
    ctx.globalAlpha = 1;
  });
  ctx.fillStyle = "#c62a2f";
  for (const at of row.gaps) { ctx.beginPath(); ctx.arc(x(at), top + ROW / 2, 5, 0, 7); ctx.fill(); }
});
picture.events.forEach((event, index) => {
  const left = x(event.atMs);
  ctx.strokeStyle = "#16211f"; ctx.setLineDash([5, 4]);
  ctx.beginPath(); ctx.moveTo(left, HEAD - 8); ctx.lineTo(left, bottom); ctx.stroke(); ctx.setLineDash([]);
  const row = picture.rows.findIndex((candidate) => candidate.tab === event.tab);
  if (row >= 0) { ctx.lineWidth = 2; ctx.beginPath(); ctx.arc(left, HEAD + row * ROW + ROW / 2, 9, 0, 7); ctx.stroke(); ctx.lineWidth = 1; }
  ctx.save(); ctx.translate(left + 4, HEAD - 12); ctx.rotate(-Math.PI / 9);
  text((index + 1) + "  " + event.title, 0, 0, "#16211f", "14px system-ui"); ctx.restore();
});
for (let second = 0; second * 1000 <= picture.spanMs; second += 5) {
  text(second + " s", x(second * 1000) - 8, bottom + 24, "#5d6b68", "13px system-ui");
}
</script>`;
}
