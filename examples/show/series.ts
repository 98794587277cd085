/** The two real series of npm `vega-datasets`, as endless feeds for a publisher. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { PacedPayload } from "@motet/browser-tests/foreign-publisher";

export const QUAKES_PER_SECOND = 30;
export const PRICES_PER_SECOND = 20;

const require = createRequire(import.meta.url);
const data = join(dirname(require.resolve("vega-datasets")), "../data");

interface Feature {
  readonly properties: { readonly mag: number; readonly place: string; readonly time: number };
}

/** Earthquakes with their real spacing, scaled so that they come at about {@link QUAKES_PER_SECOND}. */
export function* earthquakes(): Generator<PacedPayload> {
  const { features } = JSON.parse(readFileSync(join(data, "earthquakes.json"), "utf8")) as { features: Feature[] };
  const quakes = features.map((feature) => feature.properties).sort((a, b) => a.time - b.time);
  const spanMs = (quakes.at(-1)?.time ?? 0) - (quakes[0]?.time ?? 0);
  const speed = spanMs / ((quakes.length / QUAKES_PER_SECOND) * 1_000);
  for (;;) {
    let previous: number | undefined;
    for (const { time, mag, place } of quakes) {
      const waitMs = previous === undefined ? 1_000 / QUAKES_PER_SECOND : (time - previous) / speed;
      previous = time;
      yield { waitMs, payload: { time, magnitude: mag, place } };
    }
  }
}

/** Closing prices, one trading day after another, at a steady {@link PRICES_PER_SECOND}. */
export function* prices(): Generator<PacedPayload> {
  const [, ...lines] = readFileSync(join(data, "sp500-2000.csv"), "utf8").trim().split("\n");
  const days = lines.map((line) => {
    const [day = "", , , , close = ""] = line.split(",");
    return { day, close: Number(close) };
  });
  for (;;) {
    for (const payload of days) yield { waitMs: 1_000 / PRICES_PER_SECOND, payload };
  }
}
