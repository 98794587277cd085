/** The flights that the show works on: a real data set, as documents. */
import { createReadStream, createWriteStream, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { once } from "node:events";
import { dirname, join } from "node:path";

export const PASSENGERS_AT_FIRST = 100;

interface Flight {
  readonly date: string;
  readonly delay: number;
  readonly distance: number;
  readonly origin: string;
  readonly destination: string;
}

/** Writes the flights as the lines that `motet import` reads, and says how many there are. */
export async function writeFlights(path: string): Promise<number> {
  const file = join(dirname(createRequire(import.meta.url).resolve("vega-datasets")), "../data/flights-20k.json");
  const flights = JSON.parse(readFileSync(file, "utf8")) as Flight[];
  const lines = createWriteStream(path);
  flights.forEach((flight, index) => {
    const value = { ...flight, passengers: PASSENGERS_AT_FIRST };
    lines.write(`${JSON.stringify({ type: "Flight", key: `f-${String(index).padStart(5, "0")}`, value })}\n`);
  });
  lines.end();
  await once(lines, "finish");
  return flights.length;
}

/** A file's lines, each parsed. A last line without its end is of a writer that was killed in it. */
export async function* jsonLines(path: string): AsyncGenerator<unknown> {
  let rest = "";
  for await (const chunk of createReadStream(path, "utf8")) {
    const lines = (rest + String(chunk)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line);
  }
}
