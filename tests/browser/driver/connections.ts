import { readFileSync } from "node:fs";

const ESTABLISHED = "01";

/** How many TCP connections to a loopback port are established, as the kernel of the machine knows it. */
export function establishedConnections(port: number): number {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(suffix) === true && state === ESTABLISHED).length;
}
