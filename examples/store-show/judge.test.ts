/** The judge sees what it is there to see: each case is a sound history with one fault in it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { judge, type Change, type Entry, type Exported } from "./judge.ts";

interface History {
  log: Change[];
  documents: Exported[];
  journals: Map<string, Entry[]>;
}

const flight = (clock: number, key: string, passengers: number, previous?: number, transaction = clock): Change => ({
  clock, type: "Flight", key, op: "put", timeMs: clock, transaction, value: { passengers }, ...(previous === undefined ? {} : { previous }),
});

const journal = (op: string, beganUs: number, changes: NonNullable<Entry["changes"]>): Entry[] => [
  { op, beganUs, endedUs: beganUs + 10, changes },
];

/** Two flights are imported; one worker moves a passenger, then another books a seat. */
function sound(): History {
  const booking: Change = { clock: 5, type: "Booking", key: "w-1", op: "put", timeMs: 5, transaction: 5, value: { flight: "b" } };
  return {
    log: [
      flight(1, "a", 100, undefined, 1),
      flight(2, "b", 100, undefined, 1),
      flight(3, "a", 99, 1, 3),
      flight(4, "b", 101, 2, 3),
      booking,
      flight(6, "b", 102, 4, 5),
    ],
    documents: [
      { type: "Booking", key: "w-1", value: { flight: "b" } },
      { type: "Flight", key: "a", value: { passengers: 99 } },
      { type: "Flight", key: "b", value: { passengers: 102 } },
    ],
    journals: new Map([
      ["one", journal("rebook", 100, [{ type: "Flight", key: "a", clock: 3 }, { type: "Flight", key: "b", clock: 4 }])],
      ["two", journal("book", 200, [{ type: "Booking", key: "w-1", clock: 5 }, { type: "Flight", key: "b", clock: 6 }])],
    ]),
  };
}

const judged = (spoil: (history: History) => void): string[] => {
  const history = sound();
  spoil(history);
  const verdict = judge(history.log, history.documents, history.journals);
  return Object.entries(verdict).filter(([, found]) => found.length > 0).map(([kind]) => kind);
};

describe("the judge of the store's show", () => {
  test("finds nothing in a sound history, not even what was committed and never acknowledged", () => {
    assert.deepEqual(judged(() => {}), []);
    assert.deepEqual(judged(({ journals }) => journals.delete("two")), []);
  });

  test("sees an acknowledged change that is gone", () => {
    assert.deepEqual(judged((history) => {
      history.log.splice(4, 2);
      history.documents.shift();
      history.documents[1] = { type: "Flight", key: "b", value: { passengers: 101 } };
    }), ["lost"]);
  });

  test("sees documents that are not what the log says", () => {
    assert.deepEqual(judged(({ documents }) => void (documents[1] = { type: "Flight", key: "a", value: { passengers: 100 } })), ["lost"]);
    assert.deepEqual(judged(({ documents }) => void documents.pop()), ["lost"]);
  });

  test("sees half a transaction", () => {
    assert.ok(judged(({ log }) => void log.splice(5, 1)).includes("torn"));
  });

  test("sees a lost update", () => {
    assert.ok(judged(({ log, documents }) => {
      log[5] = flight(6, "b", 101, 4, 5);
      documents[2] = { type: "Flight", key: "b", value: { passengers: 101 } };
    }).includes("torn"));
  });

  test("sees a hole in the clock, a version that follows another, and time that goes back", () => {
    assert.ok(judged(({ log }) => void log.splice(2, 1)).includes("disorder"));
    assert.deepEqual(judged(({ log }) => void (log[5] = flight(6, "b", 102, 2, 5))), ["disorder"]);
    assert.deepEqual(judged(({ log }) => void (log[3] = { ...flight(4, "b", 101, 2, 3), timeMs: 1 })), ["disorder"]);
  });

  test("sees a commit that comes before one which had ended when it began", () => {
    assert.deepEqual(judged(({ journals }) => {
      const [one] = journals.get("one") ?? [];
      if (one !== undefined) journals.set("one", [{ ...one, beganUs: 300, endedUs: 310 }]);
    }), ["disorder"]);
  });
});
