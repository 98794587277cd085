/**
 * `cargo xtask bench bus`: the figures of the bus in real Chromium, tabs in processes of their own, the server and
 * the publisher beside them on loopback. Loss and repetition are judged by the tests' independent checker.
 */
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { burst } from "./burst.ts";
import { cluster } from "./cluster.ts";
import { publish, type Figure } from "./figure.ts";
import { latency } from "./latency.ts";
import { mainThread } from "./main-thread.ts";
import { manyTopics } from "./many-topics.ts";
import { outages } from "./outages.ts";
import { plan as planOf, type Plan } from "./plan.ts";
import { sizes } from "./sizes.ts";

const CHAPTERS: Readonly<Record<string, (plan: Plan) => Promise<Figure[]>>> = {
  sizes,
  latency,
  burst,
  topics: manyTopics,
  page: mainThread,
  cluster,
  outages,
};

const USAGE = `Usage: cargo xtask bench bus -- [--runs N] [--quick] [--only ${Object.keys(CHAPTERS).join("|")}] [--output FILE]`;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "50" },
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    output: { type: "string", default: join(import.meta.dirname, "../../target/bench/bus.json") },
    help: { type: "boolean", default: false },
  },
});
const runs = Number(values.runs);
const unknown = values.only !== undefined && !(values.only in CHAPTERS);
if (values.help || unknown || !Number.isInteger(runs) || runs < 1) {
  console.log(USAGE);
  process.exit(values.help ? 0 : 2);
}

const plan = planOf(runs, values.quick);
console.log(`Load average before the run: ${loadavg()[0]?.toFixed(1)}`);
const figures: Figure[] = [];
let failed = 0;
for (const [name, chapter] of Object.entries(CHAPTERS)) {
  if (values.only !== undefined && values.only !== name) continue;
  console.log(`Measuring: ${name}`);
  try {
    figures.push(...(await chapter(plan)));
  } catch (error) {
    // The other chapters' figures are still worth having.
    failed += 1;
    console.error(`${name} could not be measured:`, error);
  }
}
publish(figures, values.output);
console.log(`${figures.length} figures, ${failed} chapters failed`);
process.exit(failed === 0 ? 0 : 1);
