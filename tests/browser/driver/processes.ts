import { readFileSync, readdirSync } from "node:fs";
import { until } from "./deadline.ts";

/** Whether a process with this pid runs (a zombie that nobody has reaped yet does not count). */
export function isRunning(pid: number): boolean {
  const state = processState(pid);
  return state !== undefined && state !== "Z" && state !== "X";
}

/** Sends a signal; a process that is already gone is no error. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** SIGKILL, then waits until the kernel has ended the process. */
export async function killAndWait(pid: number, withinMs = 5_000): Promise<void> {
  signal(pid, "SIGKILL");
  await until(`process ${pid} ends after SIGKILL`, withinMs, () => !isRunning(pid));
}

/** SIGSTOP, then waits until every thread of the process has stopped. */
export async function stopAndWait(pid: number, withinMs = 2_000): Promise<void> {
  signal(pid, "SIGSTOP");
  await until(`process ${pid} stops`, withinMs, () => processState(pid) === "T");
}

/** All processes that descend from `root`, `root` not included. */
export function descendants(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const parent = statFields(pid)?.[1];
    if (parent === undefined) continue;
    const siblings = children.get(Number(parent)) ?? [];
    siblings.push(pid);
    children.set(Number(parent), siblings);
  }
  const found: number[] = [];
  const queue = [root];
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
    for (const child of children.get(pid) ?? []) {
      found.push(child);
      queue.push(child);
    }
  }
  return found;
}

/** Memory that only this process has resident, from smaps_rollup (private clean and dirty pages). */
export function privateMemoryBytes(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  let kilobytes = 0;
  for (const [, amount] of text.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+) kB$/gm)) {
    kilobytes += Number(amount);
  }
  return kilobytes * 1_024;
}

/** CPU time of all threads so far, in milliseconds. */
export function cpuTimeMs(pid: number): number {
  const fields = statFields(pid);
  if (fields === undefined) throw new Error(`process ${pid} is gone`);
  const CLOCK_TICK_MS = 10;
  return (Number(fields[11]) + Number(fields[12])) * CLOCK_TICK_MS;
}

function processState(pid: number): string | undefined {
  return statFields(pid)?.[0];
}

/** Fields of /proc/PID/stat from the state on; the command before it may hold blanks and parentheses. */
function statFields(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}
