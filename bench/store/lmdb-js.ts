/**
 * npm `lmdb` as a process that takes turns with the others: for each line `first count` it makes the documents, says
 * `ready`, and at the next line writes them in one durable transaction and says `done`.
 */
import { createInterface } from "node:readline";
import { open } from "lmdb";

const [path, indexed] = process.argv.slice(2);
if (path === undefined) throw new Error("lmdb-js.ts <path> <indexed>");

// With overlapping syncs a transaction would count as done before it is on the disk.
const root = open({ path, maxDbs: 4, overlappingSync: false });
const documents = root.openDB<object, string>({ name: "documents", encoding: "json" });
const log = root.openDB<object, number>({ name: "log", encoding: "json" });
const cities = root.openDB<null, [string, string]>({ name: "cities" });
const totals = root.openDB<null, [number, string]>({ name: "totals" });
let clock = 0;

interface Sample {
  readonly key: string;
  readonly value: { readonly city: string; readonly total: number };
}

/** The documents of the other systems. */
function sample(number: number): Sample {
  const spread = BigInt.asUintN(64, BigInt(number) * 0x9e3779b97f4a7c15n);
  return {
    key: `o-${spread.toString(16).padStart(16, "0")}`,
    value: {
      city: `city-${String((spread >> 20n) % 5_000n).padStart(4, "0")}`,
      total: Number((spread >> 12n) % 300_000n),
      open: number % 3 === 0,
      note: "a text of a length that a short comment has, so that a document is as long as one",
      tags: ["first", "second"],
      at: 1_700_000_000_000 + number,
    } as Sample["value"],
  };
}

function write(samples: readonly Sample[]): void {
  root.transactionSync(() => {
    for (const { key, value } of samples) {
      void documents.put(key, value);
      clock += 1;
      void log.put(clock, value);
      if (indexed === "true") {
        void cities.put([value.city, key], null);
        void totals.put([value.total, key], null);
      }
    }
  });
}

let samples: readonly Sample[] = [];
for await (const line of createInterface({ input: process.stdin })) {
  const [first = 0, count = 0] = line.split(" ").map(Number);
  if (samples.length === 0) {
    samples = Array.from({ length: count }, (_, index) => sample(first + index));
    process.stdout.write("ready\n");
  } else {
    write(samples);
    samples = [];
    process.stdout.write("done\n");
  }
}
await root.close();
