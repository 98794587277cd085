import type { Sight } from "./cast.ts";
import type { Report } from "./report.ts";

const CLEAR_TO_END = "\u001b[0J";
const upBy = (lines: number): string => (lines === 0 ? "" : `\u001b[${lines}A\r`);

/** A table that is drawn again in place while the show runs; without a terminal only headlines are printed. */
export class LiveTable {
  readonly #live: boolean;
  #drawn = 0;

  constructor(live: boolean) {
    this.#live = live;
  }

  headline(text: string): void {
    this.#erase();
    process.stdout.write(`${text}\n`);
  }

  draw(sights: readonly Sight[], footer: string): void {
    if (!this.#live) return;
    const lines = [...table(["tab", "process", "state", "role", "owns", "messages", "msg/s", "gaps"], sights.map(rowOf)), footer];
    this.#erase();
    process.stdout.write(`${lines.join("\n")}\n`);
    this.#drawn = lines.length;
  }

  #erase(): void {
    if (this.#drawn > 0) process.stdout.write(upBy(this.#drawn) + CLEAR_TO_END);
    this.#drawn = 0;
  }
}

function rowOf({ tab, pid, state, stats }: Sight): string[] {
  const snapshot = stats?.snapshot;
  const self = snapshot?.self.nodeId;
  const role = snapshot?.nodes.find((node) => node.nodeId === self)?.role ?? "";
  const owns = (snapshot?.routes ?? []).filter((route) => route.owner === self).map((route) => route.topic);
  return [
    tab.name,
    String(pid ?? ""),
    state === "playing" ? (stats?.status ?? "busy") : state,
    role,
    owns.join(" "),
    String(stats?.delivered ?? ""),
    stats === undefined ? "" : stats.perSecond.toFixed(0),
    String(stats?.gaps ?? ""),
  ];
}

/** The final table: a row for each event. */
export function reportTable(report: Report): string {
  const head = ["event", "happened to", "outage p50", "p99", "oldest", "feed", "lost", "repeated", "gaps", "connections", "msg/s"];
  const rows = [report.calm, ...report.events].map((event) => [
    event.title,
    event.victim ?? "",
    `${event.outage_ms_p50} ms`,
    `${event.outage_ms_p99} ms`,
    `${event.delay_ms_max} ms`,
    `${event.feed_gap_ms} ms`,
    String(event.lost),
    String(event.repeated),
    String(event.gaps),
    String(event.connections_max),
    String(event.messages_per_second),
  ]);
  return table(head, rows).join("\n");
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd();
  return [line(head), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(line)];
}
