import "uplot/dist/uPlot.min.css";
import "./main.css";
import { connect, type Gap, type MessageMeta } from "motet";
import { PriceChart, QuakeChart, type Price, type Quake } from "./charts.ts";
import { DeliveryLog, nowMs } from "./delivery-log.ts";
import { OwnershipTables, tabChip } from "./ownership.ts";
import type { StageApi } from "./stage-api.ts";
import { blockMainThread, watchWorkers, wireButtons } from "./trouble.ts";

interface Topics {
  quakes: Quake;
  prices: Price;
}

const DRAW_EVERY_MS = 100;
const TABLES_EVERY_MS = 250;
const RATE_WINDOW_MS = 2_000;

const byId = (id: string): HTMLElement => {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no element #${id}`);
  return element;
};

watchWorkers();

const url = document.querySelector<HTMLMetaElement>('meta[name="motet-server"]')?.content ?? "";
const log = new DeliveryLog();
const bus = await connect<Topics>({ cluster: "show", transport: { kind: "centrifuge", url } });

const quakes = new QuakeChart(byId("quakes"));
const prices = new PriceChart(byId("prices"));
const tables = new OwnershipTables(byId("routes"), byId("nodes"));
const counts = { delivered: 0, gaps: 0 };
let status = "starting";
let ageMs = 0;

function follow<T extends keyof Topics>(topic: T, show: (message: Topics[T], meta: MessageMeta) => void): void {
  const subscription = bus.subscribe(
    topic,
    (message, meta) => {
      const atMs = nowMs();
      log.note({
        kind: "message",
        channel: topic,
        seq: message.seq,
        atMs,
        position: meta.position,
        ...(meta.replayed ? { replayed: true } : {}),
      });
      counts.delivered += 1;
      ageMs = atMs - message.publishedAtMs;
      show(message, meta);
    },
    {
      onGap: (gap: Gap) => {
        counts.gaps += 1;
        log.note({
          kind: "gap",
          channel: topic,
          atMs: nowMs(),
          reason: gap.reason,
          from: gap.from,
          ...(gap.to === undefined ? {} : { to: gap.to }),
        });
      },
    },
  );
  subscription.ready.then(
    (position) => log.note({ kind: "ready", channel: topic, atMs: nowMs(), position }),
    (error: unknown) => {
      byId("hint").textContent = `${topic}: ${String(error)}`;
    },
  );
}

const followers: Readonly<Record<keyof Topics, () => void>> = {
  quakes: () =>
    follow("quakes", (quake) => {
      quakes.add(quake, nowMs());
      byId("latest-quake").textContent = `M ${quake.magnitude.toFixed(1)}  ${quake.place}`;
    }),
  prices: () =>
    follow("prices", (price) => {
      prices.add(price);
      byId("latest-price").textContent = `${price.day}  ${price.close.toFixed(2)}`;
    }),
};
// The show's first tab leaves the quakes to the second, so that the two topics have different owners.
const left = new URLSearchParams(location.search).get("leave");
// Only when it opens: reloaded, it follows both.
history.replaceState(history.state, "", location.pathname);
for (const [topic, begin] of Object.entries(followers)) if (topic !== left) begin();

bus.status.subscribe((now) => {
  status = now.state;
  byId("status").textContent = now.state;
  byId("status").dataset["state"] = now.state;
});

function showFigures(): void {
  const rate = (log.messagesSince(nowMs() - RATE_WINDOW_MS) * 1_000) / RATE_WINDOW_MS;
  byId("rate").textContent = rate.toFixed(0);
  byId("total").textContent = counts.delivered.toLocaleString("en");
  byId("age").textContent = counts.delivered === 0 ? "\u2013" : ageMs.toFixed(1);
  byId("gaps").textContent = String(counts.gaps);
  byId("gaps").className = counts.gaps > 0 ? "alarm" : "";
}

function showOwnership(): void {
  const snapshot = bus.snapshot();
  const { self, nodes, routes } = snapshot;
  const owned = routes.filter((route) => route.owner === self.nodeId).map((route) => route.topic);
  const role = nodes.find((node) => node.nodeId === self.nodeId)?.role;
  byId("self-tab").replaceWith(Object.assign(tabChip(self.tabId, true), { id: "self-tab" }));
  byId("self-roles").textContent = [role, ...owned.map((topic) => `owns ${topic}`)].filter(Boolean).join(", ");
  byId("host").textContent = self.host ?? "\u2013";
  tables.show(snapshot);
}

let drawnAtMs = 0;
let tablesAtMs = 0;

/** Runs with the screen, so a hidden tab spends nothing on drawing. */
function frame(atMs: number): void {
  if (atMs - drawnAtMs >= DRAW_EVERY_MS) {
    drawnAtMs = atMs;
    quakes.draw(nowMs());
    prices.draw();
    showFigures();
  }
  if (atMs - tablesAtMs >= TABLES_EVERY_MS) {
    tablesAtMs = atMs;
    showOwnership();
  }
  requestAnimationFrame(frame);
}
requestAnimationFrame(frame);
wireButtons(bus);

const stage: StageApi = {
  log: log.entries,
  follow: (topic) => followers[topic](),
  stats: () => ({
    status,
    delivered: counts.delivered,
    gaps: counts.gaps,
    perSecond: (log.messagesSince(nowMs() - RATE_WINDOW_MS) * 1_000) / RATE_WINDOW_MS,
    snapshot: bus.snapshot(),
  }),
  block: blockMainThread,
};
Object.assign(window, { __log: log.entries, __stage: stage });
