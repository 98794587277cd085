// Compiles the facade and puts the WebAssembly modules beside it, so that `dist` is all a server has to serve.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const at = (...path) => join(here, ...path);

if (!existsSync(at("wasm", "build.js"))) {
  console.error("packages/motet/wasm is missing: run `cargo xtask wasm` first");
  process.exit(1);
}
rmSync(at("dist"), { recursive: true, force: true });
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const compiled = spawnSync(process.execPath, [tsc, "--project", at("tsconfig.json")], { stdio: "inherit" });
if (compiled.status !== 0) process.exit(compiled.status ?? 1);
cpSync(at("wasm"), at("dist", "wasm"), { recursive: true });
