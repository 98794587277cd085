/** Builds and serves what a browser loads: the demo page, the stage, and the motet package as it is. */
import { build } from "esbuild";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { serveStatic, type StaticServer } from "@motet/browser-tests/static-server";

const here = new URL(".", import.meta.url).pathname;
const packageDirectory = join(here, "../../packages/motet/dist");

const AWAY = `<!doctype html>
<meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>away</title>
<body style="font:16px system-ui;display:grid;place-content:center;height:90vh;text-align:center">
<p>The page you left is in the back/forward cache now.<br>Its topics moved to another tab.</p>
<p><button onclick="history.back()" style="font:inherit;padding:6px 14px">Go back</button></p>`;

export interface SiteOptions {
  readonly websocketUrl: string;
  /** Where the bundles go. */
  readonly outputDirectory: string;
  /** Default: any free port. */
  readonly port?: number;
  readonly handlers?: Readonly<Record<string, RequestListener>>;
  readonly pages?: Readonly<Record<string, string>>;
}

/** `/` is the stage, `/tab` the demo page. */
export async function serveSite(options: SiteOptions): Promise<StaticServer> {
  if (!existsSync(join(packageDirectory, "index.js"))) {
    throw new Error("packages/motet is not built: run `cargo xtask npm`");
  }
  const bundles = join(options.outputDirectory, "site");
  mkdirSync(bundles, { recursive: true });
  await build({
    entryPoints: [join(here, "page/main.ts"), join(here, "page/stage.ts")],
    outdir: bundles,
    bundle: true,
    format: "esm",
    target: "es2022",
    sourcemap: true,
    external: ["motet"],
    logLevel: "warning",
  });
  const page = (name: string): string =>
    readFileSync(join(here, "page", name), "utf8").replace("%SERVER%", options.websocketUrl);
  return serveStatic({
    directories: { "/": bundles, "/motet/": packageDirectory },
    pages: { "/": page("stage.html"), "/tab": page("index.html"), "/away": AWAY, ...options.pages },
    handlers: options.handlers ?? {},
    port: options.port ?? 0,
  });
}
