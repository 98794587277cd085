/** What a browser has to fetch, as a bundler would ship it. */
import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { figure, REFERENCE, type Figure } from "./figure.ts";
import { PACKAGE } from "./stage.ts";

const REFERENCE_KB = 17;

export async function sizes(): Promise<Figure[]> {
  // A page that loads its node in a worker never fetches the node's glue.
  const page = await bundled("index.js", ["./node-host.js"]);
  const node = await bundled("worker.js", []);
  const peer = { name: REFERENCE, value: REFERENCE_KB };
  return [
    figure("page part, gzip: JavaScript and WebAssembly", page + wasm("page"), "KB", { atMost: 45, peer }),
    figure("of it JavaScript", page, "KB"),
    figure("of it WebAssembly", wasm("page"), "KB"),
    figure("node part, gzip: JavaScript and WebAssembly", node + wasm("node"), "KB", { atMost: 160 }),
    figure("of that JavaScript", node, "KB"),
    figure("of that WebAssembly", wasm("node"), "KB"),
  ];
}

function wasm(part: "page" | "node"): number {
  return gzipped(readFileSync(join(PACKAGE, `wasm/${part}/motet_web_bg.wasm`)));
}

async function bundled(entry: string, external: string[]): Promise<number> {
  const { outputFiles } = await build({
    entryPoints: [join(PACKAGE, entry)],
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    external,
    write: false,
    logLevel: "error",
  });
  return outputFiles.reduce((sum, file) => sum + gzipped(file.contents), 0);
}

function gzipped(bytes: Uint8Array): number {
  return gzipSync(bytes, { level: 9 }).length / 1_000;
}
