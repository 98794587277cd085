/** What was measured, as a table for people and as JSON for programs. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** One figure. `ratio` is ours divided by the peer's. */
export interface Figure {
  readonly figure: string;
  readonly value: number;
  readonly unit: string;
  readonly peer: string | null;
  readonly peer_value: number | null;
  readonly ratio: number | null;
  readonly target: string | null;
  readonly met: boolean | null;
  /** What each run gave, where there were several. */
  readonly runs: readonly number[];
}

export interface Judgement {
  readonly atMost?: number;
  readonly atLeast?: number;
  readonly exactly?: number;
  /** For a bound that is stated otherwise than as a number for this value. */
  readonly target?: { readonly text: string; readonly met: boolean };
  readonly peer?: { readonly name: string; readonly value: number };
  readonly runs?: readonly number[];
}

/** The peer of the figures that a library of the same kind was measured for. */
export const REFERENCE = "reference library, re-created";

export function figure(name: string, value: number, unit: string, judgement: Judgement = {}): Figure {
  const { peer, runs = [] } = judgement;
  if (!Number.isFinite(value)) throw new Error(`${name}: ${value} is no measurement`);
  return {
    figure: name,
    value: rounded(value),
    unit,
    peer: peer?.name ?? null,
    peer_value: peer === undefined ? null : rounded(peer.value),
    ratio: peer === undefined || peer.value === 0 ? null : rounded(value / peer.value),
    ...judged(rounded(value), judgement),
    runs: runs.map(rounded),
  };
}

function judged(value: number, { atMost, atLeast, exactly, target }: Judgement): Pick<Figure, "target" | "met"> {
  if (target !== undefined) return { target: target.text, met: target.met };
  if (atMost !== undefined) return { target: `<= ${atMost}`, met: value <= atMost };
  if (atLeast !== undefined) return { target: `>= ${atLeast}`, met: value >= atLeast };
  if (exactly !== undefined) return { target: `= ${exactly}`, met: value === exactly };
  return { target: null, met: null };
}

export function publish(figures: readonly Figure[], file: string): void {
  const head = ["figure", "measured", "peer", "ratio", "target", "met"];
  const rows = [head, ...figures.map(cells)];
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows) {
    console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd());
  }
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(figures, undefined, 2)}\n`);
  console.log(`Written: ${file}`);
}

function cells(row: Figure): string[] {
  return [
    row.figure,
    `${row.value} ${row.unit}`,
    row.peer === null ? "" : `${row.peer}: ${row.peer_value}`,
    row.ratio === null ? "" : String(row.ratio),
    row.target ?? "",
    row.met === null ? "" : row.met ? "yes" : "NO",
  ];
}

function rounded(value: number): number {
  const digits = Math.abs(value) >= 100 ? 10 : 1_000;
  return Math.round(value * digits) / digits;
}
